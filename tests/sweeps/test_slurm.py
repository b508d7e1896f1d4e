"""Sweeps on a real Slurm of one node, which the tests start; they are skipped where it is not installed.

The runs are of the toy task. With `REAL=sst5`, or another task, the first test has short runs of it at mini instead; a
cache that `ELMO_BENCH_CACHE` names spares it the training of the biLM.
"""

import os
import random
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import cycle, product
from pathlib import Path

import pytest

from elmo_bench.records import items, store
from elmo_bench.sweeps import queued
from elmo_bench.sweeps.cluster import QueuedRun, cancel, queue
from elmo_bench.system import places
from tests import fakes, slurm_cluster
from tests.conftest import Bench
from tests.running.test_train import result

LACKING = slurm_cluster.missing()
pytestmark = pytest.mark.skipif(bool(LACKING), reason=f"no Slurm here: {', '.join(LACKING)} not installed")
PAGE = """
# @package _global_
hydra:
  mode: MULTIRUN
  sweeper:
    params:
      elmo.where: none,input
      seed: 1,2,3
"""
SMALL = ("on=slurm", "cluster.run.cpus_per_task=1", "cluster.run.mem_gb=0.5", "cluster.prepare.mem_gb=0.5",
         "cluster.at_once=3", "cluster.warning=0")  # fmt: skip


@pytest.fixture(scope="module")
def slurm(tmp_path_factory) -> Iterator[dict[str, str]]:
    """Of all tests here. Where it does not start, they are skipped, unless `make test-slurm` asks for it."""
    with ExitStack() as opened:
        try:
            environment = opened.enter_context(slurm_cluster.cluster(tmp_path_factory.mktemp("slurm")))
        except slurm_cluster.NotStarted as error:
            if "TEST_SLURM" in os.environ:
                raise
            pytest.skip(f"Slurm does not start here: {str(error).splitlines()[-1]}")
        yield environment


@pytest.fixture
def toy(tmp_path, slurm, monkeypatch) -> Iterator[Bench]:
    """The toy task and a sweep of six points; the runs of a seed wait while `hold/<seed>` exists."""
    for key in ("SLURM_CONF", "PATH"):
        monkeypatch.setenv(key, slurm[key])
    made = Bench(tmp_path)
    (made.conf / "sweep" / "six.yaml").write_text(PAGE.lstrip())
    (tmp_path / "hold").mkdir()
    yield made
    cancel([*queue()])  # what a test that failed left


def points(toy: Bench, *changes: str) -> list[str]:
    """The arguments that say what is run, and where its files lie."""
    if (task := os.environ.get("REAL")) is None:
        return ["task=toy", "scale=open", *toy.shared(*changes)]
    files = [f"cache_root={os.environ.get('ELMO_BENCH_CACHE', toy.folder / 'cache')}", f"results_root={toy.results}"]
    own = [f"task={task}", "scale=mini", "task.fit.epochs=2", "trainer=cpu", "trainer.limit_batches=20"]
    return [*own, *files, *changes]


