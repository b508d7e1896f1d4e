"""The Python interface: a biLM, a trained head, a run and the records by `import elmo_bench` alone."""

import copy
import importlib
import json
import os
import random
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

import elmo_bench
from elmo_bench.commands.use import Predict
from elmo_bench.system import places
from tests.commands.test_commands import python
from tests.fakes import cases, jsonl, refuses

pytestmark = pytest.mark.slow

HEAVY = {"torch", "pytorch_lightning", "datasets", "pandas", "sklearn", "wandb", "omegaconf"}
ROWS = [{"text": "Ida Berg sang in Oslo ."}, {"tokens": ["Rain"]}, {"text": " ".join(["Oslo is large ."] * 100)}]


def loaded(code: str) -> set[str]:
    """Which of these a new process has imported in the end."""
    done = python("-P", "-c", f"import sys\n{code}\nprint(*(sys.modules.keys() & {HEAVY!r}))")
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_the_names_are_there_and_importing_them_costs_no_torch():
    assert {"BiLM", "load", "train", "results"} <= set(elmo_bench.__all__) <= set(dir(elmo_bench))
    assert loaded("import elmo_bench") == set()
    with pytest.raises(AttributeError, match="no attribute 'lode'"):
        elmo_bench.lode  # noqa: B018  # type: ignore[attr-defined]


def test_predicting_imports_neither_lightning_nor_what_only_training_needs():
    there = loaded("import elmo_bench; elmo_bench.load('ner').predict([{'text': 'Ida Berg sang in Oslo .'}])")
    assert there == {"torch", "omegaconf"}


def test_a_bilm_is_opened_by_its_name_or_its_folder(tmp_path):
    bilm = elmo_bench.BiLM.open("mini")
    one, two = bilm.encode([["a", "boat"], ["boats"]])
    assert one.shape == (3, 2, bilm.width)
    assert two.dtype == torch.float32
    again = elmo_bench.BiLM.open(places.BROUGHT / "models" / "mini")
    assert torch.equal(again.encode([["a", "boat"]])[0], one)
    bilm.export(tmp_path / "my_options.json", tmp_path / "my_weights.hdf5")
    assert elmo_bench.BiLM.open(tmp_path, state="zero").state == "zero"
    with refuses("there is no biLM of that name, and no such folder"):
        elmo_bench.BiLM.open("nosuch")
    (tmp_path / "my_weights.hdf5").unlink()
    with refuses("no file weights.hdf5"):
        elmo_bench.BiLM.open(tmp_path)


def test_a_head_answers_as_the_command_does_and_its_model_is_a_plain_module(tmp_path, call):
    trained = elmo_bench.load("ner")
    answers = trained.predict(ROWS)
    assert [{key: answer[key] for key in row} for answer, row in zip(answers, ROWS, strict=True)] == ROWS
    found = [answer["prediction"] for answer in answers]
    words = [row.get("tokens") or row["text"].split() for row in ROWS]
    assert [len(one["tags"]) for one in found] == list(map(len, words))
    assert found[0]["entities"][0]["label"] == "PER"
    kinds = {kind.__module__.partition(".")[0] for kind in type(trained.model).__mro__}
    assert kinds == {"elmo_bench", "torch", "builtins"}
    assert not trained.model.training
    assert trained.predict([]) == []
    folder = places.BROUGHT / "models" / "heads" / "ner"
    assert elmo_bench.load(folder).predict(ROWS[:1]) == answers[:1]
    text = ROWS[-1]["text"]
    assert trained.predict(text) == trained.predict([text]) == trained.predict([{"text": text}])
    assert trained.predict({"text": text}) == trained.predict(text)
    source, output = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text(jsonl(ROWS))
    assert call(Predict, "task=ner", f"input={source}", f"output={output}")[0] == 0
    assert list(map(json.loads, output.read_text().splitlines())) == answers
    status, _, err = call(Predict, "task=ner", f"input={output}", f"output={tmp_path}/again.jsonl")
    assert status == 2
    assert 'out.jsonl:1: "prediction" is the key of the answer' in err


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16], ids=str)
def test_another_default_type_changes_no_answer(default_dtype, dtype):
    rows = [{"premise": "Ida sang in Oslo .", "hypothesis": "Rain"}]
    expected = elmo_bench.load("snli").predict(rows)
    default_dtype(dtype)
    assert elmo_bench.load("snli").predict(rows) == expected
    assert torch.get_default_dtype() == dtype


def test_a_model_in_16_bits_says_that_it_answers_in_32():
    trained = elmo_bench.load("ner")
    expected = trained.predict(ROWS[:1])
    copy.deepcopy(trained.model).half()
    assert trained.predict(ROWS[:1]) == expected
    trained.model.half()
    with refuses(r"weights of the model are torch.float16.*call .model.float\(\)"):
        trained.predict(ROWS[:1])
    trained.model.float()
    assert len(trained.predict(ROWS[:1])) == 1


