"""What `predict` writes: the input again and an answer that a person can use, or the bare answer."""

import json
from pathlib import Path

import pytest
import torch
from hydra.utils import instantiate

from elmo_bench.commands.compare.score import score
from elmo_bench.configuration import pages, schema
from elmo_bench.identity import makers
from elmo_bench.running.build import build
from elmo_bench.trained import opened
from elmo_bench.trained.prediction import predict

pytestmark = pytest.mark.slow

SIZES = "{lm:[300,50,50],ner:[40,12,12],srl:[30,10,10],coref:[6,4,3],snli:[60,20,20],squad:[8,4,4],sst:[60,20,20]}"
TASKS = [task for task in pages.tasks() if "mini" in pages.scales(task)]


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """What an untrained model says of four dev rows of a task: the rows, the answers."""
    root = tmp_path_factory.mktemp("mini")

    def answer(task):
        cfg = pages.compose(
            [f"task={task}", "scale=mini", "arm=baseline", f"scale.folder={root}", f"scale.sizes={SIZES}"]
        )
        run = schema.typed(cfg)
        makers.make(run)
        reader = instantiate(run.task.reader)
        rows = [reader.load()["dev"][i] for i in range(4)]
        torch.manual_seed(1)
        module = build(run, reader, None).eval()
        with torch.no_grad():
            return rows, opened.answer(module, reader.collate(rows))

    return answer


@pytest.mark.parametrize("task", TASKS)
def test_an_answer_is_a_json_object_beside_the_prediction(task, answers):
    rows, given = answers(task)
    assert len(given) == len(rows)
    for answer in given:
        assert isinstance(answer.described, dict)
        assert json.loads(json.dumps(answer.described)) == answer.described
        json.dumps(answer.prediction)


def test_entities_are_named_with_their_words(answers):
    rows, given = answers("ner")
    for row, answer in zip(rows, given, strict=True):
        assert answer.described["tags"] == answer.prediction
        begun = [tag for tag in answer.prediction if tag.startswith("B-")]
        assert [f"B-{entity['label']}" for entity in answer.described["entities"]] == begun
        for entity in answer.described["entities"]:
            assert entity["text"] == " ".join(row["tokens"][entity["start"] : entity["end"]])


@pytest.mark.parametrize(("task", "names"), [("snli", 3), ("sst5", 5)])
def test_the_label_is_the_most_probable_one(task, names, answers):
    for answer in answers(task)[1]:
        shares = answer.described["probabilities"]
        assert len(shares) == names
        assert sum(shares.values()) == pytest.approx(1, abs=1e-3)
        name = answer.described.get("name", answer.described["label"])
        assert shares[name] == max(shares.values())
        assert answer.described["label"] == answer.prediction


def test_mentions_are_the_words_of_the_clusters(answers):
    from elmo_bench.task import Batch
    from tasks.coref.head import CorefHead

    row = {"sentences": [["Ida", "has", "a", "cat"], ["She", "sings"]]}
    prediction = {"clusters": [[[0, 0], [4, 4]], [[2, 3]]], "text": ["...", "..."]}
    (described,) = CorefHead.describe(None, [prediction], None, Batch([row], {}, {}))  # type: ignore[arg-type]
    assert described["mentions"] == [["Ida", "She"], ["a cat"]]
    assert described["in_brackets"] == ["...", "..."]


def test_the_input_stays_and_the_answer_has_a_place_of_its_own():
    row = {"tokens": ["a", "b"], "sentences": [["a"], ["b"]]}
    made = {"tokens": ["a", "b"], "sentences": [["a"], ["b"]], "label": 1}
    text = {"text": "a b", "label": "gold", "id": None}
    assert opened.answered(text, row, ("tokens", "sentences"), {"label": 1}) == text | {"prediction": made}
    assert opened.answered({"tokens": ["a"]}, row, ("tokens",), {}) == {"tokens": ["a"], "prediction": {}}


@pytest.mark.parametrize("task", TASKS)
def test_a_file_of_the_data_set_is_predicted_written_and_scored_as_the_run_was(task, tmp_path):
    record = bench_record(tmp_path / "mini", tmp_path, task)
    gold = str(pages.compose([f"task={task}", "scale=mini", f"scale.folder={tmp_path}/mini"]).task.data.test)
    checkpoint, answers = str(tmp_path / "results" / record.checkpoint), str(tmp_path / "answers")
    assert predict(checkpoint, gold, answers, format="official") >= 3
    assert score(task, gold, answers) == pytest.approx(record.metrics["test"])
    assert predict(checkpoint, answers, answers + ".jsonl") >= 3 if task in ("ner", "coref", "srl") else True
    Path(answers).write_text("")
    assert predict(checkpoint, answers, answers + ".2", format="official") == 0


def bench_record(folder, root, task="snli"):
    """A run of one epoch on a few rows."""
    from elmo_bench.running.launch import train

    return train(
        pages.compose([
            f"task={task}", "scale=mini", f"scale.folder={folder}", f"scale.sizes={SIZES}", "arm=baseline",
            "task.fit.epochs=1", "trainer=cpu", f"results_root={root}/results", f"cache_root={root}",
        ])
    )  # fmt: skip
