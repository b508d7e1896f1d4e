"""Word vectors of a file and of the biLM's text: what is read, trained once, found, and recorded."""

import hashlib
import json
import os
import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from datasets import Dataset, DatasetDict

from elmo_bench.configuration import composing, pages
from elmo_bench.configuration.composing import validated
from elmo_bench.embedding import skipgram
from elmo_bench.embedding.skipgram import SkipgramVectors, seen
from elmo_bench.embedding.tables import VectorFiles
from elmo_bench.embedding.vectors import distinct, read
from elmo_bench.records.missing import check_choices
from elmo_bench.records.record import label
from elmo_bench.records.settings import Identity
from elmo_bench.sweeps.plan import plan
from elmo_bench.sweeps.request import SweepRequest
from elmo_bench.system import console
from tests.damage import flipped
from tests.fakes import refuses

pytestmark = pytest.mark.slow

PAGE = """
# @package _global_
name: open
recipe:
  text: [[lm/one.txt, null], [lm/two.txt, 300]]
  tokens: 600
  rows: 4
  steps: 5
  seed: 1
"""
SMALL = "vectors=text vectors.size=4 task.words.size=4 vectors.epochs=2 vectors.min_count=2".split()


@pytest.fixture
def text(bench):
    """A folder of text and a recipe of a biLM that read some of it; the toy task's words stand in it."""
    draw = random.Random(1)
    page = bench.conf / "pretrain" / "open.yaml"
    page.write_text(PAGE.lstrip())
    os.utime(page, (0, 0))  # as those of the bench: what Hydra composed serves all tests
    (bench.data / "lm").mkdir()
    for name in ("one", "two"):
        lines = [" ".join(draw.choices("Ba de gi ko mu".split(), k=draw.randint(2, 9))) for _ in range(120)]
        (bench.data / "lm" / f"{name}.txt").write_text("\n".join(lines) + "\nonce\n")
    return bench


def made(cfg) -> Path:
    """The file of the vectors of a configuration, trained where it is not there."""
    run = validated(cfg)
    return SkipgramVectors(run.vectors, run).make()


def vectors(path) -> dict[str, torch.Tensor]:
    return read(VectorFiles(path), {"Ba", "ba", "de", "gi", "ko", "mu", "once"}, 4)


