"""The table of docs/clusters.md, a row a test: what ends a run's job, and what follows.

The job is submitit's own process below the first line of its script; stand-ins for `sbatch` and `scontrol` note what it
asks of Slurm. `test_slurm.py` has the same rows on a real Slurm.
"""

import os
import signal
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from elmo_bench.sweeps.cluster import CANCELLED, RUNS, Attempt, QueuedRun, first_line
from elmo_bench.system import children, places
from elmo_bench.system.errors import Interrupted, UserError
from tests.conftest import PATIENCE

PAGE = places.ROOT / "docs" / "clusters.md"
PROGRAM = "cd '{}'; if [ -e begun ]; then touch record; exit; fi; echo $$ >begun; {}"


class Row(NamedTuple):
    """A row of the table."""

    what: str  # begins its first cell
    how: int | str  # the status with which the training ends, or what is done to its job
    again: str  # how it is started again: in its "place", by its "successor", or "" (it is not)


ROWS = [
    Row("the time limit is near", "SIGUSR2", "place"),
    Row("SIGKILL", "SIGKILL", "successor"),
    Row("`scontrol requeue`", "requeue", "place"),
    Row("one of a run's processes", Interrupted.status, "successor"),
    Row("an error that another start would not mend", UserError.status, ""),
    Row("`make sweep-cancel`", "cancel", ""),
]
each_row = pytest.mark.parametrize("row", ROWS, ids=[row.what.strip("`") for row in ROWS])


def attempt_of(row: Row, folder: Path) -> Attempt:
    """A run that ends as the row says when it is started first, and is recorded when it is started again."""
    (folder / RUNS).write_text("x\n")
    program = PROGRAM.format(folder, f"exit {row.how}" if isinstance(row.how, int) else "exec sleep 600")
    return Attempt(["sh", "-c", program], QueuedRun(folder, "x", "a run", folder / "record"), 3)


class Job:
    """A job without Slurm."""

    def __init__(self, attempt: Attempt):
        from submitit.helpers import DelayedSubmission

        self.folder = attempt.run.folder
        for name, says in (("sbatch", "echo 13"), ("scontrol", "")):
            (self.folder / name).write_text(f'#!/bin/sh\necho {name} "$@" >>{self.folder}/asked\n{says}\n')
            (self.folder / name).chmod(0o755)
        submitted = DelayedSubmission(attempt)
        submitted.set_timeout(60, attempt.attempts)
        submitted.dump(self.folder / "12_0_submitted.pkl")
        program = " ".join([*children.python("submitit.core._submit"), str(self.folder)])
        (self.folder / "script").write_text(f"{first_line(self.folder, attempt.attempts)}\nexec {program}\n")

    def start(self, job: str = "12", *first: str) -> subprocess.Popen[bytes]:
        """Its script, as Slurm starts it under an id."""
        slurm = {"SLURM_JOB_ID": job, "SLURM_ARRAY_JOB_ID": job, "SLURM_ARRAY_TASK_ID": "0", "SLURM_LOCALID": "0"}
        slurm |= {"SUBMITIT_EXECUTOR": "slurm", "PATH": f"{self.folder}:{os.environ['PATH']}"}
        log = open(self.folder / "log", "ab")  # noqa: SIM115 (the process has it)
        return subprocess.Popen(["sh", self.folder / "script", *first], env=os.environ | slurm, stdout=log, stderr=log)

    def asked(self, name: str) -> list[str]:
        """The calls of one of Slurm's commands."""
        lines = (self.folder / "asked").read_text().splitlines() if (self.folder / "asked").exists() else []
        return [line for line in lines if line.startswith(f"{name} ")]


def training(folder: Path) -> int:
    """Waits until the training has begun; the id of its process."""
    end = time.monotonic() + PATIENCE
    while not (folder / "begun").exists() or not (told := (folder / "begun").read_text()):
        assert time.monotonic() < end
        time.sleep(0.05)
    return int(told)


def test_every_row_of_the_page_is_here():
    table = PAGE.read_text().partition("| what | what follows |\n|---|---|\n")[2].partition("\n\n")[0].splitlines()
    assert len(table) == len(ROWS)
    for line, row in zip(table, ROWS, strict=True):
        assert line.startswith(f"| {row.what}")
    assert f"exit status {Interrupted.status} " in table[3]
    assert f"(exit status {UserError.status})" in table[4]


@each_row
def test_what_follows(row, tmp_path):
    pytest.importorskip("submitit")
    attempt = attempt_of(row, tmp_path)
    job = Job(attempt)
    process = job.start()
    trained = training(tmp_path)
    if row.how == "cancel":
        (tmp_path / CANCELLED).touch()
    if row.how == "SIGUSR2":
        process.send_signal(signal.SIGUSR2)
    elif isinstance(row.how, str):  # Slurm ends all processes of the job
        process.kill()
        os.killpg(trained, signal.SIGKILL)
    status = process.wait(PATIENCE)
    assert job.asked("scontrol") == (["scontrol requeue 12_0"] if row.how == "SIGUSR2" else [])
    assert job.asked("sbatch") == [f"sbatch --parsable --dependency=afternotok:12_0 --array=0 {tmp_path}/script 12_0"]
    if isinstance(row.how, int):  # with 0, Slurm drops the successor
        assert (status == 0) == (row.again == "")
    if row.again or status:
        assert (job.start("12") if row.again == "place" else job.start("13", "12_0")).wait(PATIENCE) == 0
    assert (tmp_path / "record").exists() == bool(row.again)
    assert attempt.run.starts == (1 if status == 0 else 2)
    assert len(job.asked("sbatch")) == (2 if row.again == "successor" else 1)
