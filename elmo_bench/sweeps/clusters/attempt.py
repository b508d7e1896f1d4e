"""One start of a run in a job of Slurm, and what follows if it does not come to its end.

- A pre-emption or a coming time limit (SIGUSR2): the job is queued again in its place, under its own id.
- Anything else that ends it, such as SIGKILL, a failed node or `scancel`: its successor starts. The first line of every
  job's script queues one (`start.sh`); Slurm drops it (`afternotok`) when the job ends well.

Either way the run goes on from its last epoch. It is started `attempts` times in all. The training is a process of its
own, as on one machine, and deaf to the signals of Slurm, which reach every process of a job: submitit alone decides
what follows, and until then the training goes on.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from elmo_bench.records import store
from elmo_bench.system import children
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage import limits

if TYPE_CHECKING:
    from submitit.helpers import DelayedSubmission

START = Path(__file__).with_name("start.sh")
RUNS = "runs"  # a file in the folder of a submission: the name of each task's run, a line each, for START
CANCELLED = "cancelled"  # another: what has not started does nothing
WRONG = UserError.status  # of an error that another start would not mend


def first_line(folder: Path, attempts: int) -> str:
    """Of the script of a run's job: the start is noted, and the successor queued."""
    return f'sh {shlex.quote(str(START))} {shlex.quote(str(folder))} {attempts} "$0" "$@"'


@dataclass(frozen=True)
class JobJournal:
    """The jobs of one run, in a file of lines `queued ID`, `queued ID after ID` and `started ID`; it need not exist.

    The first line is added where the run is submitted, the others by its jobs (`start.sh`). It is kept on the file
    system that all nodes share. Short lines in append mode are whole on it.
    """

    path: Path

    def queued(self, job: str) -> None:
        """Adds a job."""
        limits.regular(self.path)
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(f"queued {job}\n")

    @property
    def jobs(self) -> list[str]:
        """The ids of all jobs, the newest last."""
        return list(dict.fromkeys(line.split()[1] for line in self._lines()))

    @property
    def starts(self) -> int:
        """How often the run was started."""
        return sum(line.startswith("started ") for line in self._lines())

    def _lines(self) -> list[str]:
        return self.path.read_text(encoding="utf-8").splitlines() if self.path.is_file() else []


@dataclass(frozen=True)
class Attempt:
    """Is called in the job.

    Attributes:
        command: that trains it, or goes on with it.
        record: the file that says it is finished.
        journal: of its jobs; it lies in the folder of the submission.
        attempts: how often it is started in all.
    """

    title: str
    command: Sequence[str]
    record: Path
    journal: JobJournal
    attempts: int

    def __call__(self) -> None:
        """Trains the run to its end.

        Raises:
            RuntimeError: it did not come to its end; the successor starts.
        """
        if store.is_finished(self.record) or (self.journal.path.parent / CANCELLED).exists():
            return
        if self.journal.starts > self.attempts:
            raise RuntimeError(f"{self.title}: given up after {self.attempts} starts")
        _run(self.command, f"{self.title}: ")

    def checkpoint(self) -> DelayedSubmission | None:
        """What submitit runs when the job is queued again; None if all its starts are used, so that it is not."""
        return _again(self) if self.journal.starts < self.attempts else None


@dataclass(frozen=True)
class Preparation:
    """The job that makes what the runs of a task read. It has no successor: what it has not made, the runs make."""

    command: Sequence[str]

    def __call__(self) -> None:
        """Raises `RuntimeError` if it was ended. Errors for the user to mend are said by the runs."""
        _run(self.command)

    def checkpoint(self) -> DelayedSubmission:
        """It goes on where it stopped."""
        return _again(self)


def _run(command: Sequence[str], title: str = "") -> None:
    """Runs a command, which ends with this process. Raises `RuntimeError` if another start may mend what ended it."""
    environment = {**os.environ, **children.environment()}
    process = subprocess.Popen(command, env=environment, process_group=0, preexec_fn=_deaf)
    try:
        status = process.wait()
    finally:  # an exception: submitit's, when the job is about to be queued again
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if status not in (0, WRONG):
        raise RuntimeError(f"{title}ended with status {status}")


def _deaf() -> None:
    for number in (signal.SIGTERM, signal.SIGUSR2):
        signal.signal(number, signal.SIG_IGN)


def _again(task: Attempt | Preparation) -> DelayedSubmission:
    from submitit.helpers import DelayedSubmission

    return DelayedSubmission(task)