def test_the_sentences_that_count_as_read_are_those_whose_mark_was_read():
    draw = np.random.default_rng(1)
    for rows, steps, tokens in [(3, 4, 60), (2, 5, 10), (5, 3, 10_000), (4, 2, 100)]:
        lengths = draw.integers(1, 9, 80)
        stream = [i if j == 0 else -1 for i, n in enumerate(lengths) for j in range(n + 1)]  # a mark and n words
        length = len(stream) // rows
        updates = min(tokens // (rows * steps), length // steps)
        read = {i for row in range(rows) for i in stream[row * length : row * length + updates * steps]}
        assert set(np.flatnonzero(seen(np.cumsum(lengths), tokens, rows, steps))) == read - {-1}


def test_the_same_text_gives_the_same_vectors_and_another_seed_others(text, tmp_path):
    first = made(text.compose(*SMALL))
    again = made(text.compose(*SMALL, f"cache_root={tmp_path}/other"))
    assert again != first
    assert again.read_bytes() == first.read_bytes()
    assert set(vectors(first)) == {"Ba", "de", "gi", "ko", "mu"}  # as the text writes them, and not what is rare
    other = made(text.compose(*SMALL, "vectors.seed=2"))
    assert not torch.equal(vectors(other)["de"], vectors(first)["de"])
    assert "ba" in vectors(made(text.compose(*SMALL, "vectors.lower=true")))
    assert not list(tmp_path.rglob("*.partial")) + list(tmp_path.rglob(".vectors*"))


def test_words_of_sentences_and_of_documents_are_gathered_as_they_are_looked_up():
    rows = json.loads("""
        [{"a": ["Ba", "de"], "b": [["de", "Gi"], ["ko"]], "c": ["mu"]}, {"a": ["ba"], "b": [["lu"]], "c": ["mu"]}]
    """)
    splits = DatasetDict({"train": Dataset.from_list(rows[:1]), "test": Dataset.from_list(rows[1:])})
    assert sorted(distinct(splits, ("a", "b"), lower=False)) == "Ba Gi ba de de ko lu".split()
    assert set(distinct(splits, ("a", "b"), lower=True)) == {"ba", "de", "gi", "ko", "lu"}


def test_several_processes_train_them_once(text, monkeypatch):
    trained = []

    def train(wanted, path):
        trained.append(path)
        path.write_text("a 1 2 3 4\n")

    monkeypatch.setattr(skipgram, "train", train)
    cfg = text.compose(*SMALL)
    with ThreadPoolExecutor(3) as pool:
        paths = [future.result() for future in [pool.submit(made, cfg) for _ in range(3)]]
    assert len(trained) == 1
    assert set(paths) == set(trained)


def test_damaged_vectors_are_trained_again(text):
    path = made(text.compose(*SMALL))
    content, stamp = path.read_bytes(), path.stat().st_mtime_ns
    assert made(text.compose(*SMALL)).stat().st_mtime_ns == stamp
    for damaged in (flipped(content, random.Random(1)), content[:-3], b""):
        path.write_bytes(damaged)
        assert made(text.compose(*SMALL)).read_bytes() == content
    note = path.with_name("vectors.txt.sha256")
    assert note.read_text() == f"{hashlib.sha256(content).hexdigest()}  vectors.txt\n"
    note.unlink()  # as earlier versions left it: nobody knows what it was
    path.write_bytes(flipped(content, random.Random(1)))
    assert made(text.compose(*SMALL)).read_bytes() == content


def test_other_text_is_another_run_and_another_file(text):
    cfg = text.compose(*SMALL)
    before = made(cfg), Identity(validated(cfg)).run
    (text.data / "lm" / "one.txt").write_text("de gi de gi\nko de ko\nmu ko mu\n" * 50)
    cfg = text.compose(*SMALL)
    assert made(cfg) != before[0]
    assert Identity(validated(cfg)).run != before[1]


def test_a_run_with_vectors_of_the_text_says_so(text):
    plain, record = text.train("elmo.where=none"), text.train("elmo.where=none", *SMALL)
    assert (plain.arm, label(plain.where, plain.variant | plain.own_data)) == ("baseline", "baseline")
    assert (record.arm, record.variant["vectors"]) == ("baseline", "text")
    assert record.run != plain.run
    assert plain.word_vectors == {"source": "random", "words": 5, "found": 0}
    told = record.word_vectors
    assert (told["source"], told["found"], told["words"]) == ("text", 3, 5)  # "lu" is not there, "ba" is capitalised
    assert record.config["vectors"]["window"] == 5
    assert "/" not in str(record.config["vectors"]["root"])


def test_words_of_dev_and_test_that_the_file_has_are_known(bench, stand_in, built):
    (bench.data / "toy" / "test.txt").write_text("ba/B fresh/A odd/B\n")
    (bench.folder / "v.txt").write_text("ba 1 1 1 1\nfresh 2 2 2 2\nnowhere 3 3 3 3\n")
    record = bench.train("elmo.where=none", f"+task.words.path={bench.folder}/v.txt", "task.fit.epochs=1")
    words = built[0].vocabularies["words"]
    assert "fresh" in words
    assert "odd" not in words
    assert "nowhere" not in words
    assert words["odd"] == 1
    digest = hashlib.sha256((bench.folder / "v.txt").read_bytes()).hexdigest()
    assert record.word_vectors == {"source": "file", "file": "v.txt", "sha256": digest, "words": 6, "found": 2}
    saved = torch.load(bench.results / record.checkpoint, weights_only=True)
    assert saved["vocabularies"]["words"]["items"][-1] == "fresh"
    assert (saved["state_dict"]["representation.words.weight"][-1] == 2).all()  # no training sentence has it


def test_a_missing_text_is_named(text):
    (text.data / "lm" / "two.txt").unlink()
    with refuses("text of the biLM", "two.txt"):
        text.train("elmo.where=none", *SMALL)
    with refuses("no file paper"):
        text.train("elmo.where=none", "vectors=text", "vectors.text=paper")
    assert not list(text.folder.rglob("vectors.txt"))  # nothing was trained before


def test_table_1_compares_models_on_the_vectors_of_the_scale(text):
    def arms(*changes):
        planned = plan(SweepRequest("table1", ["toy"], "open", 1, overrides=text.shared(*changes)))
        configs = [each.config for each in planned.runs]
        return [(config.arm, config.elmo.where, config.vectors.source) for config in configs]

    assert arms() == [("baseline", "none", "page"), ("elmo", "input", "page")]
    assert arms("vectors=text") == [("baseline", "none", "text"), ("elmo", "input", "text")]
    page = text.conf / "scale" / "open.yaml"
    page.write_text(page.read_text().replace("/vectors: page", "/vectors: text"))
    assert arms() == [("baseline", "none", "text"), ("elmo", "input", "text")]
    (error,) = plan(SweepRequest("table1", ["toy"], "open", 1, overrides=text.shared("arm=text"))).errors.values()
    assert (console.explain(error) or "").startswith("arm=text is now arm=baseline vectors=text")


@pytest.mark.parametrize(
    "task, scale", [*((task, "mini") for task in pages.tasks() if "mini" in pages.scales(task)), ("ner", "open")]
)
def test_every_task_takes_vectors_of_the_text_as_it_looks_its_words_up(task, scale):
    run = composing.run_config([f"task={task}", f"scale={scale}", "vectors=text", "data_root=data"])
    check_choices(run)
    assert run.vectors.size == run.task.words["size"]
    assert run.vectors.lower is bool(run.task.reader.get("lower", False))
    assert run.vectors.epochs == {"mini": 5, "open": 2}[scale]
    assert run.vectors.root == (run.scale.folder if scale == "mini" else os.path.abspath("data"))