def test_opening_a_model_and_answering_leave_the_callers_settings_alone(monkeypatch):
    seen = []
    trained = elmo_bench.load("ner")
    collate = trained.reader.collate
    monkeypatch.setattr(
        trained.reader, "collate", lambda rows: seen.append(torch.backends.cuda.matmul.allow_tf32) or collate(rows)
    )
    torch.set_float32_matmul_precision("high")
    try:
        before, convolutions = torch.get_rng_state(), torch.backends.cudnn.allow_tf32
        trained.predict(ROWS[:1])
        assert torch.equal(torch.get_rng_state(), before)
        assert torch.get_float32_matmul_precision() == "high"
        assert torch.backends.cudnn.allow_tf32 is convolutions
        assert seen == [False]
    finally:
        torch.set_float32_matmul_precision("highest")


def test_a_model_in_train_mode_answers_without_dropout_and_keeps_its_modes():
    trained, rows = elmo_bench.load("snli"), [{"premise": "Ida sang in Oslo .", "hypothesis": "Rain"}]
    expected = trained.predict(rows)
    trained.model.train().representation.eval()
    assert trained.predict(rows) == expected
    assert trained.model.get_submodule("head").training
    assert not trained.model.representation.training


@cases(r"""
    rows                              | told
    [{"text": "a"}, {"words": ["a"]}] | rows\[1\]: expected \{.tokens
    [{"text": ""}] | rows\[0\]: the text has no words
    [["Ida", "sang"]] | rows\[0\]: not a JSON object; expected \{"tokens": \[...\]\} or \{"text"
    "" | rows\[0\]: the text has no words
    [{"text": "a"}, {"text": "a", "prediction": 3}] | rows\[1\]: "prediction" is the key of the answer
""")
def test_what_the_reader_does_not_take_is_named_by_its_number(rows, told):
    with refuses(told):
        elmo_bench.load("ner").predict(rows)


@pytest.mark.parametrize("name, told", [
    (".", "card.json: not a readable card of a head"),
    ("nre", "neither a task .*ner.* nor the file of a checkpoint nor the id of a run"),
    ("0" * 16, "no record of run 0000000000000000"),
    ("results/own/best.ckpt", "no such checkpoint"),
    (["ner"], r"\['ner'\] is not a model: give the name of a task"),
])  # fmt: skip
def test_a_model_that_is_not_there_is_one_line(name, told):
    with refuses(told):
        elmo_bench.load(name)


def test_a_run_is_trained_and_its_model_and_its_scores_are_found_again(bench, stand_in, monkeypatch):
    record = elmo_bench.train("toy", bench.overrides("seed=7", "task.fit.epochs=1"))
    assert (record.task, record.seed, record.arm) == ("toy", 7, "elmo")
    for name in (record.run, bench.results / record.checkpoint, record):
        trained = elmo_bench.load(name, task="toy", results=bench.results)
        assert trained.task == "toy"
        assert sum(each.numel() for each in trained.model.parameters()) == record.parameters
    table = elmo_bench.results(bench.results)
    assert list(table) == "task scale arm variant vectors bilm data seed split metric headline value group run".split()
    assert len(table) == sum(map(len, record.metrics.values()))
    test = table[(table.split == "test") & table.headline]
    assert test["metric"].tolist() == [record.monitor]
    assert test["value"].tolist() == [record.metrics["test"][record.monitor]]
    with refuses("there is no such key"):
        elmo_bench.train("toy", bench.overrides("sede=7"))
    with refuses("is not recorded, and has no checkpoint"):
        elmo_bench.load(replace(record, path=None))
    path = record.path.relative_to(bench.results.parent)
    monkeypatch.chdir(bench.results.parent)
    assert elmo_bench.load(path, task="toy").task == "toy"
    (bench.results / record.checkpoint).unlink()
    with refuses("the checkpoint of run .* is not here"):
        elmo_bench.load(record)


def test_a_bilm_that_has_moved_is_named(bench, tmp_path):
    files = tmp_path / "before" / "options.json", tmp_path / "before" / "weights.hdf5"
    files[0].parent.mkdir()
    elmo_bench.BiLM.open("mini").export(*files)
    named = [f"bilm.{key}={path}" for key, path in zip(("options", "weights"), files, strict=True)]
    record, rows = elmo_bench.train("toy", bench.overrides("task.fit.epochs=1", *named)), [{"tokens": ["ba", "de"]}]
    expected = elmo_bench.load(record, task="toy").predict(rows)
    moved = files[0].parent.rename(tmp_path / "after")
    with refuses(r"no such file.*bilm=FOLDER.*bilm.options=FILE bilm.weights=FILE"):
        elmo_bench.load(record, task="toy").predict(rows)
    for bilm in (moved, (moved / "options.json", moved / "weights.hdf5")):
        assert elmo_bench.load(record, task="toy", bilm=bilm).predict(rows) == expected


