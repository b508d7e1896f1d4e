"""Several devices: processes on the CPU (gloo) that share the batches of a run.

The first test starts a new process, as users do; in the others it is a fork.
"""

import itertools
import json
import signal
import threading
import time

import pytest
import torch
from hydra.utils import instantiate

from elmo_bench.records import items, store
from elmo_bench.running import ranks
from elmo_bench.running.build import build
from elmo_bench.running.ranks import Rank, started
from elmo_bench.text.batching import BucketSampler
from tests.command import forked_ranks
from tests.fakes import refuses

pytestmark = pytest.mark.slow

CLOSE = {"cpu": (1e-6, 1e-7), "gpu": (1e-3, 1e-4)}  # relative and absolute error
TWO = ("trainer.devices=2", "elmo.where=none", "task.head.dropout=0.0")


@pytest.mark.parametrize("accelerator", ["cpu", pytest.param("gpu", marks=pytest.mark.gpu(2))])
def test_an_update_has_the_mean_gradient_of_the_ranks_batches(bench, accelerator):
    """One update of two processes is one of a process that sees both batches."""
    plain = ("task.optimizer._target_=torch.optim.SGD", "task.optimizer.lr=1.0", "task.clip.value=null")
    limits = "task.fit.epochs=1", "trainer.limit_batches=1"
    record = bench.train(*TWO, *plain, *limits, f"trainer.accelerator={accelerator}")
    saved = torch.load(bench.results / record.checkpoint, "cpu", weights_only=True)["state_dict"]

    run = bench.validated(*TWO, *plain)
    torch.manual_seed(run.seed)
    reader = instantiate(run.task.reader)
    rows = reader.load()["train"]
    torch.manual_seed(run.seed)
    module = build(run, reader, None)
    lengths = [len(row["tokens"]) for row in rows]
    batches = BucketSampler(lengths, run.task.batch.batch_size, run.seed).batches(0)[:2]
    loss = torch.stack([module(reader.collate([rows[i] for i in batch])).loss for batch in batches]).mean()
    loss.backward()
    assert record.updates == 1
    rtol, atol = CLOSE[accelerator]
    for name, parameter in module.named_parameters():
        assert parameter.grad is not None
        torch.testing.assert_close(saved[name], parameter.detach() - parameter.grad, rtol=rtol, atol=atol)


LONG = (*TWO, "task.fit.epochs=12")


@pytest.fixture(scope="module")
def whole(shared_bench):
    """The record of a run on two devices."""
    with pytest.MonkeyPatch.context() as patch:
        forked_ranks(patch)
        return shared_bench.train(*LONG)


def test_every_row_is_scored_once_and_predictions_are_complete(shared_bench, whole):
    bench, record = shared_bench, whole
    folder = store.work(bench.results, "open", "toy", record.run)
    predictions = [json.loads(line) for line in (folder / items.PREDICTIONS).read_text().splitlines()]
    lines = (bench.data / "toy" / "test.txt").read_text().splitlines()
    gold = [[word.split("/")[1] for word in line.split()] for line in lines]
    assert [len(tags) for tags in predictions] == [len(tags) for tags in gold]
    pairs = list(zip(itertools.chain(*gold), itertools.chain(*predictions), strict=True))
    assert record.metrics["test"]["accuracy"] == pytest.approx(100 * sum(a == b for a, b in pairs) / len(pairs))
    kept = items.read(items.path_of(store.place(bench.results, "open", "toy", record.run)))
    assert kept["test"].rows.tolist() == kept["dev"].rows.tolist() == list(range(40))
    words = sum(len(line.split()) for line in (bench.data / "toy" / "train.txt").read_text().splitlines())
    assert record.history["tokens"][0] <= words  # the fifth of five batches does not go round
    assert record.updates == 12 * (5 // 2)


@pytest.fixture
def others(monkeypatch):
    """The processes of the other ranks, as they are started."""
    return forked_ranks(monkeypatch)


def test_a_killed_rank_ends_the_run_in_one_line_and_the_run_is_resumed(bench, whole, others):
    folder = store.work(bench.results, "open", "toy", whole.run)

    def kill() -> None:
        while not (folder / "last.ckpt").is_file():
            time.sleep(0.01)
        others[-1].kill()

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    with refuses(r"device 1 was killed by signal 9; running the command again resumes"):
        bench.train(*LONG)
    killer.join()
    assert (folder / "last.ckpt").is_file()
    assert not list(bench.results.rglob("runs/*/*/*.json"))
    resumed = bench.train(*LONG)
    assert resumed.metrics == whole.metrics
    assert resumed.history["loss"] == whole.history["loss"]


def test_an_error_of_a_rank_is_told_by_the_first(tmp_path, others):
    task = {"config": {}, "folder": str(tmp_path), "vectors": None}

    def fail() -> None:
        with started(2, task, tmp_path):
            others[0].wait()
            raise RuntimeError("connection closed by peer")

    with refuses(r"the process of device 1 ended with status"):
        fail()


def test_a_rank_ends_with_the_first(tmp_path, others):
    task = {"parent": 1, "config": {}, "folder": "", "vectors": None}
    ranks._start(Rank(1, 2, 1), task, tmp_path)
    assert others[0].wait() == -signal.SIGKILL
