"""Faults of training: numbers that are not finite, memory that runs out, damaged files of an unfinished run."""

import errno
import os
import resource
import shutil
import sys
from pathlib import Path

import pytest
import torch
from torch import distributed

from elmo_bench.bilm import BiLM
from elmo_bench.bilm.options import Options
from elmo_bench.configuration import composing
from elmo_bench.nn.numerics import all_finite
from elmo_bench.records import items, store
from elmo_bench.records.settings import Identity
from elmo_bench.running import unfinished
from elmo_bench.running.blocks import check_blocks, rehearse
from elmo_bench.running.module import BenchModule
from elmo_bench.system import console
from elmo_bench.system.errors import explained, ran_out
from elmo_bench.system.storage.integrity import save_checkpoint
from elmo_bench.trained import prediction
from tests import toy
from tests.command import Fork, forked_ranks
from tests.conftest import clean_environment
from tests.damage import refusals
from tests.fakes import cases, for_each, refuses

pytestmark = pytest.mark.slow

INDEFINITE = ("arm=baseline", "bilm=none", "task.fit.epochs=3")
CPU_FULL = "[enforce fail at alloc_cpu.cpp:119] err == 0. DefaultCPUAllocator: can't allocate memory: you tried 9 bytes"


def at_step(monkeypatch, number, change):
    """Calls `change(head, loss)` for the loss of a training step, counted from 1 over all epochs."""
    forward, steps = toy.ToyHead.forward, []

    def changed(head, *given):
        scores = forward(head, *given)
        if not head.training:
            return scores
        steps.append(1)
        return scores._replace(loss=change(head, scores.loss)) if len(steps) == number else scores

    monkeypatch.setattr(toy.ToyHead, "forward", changed)


def without_a_number(head, loss):
    return loss * float("nan")


def without_a_gradient(head, loss):
    return loss + (0 * head.hidden.weight).sqrt().sum()  # 0, but its gradient is 0 times infinity


# Numbers that are not finite.


@pytest.mark.parametrize(
    "change, what, clip",
    [
        (without_a_number, "loss is nan", "norm"),
        (without_a_gradient, "gradient is nan", "norm"),
        (without_a_gradient, "gradient is nan", "value"),
    ],
)
def test_a_loss_or_gradient_that_is_no_number_ends_the_run(bench, monkeypatch, change, what, clip):
    at_step(monkeypatch, 7, change)  # the second batch of the second epoch
    message = rf"epoch 2, batch 2: the {what} at learning rate 0\.01; .*are from epoch 1 or before.*optimizer\.lr"
    with refuses(message):
        bench.train(*INDEFINITE, f"task.clip.by={clip}")
    assert not list(bench.results.rglob("runs/*/*/*.json"))
    (best,) = bench.results.rglob("best.ckpt")
    saved = torch.load(best, weights_only=True)
    assert len(saved["history"]) == 1
    assert all_finite(saved["state_dict"].values())


def test_the_first_epoch_leaves_no_checkpoint(bench, monkeypatch):
    at_step(monkeypatch, 1, without_a_number)
    with refuses("epoch 1, batch 1: the loss is nan"):
        bench.train(*INDEFINITE)
    assert not list(bench.results.rglob("*.ckpt"))


def test_weights_that_the_last_update_broke_are_not_scored(bench, monkeypatch):
    def broken(module, *_):
        module.head.hidden.weight.data.fill_(float("inf"))

    monkeypatch.setattr(BenchModule, "on_train_batch_end", broken)
    with refuses("epoch 1, batch 1: the weight is nan"):
        bench.train(*INDEFINITE, "trainer.limit_batches=1")
    assert not list(bench.results.rglob("*.ckpt"))


def test_a_metric_that_is_no_number_is_not_recorded(bench, monkeypatch):
    monkeypatch.setattr(toy.ToyMetric, "from_totals", staticmethod(lambda _: {"accuracy": float("nan")}))
    with refuses("dev/accuracy is nan"):
        bench.train(*INDEFINITE)
    assert not list(bench.results.rglob("*.json"))


def test_all_devices_stop_where_one_has_no_number(bench, monkeypatch):
    """The loss of the second device is finite; the gradients are those of both."""
    forked_ranks(monkeypatch)
    at_step(monkeypatch, 2, lambda head, loss: loss if distributed.get_rank() else without_a_number(head, loss))
    with refuses("epoch 1, batch 2: the gradient is nan"):
        bench.train("trainer.devices=2", *INDEFINITE)
    assert not list(bench.results.rglob("*.ckpt"))


# Memory.


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError(CPU_FULL),
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate(handle)"),
        MemoryError(),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
    ],
)
def test_memory_that_runs_out_is_one_line(error):
    assert ran_out(error)
    assert "out of memory" in str(console.explain(error))
    with refuses("out of memory while reading 5 rows; read fewer"), explained(lambda: "reading 5 rows", "read fewer"):
        raise error
    assert not ran_out(RuntimeError("mat1 and mat2 shapes cannot be multiplied"))


