"""What `predict` writes: the input again and an answer that a person can use, or the bare answer."""

import io
import json
from functools import cache
from pathlib import Path

import pytest
import torch

from elmo_bench.commands.compare import score
from elmo_bench.configuration import composing, pages
from elmo_bench.running.launch import train
from elmo_bench.system.storage import limits
from elmo_bench.trained import opened
from elmo_bench.trained.prediction import predict
from tests.benchmarks.test_contract import SIZES, batch_of, load, model
from tests.fakes import cases, jsonl, refuses

pytestmark = pytest.mark.slow

TASKS = [task for task in pages.tasks() if "mini" in pages.scales(task)]


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """What an untrained model says of four dev rows of a task: the rows, the answers."""
    root = tmp_path_factory.mktemp("mini")

    def answer(task):
        loaded = load(task, root)
        batch = batch_of(loaded, "dev", 4)
        with torch.no_grad():
            return batch.rows, opened.answer(model(loaded).eval(), batch)

    return answer


def test_entities_are_named_with_their_words(answers):
    rows, given = answers("ner")
    for row, answer in zip(rows, given, strict=True):
        assert answer.described["tags"] == answer.prediction
        begun = [tag for tag in answer.prediction if tag.startswith("B-")]
        assert [f"B-{entity['label']}" for entity in answer.described["entities"]] == begun
        for entity in answer.described["entities"]:
            assert entity["text"] == " ".join(row["tokens"][entity["start"] : entity["end"]])


@cases("""
    task | names
    snli | 3
    sst5 | 5
""")
def test_the_label_is_the_most_probable_one(task, names, answers):
    for answer in answers(task)[1]:
        shares = answer.described["probabilities"]
        assert len(shares) == names
        assert sum(shares.values()) == pytest.approx(1, abs=1e-3)
        name = answer.described.get("name", answer.described["label"])
        assert shares[name] == max(shares.values())
        assert answer.described["label"] == answer.prediction


