"""Tuning a biLM on a task's text: what it reads, that it can be stopped, what it keeps, and what it refuses."""

import json
import math
import random
from pathlib import Path

import numpy as np
import pytest
import torch
from hydra.utils import instantiate
from safetensors.torch import load_file, save_file

from elmo_bench.bilm import BiLM
from elmo_bench.bilm.corpus import Corpus, TextSource
from elmo_bench.bilm.lm import BidirectionalLM, load_lm
from elmo_bench.bilm.pretraining.run import export
from elmo_bench.bilm.pretraining.trainer import Trainer
from elmo_bench.commands.bilm import Tune
from elmo_bench.configuration import composing, schema
from elmo_bench.mini.data import ensure_data
from elmo_bench.records import studies
from elmo_bench.records.settings import Identity
from elmo_bench.running.launch import train
from elmo_bench.tuning import TunedBilm
from elmo_bench.tuning.table import interval
from elmo_bench.tuning.tuned import read as text_of
from tests.conftest import last_of
from tests.fakes import answer, content, for_each, one_line, refuses, table
from tests.reference_bilm import write_random

SIZES = json.loads("""
{"lm": [300, 50, 50], "ner": [30, 8, 8], "srl": [30, 8, 8], "coref": [6, 2, 2], "snli": [30, 8, 8],
 "squad": [8, 2, 2], "sst": [30, 8, 8]}
""")
SMALL = """
    bilm.tuning.rows=4 bilm.tuning.steps=5 bilm.tuning.negatives=3 bilm.tuning.lr=0.05 bilm.tuning.warmup=2
    bilm.tuning.every=0 bilm.tuning.compile=false bilm.tuning.device=cpu bilm.tuning.bfloat16=false
    bilm.tuning.softmax.vocabulary=8 bilm.tuning.softmax.epochs=2 bilm.tuning.softmax.lr=0.05
""".split()
RARELY = "bilm.tuning.every=60"  # seconds between checkpoints, which are otherwise of every update
LM = ("softmax.safetensors", "vocabulary.txt")
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_thread")]


@pytest.fixture
def official(bench) -> Path:
    """A biLM as the release has it: float32, without a softmax."""
    write_random(bench.folder / "official", dim=8, projection_dim=4, filters=((1, 4), (2, 4)))
    return bench.folder / "official"


@pytest.fixture
def whole(bench, official) -> Path:
    """A biLM with its softmax, in float16; some of its numbers are -0.0."""
    torch.manual_seed(0)
    lm = BidirectionalLM(BiLM.from_files(*paths(official)), 8)
    for parameter in [*lm.bilm.parameters(), lm.softmax_bias.weight]:
        parameter.data.view(-1)[::3] = -0.0
    (bench.folder / "whole").mkdir()
    export(lm, ["<S>", "</S>", "<UNK>", "ba", "de", "gi", "ko", "lu"], bench.folder / "whole")
    return bench.folder / "whole"


def overrides(bench, parent: Path, *changes: str) -> list[str]:
    """For the toy task; of two values for a key, the last counts."""
    source = f"bilm.tuning.source.options={parent}/options.json", f"bilm.tuning.source.weights={parent}/weights.hdf5"
    return last_of([
        "task=toy", "scale=open", "bilm.parent=custom", *source, f"bilm.tuning.folder={bench.folder}/tuned",
        *SMALL, f"data_root={bench.data}",
        f"results_root={bench.results}", f"cache_root={bench.folder}/cache", *changes,
    ])  # fmt: skip


def made(bench, parent: Path, *changes: str) -> Path:
    """The tuned biLM of the toy task."""
    run = composing.run_config(["bilm=tuned", *overrides(bench, parent, *changes)])
    return TunedBilm(run.bilm, run).make()


def command(bench, parent: Path, *changes: str) -> tuple[int, str, str]:
    """The command in this process: its exit status and what it said."""
    return answer(Tune, *overrides(bench, parent, *changes))


def paths(folder: Path) -> tuple[Path, Path]:
    return folder / "options.json", folder / "weights.hdf5"


def bits(folder: Path) -> dict[str, bytes]:
    """Every number of a biLM and of its softmax, as it is read."""
    lm, _ = load_lm(folder)
    return {name: tensor.numpy().tobytes() for name, tensor in lm.state_dict().items()}


