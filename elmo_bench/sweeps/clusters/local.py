"""Runs several commands in parallel, each in its own process with its share of the cores.

Their output is passed on line by line; on a terminal, one row per running command shows its progress.
"""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from elmo_bench.system import children
from elmo_bench.system.errors import Interrupted, UserError
from elmo_bench.system.machine import cores
from elmo_bench.system.terminal import signals
from elmo_bench.system.terminal.streams import LINES, MARK

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

GRACE = 5.0  # seconds that an interrupted command has to exit before it is killed


class Job(NamedTuple):
    """A command and its name in messages."""

    title: str
    command: Sequence[str]


Ended = Callable[[int, UserError | None], str]  # the number of a job that has ended, its error -> how far all jobs are


def run_jobs(
    jobs: Sequence[Job], at_once: int, ended: Ended = lambda i, error: "", gpus: Sequence[str] = (), each: int = 1
) -> list[UserError | None]:
    """Runs all jobs in order, at most `at_once` at a time; a failed job does not stop the others.

    Args:
        ended: called whenever a job has ended; what it returns is printed or, on a terminal, shown until the next.
        gpus: are dealt out, as CUDA_VISIBLE_DEVICES names them; where there are fewer than jobs, they are shared.
        each: how many GPUs a job takes.

    Returns:
        For each job its error, or None.

    A signal that ends this process (`terminal.signals`) interrupts every running job, waits for it, and is raised as
    `KeyboardInterrupt`. Where this process is killed, the jobs that are commands of ours end with it.
    """
    return _Pool(jobs, at_once, ended, gpus, each).run()


class _Pool:
    def __init__(self, jobs: Sequence[Job], at_once: int, ended: Ended, gpus: Sequence[str], each: int):
        self.jobs, self.at_once, self.ended, self.gpus, self.each = jobs, at_once, ended, gpus, each
        self.taken: dict[int, list[str]] = {}  # the GPUs of each running job
        self.lines: queue.Queue[tuple[int, str | None]] = queue.Queue()  # (job, line); line None: end of output
        self.processes: dict[int, subprocess.Popen[str]] = {}
        self.last: dict[int, str] = {}  # the newest error line of each job
        self.outcomes: dict[int, UserError | None] = {}
        self.progress = _rows()
        self.rows: dict[int, TaskID] = {}
        self.all = self.progress.add_task("", now="", total=None, visible=False)  # how far all jobs are, below them

    def run(self) -> list[UserError | None]:
        waiting = list(range(len(self.jobs)))
        with signals.heard(), self.progress:
            try:
                while waiting or self.processes:
                    while waiting and len(self.processes) < self.at_once:
                        self._start(i := waiting.pop(0))
                        self.rows[i] = self.progress.add_task(self.jobs[i].title, now="", total=None)
                    with suppress(queue.Empty):
                        self._take(*self.lines.get(timeout=0.2))
            except BaseException:
                self._stop()
                raise
        return [self.outcomes[i] for i in range(len(self.jobs))]

    def _start(self, i: int) -> None:
        """Starts a job in its own process group, so that a Ctrl-C on the terminal reaches it only once, through us."""
        threads = str(max(1, cores() // self.at_once))
        environment = {"OMP_NUM_THREADS": threads, **os.environ, **children.environment(), "PYTHONUNBUFFERED": "1"}
        if sys.stdout.isatty():
            environment |= {LINES: "1"}
        if self.gpus:
            taken = [gpu for each in self.taken.values() for gpu in each]
            self.taken[i] = sorted(self.gpus, key=taken.count)[: self.each]  # those with the fewest jobs
            environment["CUDA_VISIBLE_DEVICES"] = ",".join(self.taken[i])
        process = subprocess.Popen(
            self.jobs[i].command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, encoding="utf-8", errors="replace", env=environment, process_group=0,
        )  # fmt: skip
        self.processes[i] = process
        threading.Thread(target=self._read, args=(i, process), daemon=True).start()

    def _read(self, i: int, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        with process.stdout as output:
            for line in output:
                self.lines.put((i, line.rstrip("\n")))
        self.lines.put((i, None))

    def _take(self, i: int, line: str | None) -> None:
        title = self.jobs[i].title
        if line is None:
            status = self.processes.pop(i).wait()
            self.taken.pop(i, None)
            self.outcomes[i] = error = self._error(i, status)
            self.progress.remove_task(self.rows[i])
            self._show(self.ended(i, error))
        elif line.startswith(MARK):
            self.progress.update(self.rows[i], now=line.removeprefix(MARK))
        elif line.startswith("error: "):
            self.last[i] = line.removeprefix("error: ")
        elif line.strip():
            said = line if line.startswith(title) else f"{title}: {line}"
            self.progress.console.print(said, markup=False, soft_wrap=True)

    def _show(self, line: str) -> None:
        """How far all jobs are: a row on a terminal, else a line."""
        if not self.progress.disable:
            self.progress.update(self.all, description=line, visible=bool(line))
        elif line:
            print(line, flush=True)

    def _error(self, i: int, status: int) -> UserError | None:
        if status == 0:
            return None
        for kind in (UserError, Interrupted):
            if status == kind.status and i in self.last:
                return kind(self.last[i])
        how = f"was killed by {signal.Signals(-status).name}" if status < 0 else f"failed with exit status {status}"
        return UserError(f"{self.jobs[i].title}: {how}; its output is above")

    def _stop(self) -> None:
        """Interrupts all running jobs, and kills those that do not exit."""
        ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN  # in a background job, whose children ignore it too
        for process in self.processes.values():
            _signal(process, signal.SIGTERM if ignored else signal.SIGINT)
        end = time.monotonic() + GRACE
        for process in self.processes.values():
            try:
                process.wait(max(0.0, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                _signal(process, signal.SIGKILL)
                process.wait()


def _rows() -> Progress:
    """A row for each running job if stdout is a terminal, and their output above the rows."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    title, now = (TextColumn(text, markup=False) for text in ("{task.description}", "{task.fields[now]}"))
    console = Console(highlight=False)
    columns = SpinnerColumn(), title, TimeElapsedColumn(), now
    return Progress(*columns, console=console, disable=not console.is_terminal, transient=True)


def _signal(process: subprocess.Popen[str], number: signal.Signals) -> None:
    """Signals the command and all processes that it has started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)