def command(toy: Bench, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    hold = {"HOLD": str(toy.folder / "hold"), "OMP_NUM_THREADS": "1", "PYTHONPATH": os.getcwd()}
    return toy.process(name, *arguments, **hold)


def sweep(toy: Bench, *changes: str) -> str:
    """The output of the command that queues or runs the six points."""
    done = command(toy, "sweep", "+sweep=six", *points(toy, *changes))
    assert done.returncode == 0, done.stderr
    return done.stdout


def run_here(toy: Bench) -> None:
    """Trains the six points without Slurm; those of the toy task in this process, which is quicker."""
    if "REAL" in os.environ:
        sweep(toy)
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(places, "CONF", toy.conf)
        patch.setattr("elmo_bench.layers.bilm.BilmLayers", fakes.FakeBiLM)
        for where, seed in product(("none", "input"), (1, 2, 3)):
            toy.train(f"elmo.where={where}", f"seed={seed}")


def until(ready: Callable[[], bool], seconds: float, toy: Bench) -> None:
    """Waits; if it takes too long, says how far everything is."""
    end = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < end, str(queued.status(toy.results))
        time.sleep(0.5)


def states(toy: Bench) -> list[str]:
    return [state for rows in queued.status(toy.results).values() for state, _ in rows]


def held_runs(toy: Bench) -> list[Path]:
    """The work folders of the runs that have finished an epoch."""
    return [path.parent for path in toy.results.rglob("last.ckpt")]


def records(results: Path) -> dict[str, tuple]:
    """All records and their per-example results, without the times."""
    found = {}
    for path in sorted((results / "runs").rglob("*.json")):
        found[path.stem] = result(store.read(path)), items.path_of(path).read_bytes()
    return found


def run_of(toy: Bench, seed: int) -> QueuedRun:
    """The first run of a seed."""
    (submission,) = queued.submissions(toy.results)
    return next(run for run in submission.runs if run.title.endswith(f"seed {seed}"))


def job(toy: Bench, seed: int) -> str:
    """Its first job."""
    return run_of(toy, seed).jobs[0]


def starts(toy: Bench, seed: int) -> int:
    """How often it was started."""
    return run_of(toy, seed).starts


def slurm_does(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


def test_killed_requeued_and_timed_out_runs_are_recorded_once_and_equal_local_ones(toy):
    for seed in (1, 2, 3):
        (toy.folder / "hold" / str(seed)).touch()
    estimate, said = sweep(toy, *SMALL).splitlines()
    assert estimate.startswith("6 runs to train; ")
    assert said == "six: 0 recorded, 0 queued before, 6 queued now; elmo-bench queue shows their progress"
    until(lambda: len(held_runs(toy)) == 3, 600, toy)
    assert sorted(states(toy)) == ["running"] * 3 + ["waiting"] * 3
    assert "0 recorded, 6 queued before, 0 queued now" in sweep(toy, *SMALL)

    slurm_does("scontrol", "update", f"jobid={job(toy, 3)}", "endtime=now+1seconds")
    slurm_does("scancel", "--signal=KILL", "--full", job(toy, 1))
    slurm_does("scontrol", "requeue", job(toy, 2))
    until(lambda: starts(toy, 1) == starts(toy, 3) == 2 and queue()[job(toy, 2)].waits, 300, toy)
    for seed in (1, 2, 3):
        (toy.folder / "hold" / str(seed)).unlink()
    until(lambda: states(toy) == ["recorded"] * 6, 300, toy)

    logs = "".join(path.read_text() for path in toy.results.rglob("*_log.out"))
    assert logs.count("resuming after epoch 1") == 3
    on_cluster = records(toy.results)
    assert [logs.count(f"{run}.json\n") for run in on_cluster] == [1] * 6  # the line that a run ends with
    toy.results = toy.folder / "local"
    run_here(toy)
    assert records(toy.results) == on_cluster


def test_what_is_cancelled_ends_and_typed_again_goes_on(toy):
    (toy.folder / "hold" / "1").touch()
    sweep(toy, *SMALL, "seeds=1")
    until(lambda: len(held_runs(toy)) == 2, 300, toy)
    assert queued.cancel(toy.results) == 4  # two runs and their successors
    until(lambda: states(toy) == ["cancelled"] * 2, 300, toy)
    (toy.folder / "hold" / "1").unlink()
    assert "2 queued now" in sweep(toy, *SMALL, "seeds=1")
    until(lambda: states(toy) == ["recorded"] * 2, 300, toy)


def test_a_run_that_cannot_succeed_stops_no_other_is_not_tried_again_and_says_why(toy):
    sweep(toy, *SMALL, "seeds=1", "elmo.layers=7")
    until(lambda: sorted(states(toy)) == ["failed", "recorded"], 300, toy)  # the baseline has no layers
    (line,) = [line for state, line in queued.status(toy.results).popitem()[1] if state == "failed"]
    assert "the biLM's layers are 0 (tokens) to 2" in line
    assert "log: " in line


def preempt(job: str, kind: str) -> None:
    """Interrupts a running job; one that has just ended is left alone."""
    commands = {
        "SIGTERM, SIGUSR2": [["scancel", "--signal=TERM", job], ["scancel", "--signal=USR2", job]],
        "SIGKILL": [["scancel", "--signal=KILL", "--full", job]],
        "requeue": [["scontrol", "requeue", job]],
        "time limit": [["scontrol", "update", f"jobid={job}", "endtime=now+1seconds"]],
    }
    for command in commands[kind]:
        subprocess.run(command, capture_output=True)


def test_pre_empted_at_random_moments_records_are_those_of_undisturbed_runs(toy, monkeypatch):
    """By turns by four kinds of interruption; PREEMPTIONS is their number, by default 4.

    The sweep is typed again only if a run is lost: a job may be ended before the first line of its script is through.
    """
    length = ("task.fit.epochs=40", "cluster.attempts=40")
    kinds = cycle(("SIGTERM, SIGUSR2", "SIGKILL", "requeue", "time limit"))
    draw, limited = random.Random(1), set[str]()  # jobs whose time runs out: not interrupted otherwise
    monkeypatch.setenv("SLOW", "0.08")
    sweep(toy, *SMALL, *length)
    for _ in range(int(os.environ.get("PREEMPTIONS", "4"))):
        until(lambda: any(each.state == "RUNNING" for each in queue().values()) or not unfinished(toy), 300, toy)
        time.sleep(draw.uniform(1, 6))
        running = [job for job, each in queue().items() if each.state == "RUNNING" and job not in limited]
        if running:
            job, kind = draw.choice(sorted(running)), next(kinds)
            preempt(job, kind)
            limited |= {job} if kind == "time limit" else set()
    while {*states(toy)} != {"recorded"}:
        until(lambda: not unfinished(toy), 600, toy)
        if "failed" in states(toy):
            sweep(toy, *SMALL, *length)
    on_cluster, toy.results = records(toy.results), toy.folder / "local"
    monkeypatch.delenv("SLOW")
    sweep(toy, length[0])
    assert records(toy.results) == on_cluster


def unfinished(toy: Bench) -> bool:
    """Whether a run is still under way."""
    return bool({*states(toy)} & {"running", "waiting"})


def test_what_slurm_refuses_is_told_in_one_line(toy):
    asked = "sweep +sweep=six task=toy scale=open on=slurm cluster.run.gpus_per_node=1".split()
    done = toy.process(*asked, *toy.shared())
    assert done.returncode == 2
    assert done.stderr.startswith(
        "error: Slurm does not accept the jobs: Invalid generic resource (gres) specification; see"
    )
    assert len(done.stderr.splitlines()) == 1
    assert not queue()
