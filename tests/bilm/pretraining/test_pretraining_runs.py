"""Pretraining as a command: killed and resumed, forced, on changed text, damaged, twice at once, in two processes."""

import csv
import hashlib
import json
import math
import os
import random
import signal
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from unittest.mock import Mock, call

import pytest

from elmo_bench.bilm.pretraining.trainer import Journal, Trainer
from elmo_bench.commands.bilm import Pretrain
from elmo_bench.mini import MiniData
from elmo_bench.system.storage.integrity import load_checkpoint
from elmo_bench.system.storage.locks import held
from tests.command import Fork
from tests.conftest import clean_environment
from tests.fakes import answer, cases, content, for_each, one_line, table

pytestmark = pytest.mark.slow

RECIPE = """
    recipe.options.lstm.dim=16 recipe.options.lstm.projection_dim=8 recipe.options.char_cnn.embedding.dim=4
    recipe.options.char_cnn.filters=[[1,4],[2,8],[3,12]] recipe.text=[[train.txt,null]] recipe.heldout=[[dev.txt,null]]
    recipe.vocabulary=60 recipe.tokens=4800 recipe.rows=8 recipe.steps=3 recipe.negatives=8 recipe.lr=0.02
    recipe.warmup=5 recipe.seed=3
""".split()
FEW = "recipe.tokens=480"  # twenty updates


def written(folder: Path) -> Path:
    """A folder with a text, of which an update reads a sixty-sixth."""
    draw = random.Random(0)
    for name, lines in (("train", 200), ("dev", 40)):
        text = "".join(" ".join(draw.choices([f"w{i}" for i in range(80)], k=7)) + "\n" for _ in range(lines))
        (folder / f"{name}.txt").write_text(text)
    return folder


@pytest.fixture
def place(tmp_path) -> Path:
    return written(tmp_path)


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory) -> Path:
    """The folder of a training that nothing disturbed."""
    folder = written(tmp_path_factory.mktemp("unbroken"))
    assert inside(folder)[0] == 0
    return folder


def arguments(place: Path, *more: str, output: str = "out") -> list[str]:
    return [
        "scale=mini", f"root={place}", f"cache_root={place}/cache", *RECIPE,
        f"output={place}/{output}", "device=cpu", "compile=false", *more,
    ]  # fmt: skip


def forked(given: Sequence[str], **environment: str) -> Fork:
    """The command in a fork of this process."""

    def run() -> None:
        sys.argv = ["pretrain", *given]
        Pretrain.main()

    return Fork(run, clean_environment() | environment)


def inside(place: Path, *more: str, output: str = "out") -> tuple[int, str, str]:
    """The same to its end in this process; returns exit status, stdout and stderr."""
    return answer(Pretrain, *arguments(place, *more, output=output))


def work(place: Path) -> Path:
    """The folder of the only run."""
    (log,) = (place / "cache" / "pretrain").glob("*/log.csv")
    return log.parent


def log(place: Path) -> list[dict[str, str]]:
    with open(work(place) / "log.csv") as file:
        return list(csv.DictReader(file))


def losses(place: Path) -> list[float]:
    return [float(row["loss"]) for row in log(place)]


def test_a_training_killed_three_times_equals_an_undisturbed_one(place, unbroken, monkeypatch):
    """Byte for byte, and its log is that of one training; a perplexity is that of the sampled loss."""
    for mark in sorted(random.Random(5).sample(range(20, 180), 3)):
        with monkeypatch.context() as patch:
            patch.setattr(Trainer, "_step", killed_at(mark, Trainer._step))
            assert forked(arguments(place, "every=0")).finish()[0] == -signal.SIGKILL
    code, _, said = inside(place)
    assert code == 0, said
    assert "resuming after update" in said
    assert content(place / "out") == content(unbroken / "out")
    logged, whole = ([list(row.values())[:4] for row in log(folder)] for folder in (place, unbroken))
    assert logged == whole
    assert all(float(ppl) == pytest.approx(math.exp(float(loss)), rel=1e-4) for _, _, loss, ppl in whole)


def killed_at(update, step):
    """A step of a training that is killed from within, before this update."""

    def killing(self, batch):
        return step(self, batch) if self.update != update else os.kill(os.getpid(), signal.SIGKILL)

    return killing


def test_changed_text_is_another_run_and_force_trains_anew(place):
    assert inside(place, FEW)[0] == 0
    card = json.loads((place / "out" / "card.json").read_text())
    code, *said = inside(place, FEW)
    assert code == 0
    assert "exists already" in "".join(said)
    first = work(place)
    saved = (first / "checkpoint.pt").stat().st_mtime_ns
    assert inside(place, FEW, "force=true")[0] == 0
    assert (first / "checkpoint.pt").stat().st_mtime_ns > saved
    with open(place / "train.txt", "a") as file:
        file.write("one more sentence\n")
    one_line(inside(place, FEW), "other text", "force=true")
    one_line(inside(place, "recipe.tokens=960"), "another recipe", "force=true")
    assert json.loads((place / "out" / "card.json").read_text())["key"] == card["key"]
    assert inside(place, FEW, "force=true")[0] == 0
    assert json.loads((place / "out" / "card.json").read_text())["key"] != card["key"]