def test_mentions_are_the_words_of_the_clusters():
    from elmo_bench.task import Batch
    from tasks.coref.head import CorefHead

    row = {"sentences": ["Ida has a cat".split(), ["She", "sings"]]}
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


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Of a run of one epoch on a few rows: its checkpoint, its record, and the gold file of its test set."""

    @cache
    def made(task):
        folder = tmp_path_factory.mktemp(task)
        data = [f"task={task}", "scale=mini", f"scale.folder={folder}/mini"]
        run = [f"scale.sizes={SIZES}", "arm=baseline", "task.fit.epochs=1", "trainer=cpu"]
        cfg = composing.compose([*data, *run, f"results_root={folder}/results", f"cache_root={folder}"])
        record = train(cfg)
        return str(folder / "results" / record.checkpoint), record, str(cfg.task.data.test)

    return made


@pytest.mark.parametrize("task", TASKS)
def test_a_file_of_the_data_set_is_predicted_written_and_scored_as_the_run_was(task, trained, tmp_path, file):
    checkpoint, record, gold = trained(task)
    answers = str(tmp_path / "answers")
    assert predict(checkpoint, gold, answers, format="official") >= 3
    assert score(task, gold, answers) == pytest.approx(record.metrics["test"])
    again = answers if task in ("ner", "coref", "srl") else gold  # what is written can be read
    assert predict(checkpoint, again, answers + ".jsonl") >= 3
    lines = Path(answers + ".jsonl").read_text().splitlines()
    assert all(isinstance(json.loads(line)["prediction"], dict) for line in lines)
    assert score(task, gold, answers + ".jsonl") == pytest.approx(record.metrics["test"])
    file(b"\xff\n", "bad_gold")
    with refuses("bad_gold"):  # a fault of the gold file is told as such
        score(task, str(tmp_path / "bad_gold"), answers + ".jsonl")
    Path(answers + ".jsonl").write_text(lines[0] + "\n[1]\n")
    with refuses(r'answers\.jsonl:2: no object under "prediction"'):
        score(task, gold, answers + ".jsonl")
    Path(answers).write_text("")
    assert predict(checkpoint, answers, answers + ".2", format="official") == 0


def test_answers_are_cut_from_raw_paragraphs_of_any_length(trained, tmp_path):
    checkpoint, *_ = trained("squad")
    asked, answers = tmp_path / "in.jsonl", tmp_path / "out.jsonl"

    def answered(*rows):
        asked.write_text(jsonl(rows))
        assert predict(checkpoint, str(asked), str(answers), batch_size=4) == len(rows)
        return [json.loads(line) for line in answers.read_text().splitlines()]

    context = "Ida \u201cBell\u201d sold a cart.  Tarvel  didn't."
    long = "Ida sold a cart. " * 500  # 2,500 words, in windows of 1,000
    short = {"context": "x", "question": "What?", "id": "q2"}
    *found, last = answered(*({"context": text, "question": "Who sold?"} for text in (context, long)), short)
    for line in found:
        answer = line["prediction"]
        assert line["context"][answer["start"] : answer["end"]] == answer["answer"]
        assert 0 <= answer["score"] <= 1
    assert last == short | {"prediction": {"id": "q2", "answer": "x", "start": 0, "end": 1, "score": 1.0}}
    with refuses(r"in\.jsonl:1: the context has no words"):
        answered({"context": "", "question": "What?"})


def test_json_lines_of_snlis_release_are_its_own_file(trained, tmp_path):
    checkpoint, *_ = trained("snli")
    pair = {"gold_label": "-", "sentence1": "Ida sang.", "sentence2": "Ida slept."}
    asked, answers = tmp_path / "test.jsonl", tmp_path / "labels.txt"
    asked.write_text(json.dumps(pair) + "\n")
    assert predict(checkpoint, str(asked), str(answers), format="official") == 1
    assert answers.read_text().strip() in ("entailment", "neutral", "contradiction")


def test_rows_of_json_are_read_under_any_name_and_as_an_array(trained, tmp_path, file):
    checkpoint, *_ = trained("ner")
    rows, out = [{"text": "Ida sang in Oslo."}, {"text": "Tom ran."}], tmp_path / "out.jsonl"
    forms = {"lines": jsonl(rows), "array": json.dumps(rows),
             "indented": json.dumps(rows, indent=2), "one": json.dumps(rows[0])}  # fmt: skip
    for form, text in forms.items():
        for ending in ("json", "txt"):
            file(text, f"{form}.{ending}")
            count = 1 if form == "one" else 2
            assert predict(checkpoint, str(tmp_path / f"{form}.{ending}"), str(out)) == count
            assert [json.loads(line)["text"] for line in out.read_text().splitlines()] == [
                row["text"] for row in rows[:count]
            ]
    file('[{"text": "Ida"},\n {"txt": "Tom"}]', "wrong.json")
    with refuses(r"wrong\.json: row 2: "):
        predict(checkpoint, str(tmp_path / "wrong.json"), str(out))


def test_json_in_one_line_may_be_longer_than_a_line_of_text(trained, tmp_path, monkeypatch, file):
    monkeypatch.setattr(limits, "LINE", 1000)
    article = {"paragraphs": [{"context": "Ida sang. " * 200, "qas": [{"id": "q", "question": "Who?"}]}]}
    for task, content, count in (("squad", {"data": [article]}, 1), ("ner", [{"text": "Ida sang."}] * 100, 100)):
        file(json.dumps(content), "in.json")
        assert predict(trained(task)[0], str(tmp_path / "in.json"), str(tmp_path / "out.jsonl")) == count


def test_an_output_is_what_its_name_and_format_say(trained, tmp_path):
    row = {"tokens": ["Ida"], "context": "Ida sang.", "question": "Who?", "id": "q"}
    asked, answers = tmp_path / "in.jsonl", tmp_path / "out.json"
    asked.write_text(json.dumps(row))
    for task, format, key in (("ner", None, "prediction"), ("squad", "json", "prediction"), ("squad", None, "q")):
        predict(trained(task)[0], str(asked), str(answers), format)
        assert key in json.loads(answers.read_text())
    for name in ("out.jsonl.gz", "out.XZ", "out.zip"):
        with refuses(r"the output is not compressed; give a name that does not end in \."):
            predict(trained("ner")[0], str(asked), str(tmp_path / name))


def test_running_text_is_no_column_file(trained, tmp_path, file):
    checkpoint, *_ = trained("ner")
    file("Ida sang in Oslo.\nTom ran to Rome.\n", "in.txt")
    with refuses(r"in\.txt:1: the tag 'Oslo\.' belongs to no known scheme.*\.jsonl file"):
        predict(checkpoint, str(tmp_path / "in.txt"), str(tmp_path / "out.jsonl"))
    file("Ida O\nsang O\n", "in.txt")
    assert predict(checkpoint, str(tmp_path / "in.txt"), str(tmp_path / "out.jsonl")) == 1


@cases("""
    task  | rows
    ner   | 2
    sst5  | 2
    coref | 1
""")
def test_plain_text_what_is_piped_and_what_is_typed_are_answered_alike(
    task, rows, trained, tmp_path, capsys, monkeypatch, file
):
    checkpoint, *_ = trained(task)
    text = "Ida sang in Oslo.\nTom ran.\n"
    file(text, "in.txt")

    def printed(**given):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        capsys.readouterr()
        number = predict(checkpoint, given.pop("input", None), None, **given)
        found = list(map(json.loads, capsys.readouterr().out.splitlines()))
        assert len(found) == number
        return found

    found = printed(input=str(tmp_path / "in.txt"))
    assert [row["text"] for row in found] == (text.splitlines() if rows == 2 else [text.strip()])
    assert printed(input="-") == found
    assert printed(text=found[-1]["text"]) == found[-1:]


def test_a_text_is_not_all_that_some_tasks_need(trained, monkeypatch):
    with refuses('^expected .*"hypothesis"'):
        predict(trained("snli")[0], None, None, text="Ida sang.")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b'{"text": "a"}\n{"words": 1}')))
    with refuses("^the standard input:2: expected"):
        predict(trained("ner")[0], "-", None)
    with refuses("exactly one of"):
        predict(trained("ner")[0], "-", None, text="a")