# The text.


@pytest.fixture(scope="module")
def mini(tmp_path_factory) -> Path:
    """Mini data in whose training files the test sets stand too."""
    folder = tmp_path_factory.mktemp("mini")
    ensure_data(folder, sizes=SIZES)
    for path in folder.glob("*/train*"):
        if path.parent.name != "lm":
            path.write_text(joined(path, path.with_name(path.name.replace("train", "test"))))
    return folder


def joined(train: Path, test: Path) -> str:
    """The content of two files of one format."""
    if train.suffix == ".json":
        one, other = (json.loads(path.read_text()) for path in (train, test))
        return json.dumps({**one, "data": one["data"] + other["data"]})
    header = 1 if train.suffix == ".tsv" else 0
    return train.read_text() + "".join(test.read_text().splitlines(keepends=True)[header:])


def block(task: str, folder: Path) -> schema.TunedConfig:
    """The configuration of a tuned biLM for a task of the mini scale."""
    bilm = composing.run_config([f"task={task}", "bilm=tuned", f"scale.folder={folder}"]).bilm
    assert isinstance(bilm, schema.TunedConfig)
    return bilm


def sentences_of(row: dict, fields: tuple[str, ...]) -> set[str]:
    """The sentences of a row, in lower case."""
    found = set()
    for field in fields:
        inner = row[field] if isinstance(row[field][0], list) else [row[field]]
        found |= {" ".join(words).lower() for words in inner}
    return found


@for_each("task", "coref ner snli squad srl sst5")
def test_no_test_sentence_is_in_the_text(task, mini):
    """The training files have all of them; the rest is still read."""
    tuning = block(task, mini).tuning
    read = text_of(task, tuning.reader, tuning.text)
    reader = instantiate(tuning.reader)
    splits = reader.load()
    test = set().union(*(sentences_of(row, reader.fields) for row in splits["test"]))
    dev = set().union(*(sentences_of(row, reader.fields) for row in splits["dev"]))
    train = {line.lower() for line in read.train}
    assert len(test) > 5
    assert not test & train
    assert not test & {line.lower() for line in read.dev}
    assert not dev & train
    assert read.left_out >= 0.8 * len(test)
    assert len(train) > len(test)
    assert len(set(read.train)) == len(read.train)


def test_the_text_has_whole_sentences(mini):
    """Not SST's phrases, which overlap."""
    tuning = block("sst5", mini).tuning
    phrases, whole = (text_of("sst5", tuning.reader, changes).train for changes in ({}, tuning.text))
    assert set(whole) < set(phrases)
    assert len(whole) <= 30


# The tuned biLM.


def test_tuning_learns_and_tells_what_it_did(bench, whole):
    code, said, _ = command(bench, whole, "bilm.tuning.epochs=7", RARELY)
    assert code == 0, said
    card = json.loads((bench.folder / "tuned" / "card.json").read_text())
    before, after = card["before"]["dev.txt"], card["perplexity"]["dev.txt"]
    assert after["mean"] < 0.8 * before["mean"]
    assert set(before) == {"forward", "backward", "mean", "tokens", "unknown_words", "pieces"}
    assert before["tokens"] == after["tokens"] > 100
    lm, words = load_lm(whole)
    assert before == lm.perplexity(
        Corpus.read([TextSource(next(bench.folder.glob("cache/tuning/*/text/dev.txt")))]), words
    )
    assert card["parent"] == {"name": "custom", "sha256": BiLM.from_files(*paths(whole)).sha256}
    assert card["text"]["vocabulary"] == 8
    assert card["text"]["dev"]["unknown"] == 0
    assert card["softmax"] == "the parent's"
    (table,) = studies.read_all(bench.results)
    assert (table.bilm, {cell.source for cell in table.cells}) == ("custom", {"toy"})
    assert [cell.value for cell in table.find("before", "toy")] == pytest.approx([before["mean"]], abs=1e-4)
    lowered = 100 * (1 - after["mean"] / before["mean"])
    (cell,) = table.find("lowered, %", "toy")
    assert cell.value == pytest.approx(lowered, abs=1e-4)
    assert (cell.low, cell.high) == (None, None)  # the text is too short to be cut into pieces
    assert (bench.folder / "tuned" / "vocabulary.txt").read_text() == (whole / "vocabulary.txt").read_text()
    assert not list(bench.folder.glob("cache/tuning/*/training"))


