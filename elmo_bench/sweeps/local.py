"""Trains the runs of a plan as processes on this machine, each with its share of the cores.

Their output is passed on line by line; on a terminal, one row per running process shows its progress. If one fails, the
others continue.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import cycle, islice
from queue import Queue
from statistics import fmean
from threading import Lock
from typing import NamedTuple

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from elmo_bench.records import store
from elmo_bench.records.times import in_time
from elmo_bench.sweeps.plan import Plan, Point, read_records
from elmo_bench.system import machine, processes
from elmo_bench.system.console import LINES, MARK
from elmo_bench.system.errors import Interrupted, UserError

GRACE = 5.0  # seconds that an interrupted command has to exit before it is killed
TRAIN = processes.python("elmo_bench", "train")
PREPARE = processes.python("elmo_bench", "prepare")


def run_missing(plan: Plan) -> None:
    """Trains the runs without a record. Every error is shown when it occurs, and only once.

    Raises:
        KeyboardInterrupt: a signal. The interrupted runs resume from their last epoch when they are run again.
    """
    if recorded := len(plan.runs) - len(plan.new):
        print(f"{plan.counts(recorded)} and not run again (force=true does)", flush=True)
    if new := _in_order(plan):
        print(plan.cost(new), flush=True)
        train(plan, new)
        plan.records = read_records(plan.request, plan.runs)


def train(plan: Plan, new: Sequence[Point]) -> None:
    """Trains these runs, and prints how many are recorded whenever one has ended."""
    trainer, recorded = plan.runs[0].config.trainer, len(plan.runs) - len(plan.new)
    gpus = [] if trainer.accelerator == "cpu" or trainer.gpu is not None else machine.gpus()
    at_once = plan.request.jobs or (1 if gpus else min(2, machine.cores()))
    took = dict[str, float]()  # by run, the seconds
    jobs = [Job(each.title, [*TRAIN, "hydra.mode=RUN", *each.overrides]) for each in new]

    def ended(i: int, error: UserError | None) -> str:
        nonlocal recorded
        rest, sign = "", plan.request.table.impossible
        if error is None:
            recorded += 1
            rest = _rest(plan, new, new[i], took, at_once)
        elif sign and sign in str(error):
            plan.impossible[new[i]] = error
        else:
            plan.failed[new[i]] = plan.show(error, jobs[i].title)
        return plan.counts(recorded) + rest

    run_jobs(jobs, min(at_once, len(jobs)), ended, gpus, trainer.devices)


def _rest(plan: Plan, new: Sequence[Point], ended: Point, took: dict[str, float], at_once: int) -> str:
    """The expected time of the runs that have not ended, corrected by the time that the others took, as a message."""
    config = ended.config
    path = store.place(config.results_root, config.scale.name, config.task.name, ended.run)
    took[ended.run] = store.read(path).seconds
    left = [each.run for each in new if each.run not in took and each not in plan.failed]
    mean = fmean(took.values())
    factor = sum(took.values()) / sum(plan.expected.get(run, mean) for run in took)
    seconds = sum(plan.expected.get(run, mean) * factor for run in left) / min(at_once, len(left) or 1)
    return f"; the others take about {in_time(seconds)}, as measured" if left else ""


def _in_order(plan: Plan) -> list[Point]:
    """The runs to train: for each task, one with ELMo first, as it prepares what others read (the biLM, its layers).

    Then the runs without ELMo, which do not wait for it.
    """
    first = {each.task: each for each in reversed(plan.new) if not each.config.baseline}
    return sorted(plan.new, key=lambda each: (each is not first.get(each.task), not each.config.baseline))


# Commands in parallel.


class Job(NamedTuple):
    """A command and its name in messages."""

    title: str
    command: Sequence[str]


Ended = Callable[[int, UserError | None], str]  # the number of an ended job, its error -> the progress of all jobs


def run_jobs(
    jobs: Sequence[Job], at_once: int, ended: Ended = lambda i, error: "", gpus: Sequence[str] = (), each: int = 1
) -> list[UserError | None]:
    """Runs all jobs in order, at most `at_once` at a time; a failed job does not stop the others.

    Args:
        ended: called whenever a job has ended; its result is printed or, on a terminal, shown until the next.
        gpus: the GPUs to distribute, as in CUDA_VISIBLE_DEVICES; shared if there are fewer than jobs.
        each: GPUs per job.

    Returns:
        For each job its error, or None.

    A signal that ends this process (`processes.signals_heard`) interrupts every running job, waits for it, and is
    raised as `KeyboardInterrupt`. If this process is killed, jobs that are our commands end with it.
    """
    pool, dealt, free = _Pool(ended), cycle(gpus), Queue[list[str]]()
    for _ in range(at_once):
        free.put([*dict.fromkeys(islice(dealt, each))])
    with processes.signals_heard(), pool.progress, ThreadPoolExecutor(at_once) as threads:
        try:
            outcomes = []
            for i, job in enumerate(jobs):
                given = free.get()
                pool.processes.append(_started(job, at_once, given))
                outcomes.append(threads.submit(pool.follow, i, job.title, pool.processes[-1]))
                outcomes[-1].add_done_callback(lambda _, given=given: free.put(given))
            return [outcome.result() for outcome in outcomes]
        except BaseException:
            pool.stop()
            raise


def _started(job: Job, at_once: int, gpus: Sequence[str]) -> subprocess.Popen[str]:
    """Starts a job in its own process group, so that a Ctrl-C on the terminal reaches it only once, through us."""
    threads = str(max(1, machine.cores() // at_once))
    environment = {"OMP_NUM_THREADS": threads, **os.environ, **processes.environment(), "PYTHONUNBUFFERED": "1"}
    if sys.stdout.isatty():
        environment[LINES] = "1"
    if gpus:
        environment["CUDA_VISIBLE_DEVICES"] = ",".join(gpus)
    return subprocess.Popen(
        job.command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, encoding="utf-8", errors="replace", env=environment, process_group=0,
    )  # fmt: skip


class _Pool:
    """The output of running jobs, and the progress of all."""

    def __init__(self, ended: Ended):
        self.ended, self.one_at_a_time, self.stopped = ended, Lock(), False
        self.processes: list[subprocess.Popen[str]] = []
        title, now = (TextColumn(text, markup=False) for text in ("{task.description}", "{task.fields[now]}"))
        terminal = Console(highlight=False)
        columns = SpinnerColumn(), title, TimeElapsedColumn(), now
        self.progress = Progress(*columns, console=terminal, disable=not terminal.is_terminal, transient=True)
        self.all = self.progress.add_task("", now="", total=None, visible=False)  # the progress of all jobs, below them

    def follow(self, i: int, title: str, process: subprocess.Popen[str]) -> UserError | None:
        """Passes on the output of a job until it has ended; returns its error."""
        row, last = self.progress.add_task(title, now="", total=None), None
        with process:
            for line in (each.rstrip("\n") for each in process.stdout or ()):
                if line.startswith(MARK):
                    self.progress.update(row, now=line.removeprefix(MARK))
                elif line.startswith("error: "):
                    last = line.removeprefix("error: ")
                elif line.strip():
                    shown = line if line.startswith(title) else f"{title}: {line}"
                    self.progress.console.print(shown, markup=False, soft_wrap=True)
        error, status = None, process.returncode
        kinds = {kind.status: kind for kind in (UserError, Interrupted)}
        if status in kinds and last is not None:
            error = kinds[status](last)
        elif status:
            how = f"was killed by {signal.Signals(-status).name}" if status < 0 else f"failed with exit status {status}"
            error = UserError(f"{title}: {how}; its output is above")
        with self.one_at_a_time:
            far = "" if self.stopped else self.ended(i, error)
            self.progress.remove_task(row)
            self.progress.update(self.all, description=far, visible=bool(far))
            if far and self.progress.disable:
                print(far, flush=True)
        return error

    def stop(self) -> None:
        """Interrupts all running jobs, and kills jobs that do not exit, with all processes they have started."""
        ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN  # a background job, whose children ignore it, too
        self.stopped, end = True, time.monotonic() + GRACE
        running = [process for process in self.processes if process.poll() is None]
        for number in (signal.SIGTERM if ignored else signal.SIGINT, signal.SIGKILL):
            for process in running:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, number)
            for process in running:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(max(0.0, end - time.monotonic()))