@cases("""
    training | stage
    true     | training on
    false    | scoring
""")
def test_a_run_without_memory_says_how_large_its_batch_was(bench, monkeypatch, training, stage):
    forward = toy.ToyHead.forward

    def full(head, *given):
        if head.training == training:
            raise RuntimeError(CPU_FULL)
        return forward(head, *given)

    monkeypatch.setattr(toy.ToyHead, "forward", full)
    message = rf"out of memory while {stage} 8 rows, \d+ tokens \(\d+ with padding\); lower task\.batch\.batch_size"
    with refuses(message):
        bench.train(*INDEFINITE)
    assert not list(bench.results.rglob("*.ckpt"))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of memory as Linux has them")
def test_a_sentence_too_long_for_the_memory_is_one_line():
    lstm = {"dim": 64, "projection_dim": 32, "cell_clip": 3, "proj_clip": 3, "n_layers": 2}
    cnn = {"filters": [[1, 32]], "n_highway": 1, "embedding": {"dim": 4}}
    bilm = BiLM(Options.parse({"lstm": lstm, "char_cnn": cnn})).requires_grad_(False).eval()
    bilm.encode([["a", "few", "words"]])

    def act() -> None:
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + (64 << 20), used + (64 << 20)))
        console.report(lambda: bilm.encode([["word"] * 3_000_000]))

    status, _, said = Fork(act, clean_environment()).finish()
    assert (status, said.count("\n")) == (2, 1), said
    assert "out of memory while computing layers of 1 sentences, 3000000 tokens; lower token_budget" in said


# Files of an unfinished run.


@pytest.fixture(scope="module")
def died(shared_bench):
    """The work folder of a run that died before its record."""
    return shared_bench.died(*INDEFINITE)


@pytest.fixture
def stopped(bench, shared_bench, died):
    """A copy of it, as that of the test's own run."""
    return Path(shutil.copytree(died, bench.results / died.relative_to(shared_bench.results)))


@for_each("name", "last.ckpt best.ckpt")
def test_no_damage_to_an_unfinished_run_passes(died, name):
    path = died / name
    said = refusals(path, lambda: read(died), 60, cuts(path))
    assert len(said) > 40
    assert all(name in line and "force=true" in line for line in said)


def cuts(path):
    """Lengths at which a file is cut short."""
    size = path.stat().st_size
    return 0, 1, 100, size // 2, size - 1


def read(folder):
    """All that a run takes from these files, as bytes and plain values."""
    unfinished.check(folder)
    last = unfinished.load_checkpoint(folder / "last.ckpt", unfinished.REMEDY)
    epochs = last["callbacks"]["KeepBest"]["selected"]
    weights = [saved["state_dict"] for saved in (last, unfinished.best(folder, last["history"][:epochs]))]
    dev = items.read(folder / items.DEV, items.RESTART)["dev"]
    numbers = [{name: value.numpy().tobytes() for name, value in part.items()} for part in weights]
    return numbers, last["history"], last["optimizer_states"][0]["state"][0]["exp_avg"].tolist(), dev.totals()


def test_a_damaged_run_ends_in_one_line_and_force_starts_it_again(bench, stopped):
    kept = (stopped / "best.ckpt").read_bytes()
    (stopped / "best.ckpt").write_bytes(kept[:-300])
    with refuses(r"best\.ckpt: damaged.*start the run again with force=true"):
        bench.train(*INDEFINITE)
    (stopped / "csv" / "version_0" / "metrics.csv").write_bytes(b"\xff\x00 no metrics")
    assert bench.train(*INDEFINITE, "force=true").epochs == 3


def test_a_run_that_an_earlier_version_began_goes_on_and_counts_its_epochs_from_one(bench, stopped):
    for name in ("last.ckpt", "best.ckpt"):
        saved = torch.load(stopped / name, weights_only=True)
        for epoch in saved["history"]:
            epoch["epoch"] -= 1
        if kept := saved.get("callbacks"):
            kept["KeepBest"]["epoch"] = kept["KeepBest"].pop("selected") - 1
        save_checkpoint(saved, stopped / name)
    record, whole = (bench.train(*INDEFINITE, *more) for more in ((), (f"results_root={bench.folder}/whole",)))
    assert record.history["epoch"] == [1, 2, 3]
    assert (record.epoch, record.metrics) == (whole.epoch, whole.metrics)


def test_a_checkpoint_of_another_run_is_refused(bench, stopped):
    other = bench.died(*INDEFINITE, "seed=2")
    for name, message in (("best.ckpt", "not the checkpoint of this run"), ("last.ckpt", "of another run")):
        shutil.copy(other / name, stopped / name)
        with refuses(rf"{name}.*{message}"):
            bench.train(*INDEFINITE)
    assert not list(bench.results.rglob("runs/*/*/*.json"))