def test_the_interval_of_a_change_is_that_of_the_mean_over_pieces():
    """Where the pieces differ little, that of their mean change by Student's t."""
    draw = np.random.default_rng(1)
    nll, gained = 4 + draw.normal(size=20), 0.3 + 0.001 * draw.normal(size=20)
    before, after = ({"pieces": [list(pieces)] * 2} for pieces in (nll, nll - gained))
    change = 100 * (1 - math.exp(-gained.mean()))
    found = interval(change, before, after)
    half = 2.0930 * gained.std(ddof=1) / 20**0.5  # of t with 19 degrees of freedom
    expected = [100 * (1 - math.exp(-gained.mean() + side)) for side in (half, -half)]
    assert [found["low"], found["high"]] == pytest.approx(expected, abs=1e-3)
    assert found["clusters"] == 20
    assert interval(50.0, {}, {}) == interval(50.0, before, {}) == {}


def test_at_learning_rate_0_no_bit_changes(bench, whole):
    assert np.signbit(load_lm(whole)[0].bilm.directions[0][0].bias.numpy()[0])  # type: ignore[index]
    tuned = made(bench, whole, "bilm.tuning.lr=0")
    assert content(tuned).keys() == content(whole).keys()
    assert bits(tuned) == bits(whole)
    assert load_file(tuned / LM[0])["weight"].dtype == torch.float16
    card = json.loads((tuned / "card.json").read_text())
    assert card["updates"] > 5
    assert card["before"] == card["perplexity"]


def test_a_biLM_without_softmax_gets_one_and_is_itself_unchanged(bench, official):
    tuned = made(bench, official, "bilm.tuning.lr=0", "bilm.tuning.softmax.epochs=4", RARELY)
    theirs, ours = (BiLM.from_files(*paths(folder)).state_dict() for folder in (official, tuned))
    assert all(torch.equal(theirs[name], ours[name]) for name in theirs)
    card = json.loads((tuned / "card.json").read_text())
    assert card["softmax"].startswith("fitted")
    assert card["before"] == card["perplexity"]
    one = made(bench, official, f"bilm.tuning.folder={bench.folder}/one", "bilm.tuning.softmax.epochs=1")
    worse = json.loads((one / "card.json").read_text())["before"]["dev.txt"]["mean"]
    assert card["before"]["dev.txt"]["mean"] < worse


class Killed(BaseException):
    """In place of a signal."""


def test_a_tuning_killed_three_times_is_an_undisturbed_one(bench, official, monkeypatch):
    """At random updates, of the new softmax and of the biLM itself."""
    undisturbed = content(made(bench, official, f"bilm.tuning.folder={bench.folder}/undisturbed"))
    steps = []
    step = Trainer._step

    def counted(self, batch):
        steps.append(self.update)
        if len(steps) == deadline:
            raise Killed
        return step(self, batch)

    monkeypatch.setattr(Trainer, "_step", counted)
    draw = random.Random(1)
    for _ in range(3):
        steps.clear()
        deadline = draw.randint(2, 8)
        with pytest.raises(Killed):
            made(bench, official)
        assert not (bench.folder / "tuned").exists()
    deadline = -1
    assert content(made(bench, official)) == undisturbed


def test_a_run_with_a_tuned_biLM_says_what_it_comes_from(bench, whole):
    chosen = ["bilm=tuned", *overrides(bench, whole, "task.fit.epochs=1", "trainer=cpu")]
    cfg = composing.compose(chosen)
    run = composing.validated(cfg)
    changes = run.variant
    assert (changes["bilm"], changes["bilm.tuning.lr"]) == ("tuned", 0.05)
    assert {key for key in changes if not key.startswith("bilm.")} == {"bilm", "task.fit.epochs"}
    assert None not in changes.values()
    before = Identity(run).run
    record = train(cfg)
    parent = {"name": "custom", "sha256": BiLM.from_files(*paths(whole)).sha256}
    tuned = BiLM.from_files(*paths(bench.folder / "tuned")).sha256
    told = {"name": "custom-tuned", "sha256": tuned, "tuned": True, "parent": parent}
    assert record.bilm.items() >= told.items()
    assert (record.arm, record.variant["bilm"]) == ("elmo", "tuned")
    assert str(bench.folder) not in json.dumps(record.plain())
    assert record.run == before == Identity(run).run
    others = ["bilm.tuning.lr=0.01", "bilm.tuning.softmax.epochs=3"]
    ids = {Identity(composing.run_config([*chosen, other])).run for other in others}
    assert len({*ids, before}) == 3
    assert Identity(composing.run_config([*chosen, "bilm.tuning.every=9"])).run == before