def test_a_folder_that_is_no_biLM_of_ours_is_left_alone(place):
    (place / "out").mkdir()
    (place / "out" / "weights.hdf5").write_text("precious")
    one_line(inside(place, "force=true"), "no card.json")
    assert (place / "out" / "weights.hdf5").read_text() == "precious"


def test_a_damaged_checkpoint_is_said_and_kept(place):
    assert inside(place, FEW, output="first")[0] == 0
    path = work(place) / "checkpoint.pt"
    whole = path.read_bytes()
    for damaged in (whole[:-100], whole[:5000] + bytes([whole[5000] ^ 1]) + whole[5001:], b""):
        path.write_bytes(damaged)
        one_line(inside(place, FEW), "checkpoint.pt: damaged", "force=true")
        assert path.read_bytes() == damaged
        assert not (place / "out").exists()
    assert inside(place, FEW, "force=true")[0] == 0
    assert content(place / "out") == content(place / "first")


def test_a_loss_that_is_no_number_ends_a_training_and_leaves_its_checkpoint(place):
    one_line(inside(place, FEW, "recipe.lr=1e30"), "update 2: the", "at learning rate", "lower recipe.lr")
    assert not list(place.rglob("checkpoint.pt"))
    assert not (place / "out").exists()
    assert not list(place.glob(".out*"))


def test_memory_that_runs_out_says_how_many_tokens_an_update_has(place, monkeypatch):
    def full(*_):
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes")

    monkeypatch.setattr("elmo_bench.bilm.pretraining.trainer.step.loss", full)
    one_line(inside(place), "out of memory while training on 24 tokens (8 rows of 3 steps); lower recipe.rows")


@for_each("pays", "true false")
def test_a_processor_that_is_slower_in_bfloat16_is_told(place, monkeypatch, pays):
    monkeypatch.setattr("elmo_bench.bilm.pretraining.trainer.bfloat16_pays", lambda place: pays)
    said = "this processor multiplies bfloat16 slower than float32"
    status, output, err = inside(place, FEW, "recipe.bfloat16=true")
    assert (status, said in output + err) == (0, not pays)
    assert said not in "".join(inside(place, FEW)[1:])


@cases("""
    argument                      | said
    recipe.tokens=0               | recipe.tokens=0
    recipe.rows=-1                | recipe.rows=-1
    recipe.lr=1e38                | recipe.lr=1e+38
    recipe.lr=nan                 | recipe.lr=nan
    recipe.clip=0                 | recipe.clip=0
    recipe.seed=-1                | recipe.seed=-1
    +recipe.betas=[0.9]           | no value for recipe.betas.1
    +recipe.dropout=inf           | recipe.dropout=inf
    every=nan                     | every=nan
    stop=-1                       | stop=-1
    recipe.text=[[train.txt,0]]   | recipe.text.0.1=0
    recipe.steps=1.5              | recipe.steps=1.5
    recipe.lr=0                   | recipe.lr=0
""")
def test_numbers_that_cannot_be_used_are_refused(place, argument, said):
    one_line(inside(place, argument), said)
    assert not (place / "cache").exists()


def test_a_training_stopped_and_continued_elsewhere(place, unbroken, tmp_path):
    """From the exported biLM alone: the same place in the text, the same end, a loss near that of an unbroken one."""
    whole = log(unbroken)
    assert inside(place, "stop=100", output="half")[0] == 0
    card = json.loads((place / "half" / "card.json").read_text())
    assert (card["updates"], card["tokens_seen"]) == (100, 2400)
    assert [row["loss"] for row in log(place)] == [row["loss"] for row in whole[:2]]
    assert inside(place, "stop=60", output="half")[2].startswith(f"{place}/half exists already")
    work(place).rename(tmp_path / "first-half")
    assert inside(place, "+recipe.start=half", "recipe.warmup=1", output="both")[0] == 0
    continued = log(place)
    assert [row["tokens"] for row in continued] == [row["tokens"] for row in whole[2:]]
    for ours, theirs in zip(continued, whole[2:], strict=True):
        assert float(ours["loss"]) == pytest.approx(float(theirs["loss"]), rel=0.03)
    both = json.loads((place / "both" / "card.json").read_text())
    assert both["updates"] == 200
    assert both["recipe"]["start"] == hashlib.sha256((place / "half" / "weights.hdf5").read_bytes()).hexdigest()
    assert both["key"] != card["key"]
    another = "recipe.options.lstm.dim=8"
    one_line(inside(place, "+recipe.start=half", another, output="other"), "half", "other sizes")
    one_line(inside(place, "+recipe.start=absent", output="other"), "absent")
    one_line(inside(place, "stop=soon", output="other"), "stop=soon")


