"""Pre-empts the runs of a sweep on a real Slurm, again and again: `python -m tests.preemptions number=20`.

Six tiny runs are interrupted at random moments, by turns with SIGTERM and then SIGUSR2, with SIGKILL, with `scontrol
requeue` and by their time limit. The sweep is typed once, and again only if a run is lost: a job may be ended before
the first line of its script is through. At the end every record must equal that of an undisturbed run on this machine.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from itertools import cycle
from pathlib import Path

import pytest

from elmo_bench.clusters import slurm
from elmo_bench.sweeps import queued
from elmo_bench.system.errors import UserError
from elmo_bench.system.terminal.command import Argument, Command, whole
from tests import slurm_cluster
from tests.conftest import Bench
from tests.sweeps.test_slurm import PAGE, SMALL, records, states, sweep

COMMAND = Command(
    "preemptions",
    "pre-empt the runs of a sweep on a real Slurm",
    (
        Argument("number", "of pre-emptions", 20, parse=whole(1, 1000)),
        Argument("seed", "of the moments", 1, parse=whole()),
    ),
)
LENGTH = ("task.fit.epochs=40", "cluster.attempts=40")
KINDS = ("SIGTERM, SIGUSR2", "SIGKILL", "requeue", "SIGTERM, SIGUSR2", "SIGKILL", "time limit")


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


def disturbed(toy: Bench, number: int, draw: random.Random) -> Counter[str]:
    """Interrupts running jobs at random moments until there were so many interruptions, or none is queued any more."""
    done: Counter[str] = Counter()
    kinds = cycle(KINDS)
    limited: set[str] = set()  # jobs whose time runs out: not interrupted otherwise
    while done.total() < number and {*states(toy)} & {"running", "waiting"}:
        time.sleep(draw.uniform(1, 6))
        running = [job for job, each in slurm.queue().items() if each.state == "RUNNING" and job not in limited]
        if not running:
            continue
        job, kind = draw.choice(sorted(running)), next(kinds)
        preempt(job, kind)
        limited |= {job} if kind == "time limit" else set()
        done[kind] += 1
        print(f"{done.total()} of {number}: {kind}, job {job}", flush=True)
    return done


def main() -> None:
    """The entry point. Raises `UserError` if a record differs, or Slurm is not installed."""
    asked = COMMAND.parse()
    if lacking := slurm_cluster.missing():
        raise UserError(f"not installed: {', '.join(lacking)}")
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        folder = Path(name)
        with slurm_cluster.cluster(folder / "slurm") as environment:
            for key, value in {**{key: environment[key] for key in ("SLURM_CONF", "PATH")}, "SLOW": "0.08"}.items():
                patch.setenv(key, value)
            compare(Bench(made(folder / "toy")), asked["number"], random.Random(asked["seed"]))


def made(folder: Path) -> Path:
    (folder / "hold").mkdir(parents=True)
    return folder


def compare(toy: Bench, number: int, draw: random.Random) -> None:
    """Runs the sweep disturbed and undisturbed. Raises `UserError` if a record differs."""
    (toy.conf / "sweep" / "six.yaml").write_text(PAGE.lstrip())
    sweep(toy, *SMALL, *LENGTH)
    kinds = disturbed(toy, number, draw)
    typed = 1
    while {*states(toy)} != {"recorded"}:
        time.sleep(1)
        if "failed" in states(toy):
            sweep(toy, *SMALL, *LENGTH)
            typed += 1
    print("\n".join(line for each in queued.status(toy.results) for line in each.lines()), flush=True)
    starts = sum(path.read_text().count("started") for path in toy.results.rglob("*.jobs"))
    on_cluster, toy.results = records(toy.results), toy.folder / "local"
    os.environ.pop("SLOW")
    sweep(toy, LENGTH[0])
    equal = sum(on_cluster.get(run) == told for run, told in records(toy.results).items())
    each = ", ".join(f"{count} by {kind}" for kind, count in kinds.items())
    print(f"{kinds.total()} pre-emptions ({each}), {starts} starts, the sweep typed {typed} times")
    print(f"{equal} of 6 records equal the undisturbed ones", flush=True)
    if equal < 6:
        raise UserError("records differ, or are missing")


if __name__ == "__main__":
    sys.exit(COMMAND.run(main))