def test_a_run_leaves_the_callers_process_as_it_was(bench, stand_in, monkeypatch):
    def state() -> list[Any]:
        drawn = random.random(), np.random.random(), torch.rand(1).item()  # noqa: NPY002
        flags = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled(), warnings.filters[:]
        return [drawn, *flags, torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32, dict(os.environ)]

    def seed() -> None:
        for each in (random.seed, np.random.seed, torch.manual_seed):
            each(3)

    given = bench.overrides("task.fit.epochs=1", "trainer.threads=2", "trainer.deterministic=true", "arm=baseline")
    importlib.import_module("elmo_bench.running.run")  # libraries draw numbers, and filter warnings, as they begin
    torch.set_float32_matmul_precision("high")
    try:
        seed()
        expected = state()
        for dies in (True, False):
            with monkeypatch.context() as dying, pytest.raises(ZeroDivisionError) if dies else nullcontext():
                if dies:
                    dying.setattr("elmo_bench.running.run.make_record", lambda *_: 1 / 0)
                seed()
                elmo_bench.train("toy", given)
            assert state() == expected
    finally:
        torch.set_float32_matmul_precision("highest")


def test_runs_of_several_threads_record_what_they_would_one_after_another(bench, stand_in):
    def losses(seed: int, place: str) -> list[float]:
        given = bench.overrides("task.fit.epochs=2", f"seed={seed}", f"results_root={bench.folder / place}")
        return elmo_bench.train("toy", given).history["loss"]

    seeds = [1, 2, 3]
    expected = [losses(seed, "one") for seed in seeds]
    with ThreadPoolExecutor(4) as pool:
        found = pool.map(losses, seeds, ["together"] * 3)
        rows, trained = (
            [{"tokens": ["ba", "de"]}],
            elmo_bench.load(elmo_bench.train("toy", bench.overrides()), task="toy"),
        )
        answers = [each.result() for each in [pool.submit(trained.predict, rows) for _ in range(3)]]
        assert list(found) == expected
    assert answers == [trained.predict(rows)] * 3


API: Any = elmo_bench  # as it is called by those who check no types


@pytest.mark.parametrize("call, told", [
    (lambda: API.train("ner", "arm=baseline"), "overrides are 'arm=baseline': give a list of texts"),
    (lambda: API.train("ner", {"arm": "baseline"}), "give a list of texts"),
    (lambda: API.train("ner", [3]), "give a list of texts"),
    (lambda: API.train("ner", None) and API.train("nre", None), "there is no such task"),
    (lambda: API.train("ner", ["+sweep=table1"]), r"a sweep has many runs.*elmo-bench sweep \+sweep=table1"),
    (lambda: API.load("ner", task="srl"), "a model of task ner, not of task=srl"),
    (lambda: API.results(["results"]), "not a folder of results: give one path"),
    (lambda: API.results("/no/such"), "/no/such: not a folder of results"),
    (lambda: API.results(places.RECORDED / "runs"), "it has no runs/"),
    (lambda: API.BiLM.open(None), "None is not a biLM"),
])  # fmt: skip
def test_arguments_of_another_kind_are_one_line(call, told, monkeypatch):
    monkeypatch.setattr("elmo_bench.running.launch.train", lambda cfg: cfg)
    with refuses(told):
        call()


@cases("""
    sentences
    Ida sang
    ["Ida sang"]
    [["a"], [1, 2]]
    [["a"], null]
    null
    {"a": ["b"]}
""")
def test_only_lists_of_words_are_encoded(sentences):
    with refuses(r"sentences\[\d\] is not a list of words"):
        elmo_bench.BiLM.open("mini").encode(sentences)


def test_sentences_may_come_one_by_one():
    bilm = elmo_bench.BiLM.open("mini")
    (found,) = bilm.encode(words for words in [("a", "boat")])
    assert torch.equal(found, bilm.encode([["a", "boat"]])[0])


def test_all_committed_records_are_in_the_table():
    table = elmo_bench.results(places.RECORDED)
    assert set(table["split"]) == {"dev", "test"}
    assert {"baseline", "elmo"} == set(table["arm"])
    assert table["bilm"].isna().equals(table["arm"] == "baseline")
    assert table["value"].between(0, 100).all()
    assert not table.duplicated(["run", "split", "metric"]).any()
    own = elmo_bench.results(places.RECORDED, headline_only=True)
    assert len(own) == 2 * table["run"].nunique()
    assert {*own["metric"]} == {"accuracy", "conll_f1", "f1"}


def test_no_results_are_an_empty_table(tmp_path, monkeypatch):
    monkeypatch.setattr(places, "OWN", tmp_path / "own")
    assert elmo_bench.results(headline_only=True).shape == (0, 14)
    (tmp_path / "runs").mkdir()
    assert elmo_bench.results(tmp_path).shape == (0, 14)