def test_two_processes_at_once_are_refused(place):
    assert inside(place, FEW, output="first")[0] == 0
    with held(work(place), "held by the test"):
        one_line(inside(place, FEW, output="second"), "another process is training")


def test_bad_input_is_one_line_and_nothing_is_lost(place):
    (place / "latin.txt").write_bytes("fine\nn\xe4h\n".encode("latin-1"))
    (place / "empty.txt").write_text("\n\n")
    (place / "words.txt").write_text("".join(f"w{i}\n" for i in range(60)))
    (place / "few.txt").write_text("<S>\n</S>\n<UNK>\nw1\nw2\n")
    before = {path: path.read_bytes() for path in place.glob("*.txt")}
    for typed, told in table("""
        recipe.text=[[train.txt,null],[latin.txt,null]] | ["latin.txt:2", "not UTF-8"]
        recipe.text=[[train.txt,null],[empty.txt,null]] | ["empty.txt", "no sentence"]
        recipe.text=null                       | ["recipe.text names no file"]
        recipe.text=[[absent/*,null]]          | ["absent", "no such text"]
        recipe.text=absent/*                   | ["absent", "no such text"]
        recipe.text=[absent/*]                 | ["absent", "no such text"]
        scale=nope                             | ["scale=nope", "no recipe for it"]
        +recipe.words=words.txt                | ["words.txt", "<UNK>"]
        +recipe.words=few.txt                  | ["few.txt", "60"]
        recipe.negatives=60                    | ["recipe.negatives=60"]
        recipe.vocabulary=200 recipe.negatives=90 | ["90 negatives", "83 words"]
        +recipe.optimiser=sgd                  | ["optimiser"]
        +recipe.lrr=1                          | ["lrr"]
    """):
        one_line(inside(place, *typed.split()), *told)
    assert {path: path.read_bytes() for path in place.glob("*.txt")} == before
    assert not (place / "out").exists()


def test_the_text_of_a_scale_is_generated_in_an_empty_cache(tmp_path, monkeypatch):
    def make(data: MiniData) -> Path:
        folder = Path(data.scale.folder or "")
        folder.mkdir(parents=True)
        return written(folder)

    monkeypatch.setattr(MiniData, "make", make)
    status, _, said = answer(Pretrain, "scale=mini", f"cache_root={tmp_path}/cache", *RECIPE, FEW, "device=cpu")
    assert status == 0, said
    assert len(list(tmp_path.glob("cache/mini/*/bilm/card.json"))) == 1


def test_the_word_that_was_typed_is_no_suggestion(place):
    status, _, said = inside(place, "results_root=x")  # a key of other commands
    assert (status, said.count("results_root")) == (2, 1)
    assert "did you mean cache_root?" in inside(place, "cache_rot=x")[2]


def test_two_processes_follow_the_loss_of_one_with_the_joint_batch(place, tmp_path_factory):
    """Over gloo, as torchrun starts them; the checkpoint of two goes on in one."""
    one = written(tmp_path_factory.mktemp("one"))
    assert inside(one, FEW)[0] == 0
    weights = load_checkpoint(work(one) / "checkpoint.pt", "")
    with socket.create_server(("127.0.0.1", 0)) as free:
        group = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free.getsockname()[1]), "WORLD_SIZE": "2"}
    given = arguments(place, FEW, output="two")
    both = [forked(given, **group, RANK=rank) for rank in "01"]
    for status, _, said in [each.finish() for each in both]:
        assert status == 0, said
    assert losses(place) == pytest.approx(losses(one), rel=1e-4)
    shared = load_checkpoint(work(place) / "checkpoint.pt", "")
    assert shared["states"][0][0][0].shape == weights["states"][0][0][0].shape
    for name, tensor in weights["lm"].items():
        assert (shared["lm"][name] - tensor).norm() <= 1e-2 * tensor.norm() + 1e-4, name
    assert (place / "two" / "card.json").is_file()


def test_the_journal_goes_to_wandb_too(tmp_path):
    """What was written after a checkpoint is dropped and comes again."""
    logged = Mock()
    journal = Journal(tmp_path / "log.csv", logged)
    for update in (50, 100):
        journal.write({"update": update, "tokens": update * 1280, "loss": 5.0})
    journal.close()
    assert logged.call_args == call(tmp_path)
    assert [each.kwargs["step"] for each in logged().log.call_args_list] == [50, 100]
    logged().close.assert_called_once_with()
    journal.shorten(60)
    header, line = (tmp_path / "log.csv").read_text().splitlines()
    assert (header, line) == ("update,tokens,loss", "50,64000,5")
    journal.shorten(0)
    assert not (tmp_path / "log.csv").exists()