# What is refused.


def test_a_tuning_with_other_numbers_is_a_study_of_its_own(bench, whole):
    assert command(bench, whole, RARELY)[0] == 0
    assert command(bench, whole, "bilm.tuning.lr=0.01", f"bilm.tuning.folder={bench.folder}/other", RARELY)[0] == 0
    one, other = sorted(studies.read_all(bench.results), key=lambda study: "lr=0.01" in study.what)
    assert "bilm.tuning.lr=0.01" in other.what
    assert one.settings["changes"]["toy"] | {"bilm.tuning.lr": 0.01} == other.settings["changes"]["toy"]
    assert one.find("after", "toy")[0].value != other.find("after", "toy")[0].value


def test_another_parent_than_the_recorded_one_is_refused(bench, whole, official):
    tuned = made(bench, whole)
    kept = {path.name: path.read_bytes() for path in tuned.iterdir()}
    one_line(command(bench, official), "tuned from the biLM with sha256", "force=true")
    one_line(command(bench, whole, "bilm.tuning.lr=0.01"), "another recipe", "force=true")
    assert {path.name: path.read_bytes() for path in tuned.iterdir()} == kept
    (tuned / "softmax.safetensors").write_bytes(kept["softmax.safetensors"][:-1])
    one_line(command(bench, whole), "softmax.safetensors", "damaged or changed")
    assert command(bench, whole, "force=true")[0] == 0
    assert content(tuned) == {name: kept[name] for name in content(tuned)}


def test_bad_input_is_one_line(bench, whole, monkeypatch):
    for typed, told in table("""
        bilm.parent=nosuch                       | ["bilm=nosuch", "there is no such configuration file"]
        bilm.parent=tuned                        | ["not a tuned one"]
        bilm=mini                                | ["give bilm.parent=mini"]
        bilm.tuning.source.weights=/no/gone.hdf5 | ["gone.hdf5", "no such file"]
        bilm.tuning.source.weights=null          | ["names no weights"]
        bilm.tuning.rows=5000                    | ["too short"]
        bilm.tuning.negatives=8                  | ["negatives"]
        bilm.tuning.lr=-1                        | ["bilm.tuning.lr=-1"]
    """):
        one_line(command(bench, whole, typed), *told)
    monkeypatch.setattr("tests.toy.ToyReader.fields", ())
    one_line(command(bench, whole), "task=toy has no text")
    assert not (bench.folder / "tuned").exists()


def test_a_folder_that_is_no_tuned_biLM_is_kept(bench, whole):
    (bench.folder / "tuned").mkdir()
    (bench.folder / "tuned" / "thesis.txt").write_text("mine")
    one_line(command(bench, whole, "force=true"), "not a biLM tuned here")
    assert (bench.folder / "tuned" / "thesis.txt").read_text() == "mine"


def test_a_task_whose_sentences_all_stand_in_test_has_no_text(bench, whole):
    for split in ("train", "dev"):
        (bench.data / "toy" / f"{split}.txt").write_bytes((bench.data / "toy" / "test.txt").read_bytes())
    one_line(command(bench, whole), "task=toy has no text", "train split")


@pytest.mark.parametrize("part", ["no file", "another shape", "cut", "one word more"])
def test_half_a_softmax_is_no_softmax(bench, whole, part):
    vocabulary, softmax = whole / "vocabulary.txt", whole / "softmax.safetensors"
    if part == "no file":
        softmax.unlink()
    elif part == "another shape":
        save_file({"weight": torch.zeros(8, 3), "bias": torch.zeros(8)}, softmax)
    elif part == "cut":
        softmax.write_bytes(softmax.read_bytes()[:-1])
    else:
        vocabulary.write_text(vocabulary.read_text() + "more\n")
    one_line(command(bench, whole), "/softmax.safetensors: ")
    with refuses("not the softmax of this biLM"):
        load_lm(whole)