@pytest.mark.parametrize(
    "key, value, message",
    [
        ("history", [1, 2], "not a checkpoint of a run"), ("loops", None, "not a checkpoint of a run"),
        ("state_dict", {"a": torch.zeros(1)}, "not a checkpoint of this model"),
        ("state_dict", {"a": torch.tensor([torch.inf])}, "'a' are not dense numbers that are finite"),
    ],
)  # fmt: skip
def test_a_checkpoint_of_another_shape_is_not_resumed_from(bench, stopped, key, value, message):
    path = stopped / "last.ckpt"
    save_checkpoint(torch.load(path, weights_only=True) | {key: value}, path)
    with refuses(rf"last\.ckpt: .*{message}.*force=true"):
        bench.train(*INDEFINITE)


@pytest.mark.parametrize("changes", [(), ("force=true",)])
@pytest.mark.parametrize(
    "make, name",
    [
        *((os.mkfifo, name) for name in "last.ckpt best.ckpt rank1.log csv lock".split()),
        *((os.mkdir, name) for name in "last.ckpt dev.items.npz forced lock".split()),
    ],
)
def test_what_no_run_makes_in_its_work_folder_is_told_before_training(bench, monkeypatch, make, name, changes):
    """A pipe would be waited for, and a folder would be in the way after an epoch, or at the end."""
    monkeypatch.setattr("elmo_bench.running.run.run_once", lambda *_: pytest.fail("it was trained"))
    folder = store.work(bench.results, "open", "toy", Identity(bench.validated(*INDEFINITE)).run)
    folder.mkdir(parents=True)
    make(folder / name)
    with refuses(f"{name}: (expected a regular file|neither a file nor a folder of a run)"):
        bench.train(*INDEFINITE, *changes)


def test_predict_refuses_another_version(bench, stopped):
    path = stopped / "best.ckpt"
    saved = torch.load(path, weights_only=True)
    saved["hyper_parameters"]["config"]["task"]["version"] = 9
    save_checkpoint(saved, path)
    with refuses("trained by version 9 of task toy; this is version 1"):
        prediction.load(str(path), task="toy")


# Numbers of the configuration, before anything is read.

CNN = "{_target_:elmo_bench.nn.char_cnn.CharCNN,_partial_:true,size:8,filters:{3:8},dropout:0.1}"


@cases(r"""
    argument                   | message
    task.fit.patience=-1       | task.fit.patience=-1: should be greater than or equal to 0
    fraction=1.5               | fraction=1.5: should be less than or equal to 1
    trainer.limit_batches=0    | trainer.limit_batches=0: a whole number from 1
    trainer.limit_batches=nan  | trainer.limit_batches=nan: a number that
    trainer.threads=100000     | trainer.threads=100000: should be less than or equal to 1024
    task.clip.value=nan        | task.clip.value=nan: a number that 32 bits can hold
    elmo.layers=[nan,1,1]      | elmo.layers=nan: a number that 32 bits can hold
    seed=100000000000000000000 | "seed=100000000000000000000: "
    task.optimizer.lr=1e38     | task.optimizer.lr=1e+38: a number that 32 bits can hold
    +task.optimizer.eps=-1     | task.optimizer or task.schedule: Invalid epsilon value
    task.optimizer.lr=''       | "task.optimizer or task.schedule: "
    task.average=1.5           | task.average=1.5: a block of keys is needed
    task.average={_target_:pytorch_lightning.callbacks.EMAWeightAveraging,decay:2.0} | task.average
    task.schedule={scheduler:{_target_:torch.optim.lr_scheduler.StepLR,_partial_:true,step_size:0},interval:epoch} | \
        "task.optimizer or task.schedule: "
""")
def test_numbers_that_cannot_be_used_are_refused_before_anything_is_read(bench, argument, message):
    is_refused(bench, argument, message)


@pytest.mark.parametrize(
    "argument, message",
    [
        (f"task.chars={CNN.replace('size:8', 'size:0')}", "task.chars.size=0: should be greater than 0"),
        (f"task.chars={CNN.replace('3:8', '3:-1')}", "task.chars.filters.3=-1: should be greater than 0"),
        (f"task.chars={CNN.replace('0.1', '1')}", "task.chars.dropout=1: should be less than 1"),
    ],
)
def test_so_are_those_in_a_block_that_is_typed_whole(bench, argument, message):
    is_refused(bench, argument, message)


def is_refused(bench, argument, message):
    with pytest.raises(Exception) as caught:  # noqa: PT011 (Hydra's own errors too)
        look_at(bench.compose(argument))
    assert message in str(console.explain(caught.value))


def look_at(cfg):
    """What a run does before it reads anything."""
    task = composing.validated(cfg).task
    check_blocks(task)
    rehearse(task)
