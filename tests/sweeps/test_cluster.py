"""Sweeps on a cluster without one: what is asked for, the journal of a run, the status, and an attempt's bounds."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from elmo_bench.records import store
from elmo_bench.running.unfinished import start_anew
from elmo_bench.sweeps import cluster, queued
from elmo_bench.sweeps.cluster import CANCELLED, RUNS, Attempt, Queued, QueuedRun, first_line, settings
from elmo_bench.system import places, processes
from elmo_bench.system.errors import Interrupted, UserError
from tests.conftest import PATIENCE
from tests.fakes import cases, refuses
from tests.sweeps.test_sweep import wanted


def test_a_page_and_changes_to_it_say_what_a_cluster_is_asked_for():
    found = settings("slurm", ["run.partition=gpu", "prepare.minutes=5", "options.reservation=night"])
    assert (found.run.partition, found.prepare.partition, found.prepare.minutes) == ("gpu", "gpu", 5)
    told = cluster._parameters(found, found.prepare, "name", "afterany:12")
    assert (told["slurm_partition"], told["timeout_min"], told["mem_gb"]) == ("gpu", 5, 32)
    assert "slurm_gres" not in told
    assert told["slurm_additional_parameters"] == {
        "requeue": True, "kill-on-invalid-dep": "yes", "reservation": "night", "dependency": "afterany:12"
    }  # fmt: skip


@cases("""
    name  | change            | message
    slrum | at_once=1         | on=slrum: there is no such file in conf/cluster; did you mean slurm?
    slurm | run.partitoin=gpu | cluster.run.partitoin: there is no such key; did you mean partition?
    slurm | run.minutes=long  | "cluster.run.minutes=long: "
    slurm | attempts=0        | cluster.attempts=0: should be greater than 0
""")
def test_a_wrong_setting_is_named_in_one_line(name, change, message):
    with refuses(message):
        settings(name, [change])


def test_where_a_sweep_runs_is_no_override_of_its_runs():
    told = wanted("+sweep=table2 on=slurm cluster.run.partition=gpu elmo.dropout=0.2".split())
    assert (told.on, told.cluster, told.overrides) == ("slurm", ["run.partition=gpu"], ["elmo.dropout=0.2"])
    with refuses("only with on=slurm"):
        wanted(["+sweep=table2", "cluster.at_once=2"])


def test_a_job_starts_a_python_that_imports_nothing_from_its_folder(tmp_path, monkeypatch, file):
    """Slurm starts it in the folder in which the sweep is typed."""
    submitit, noted = pytest.importorskip("submitit"), {}

    def executor(folder, **given):
        noted.update(given)
        raise ValueError

    monkeypatch.setattr(submitit, "AutoExecutor", executor)
    found = settings("slurm", [])
    with refuses("Slurm does not accept the jobs"):
        cluster.submit([], tmp_path, found, found.run, "name")
    line = [*shlex.split(noted["slurm_python"]), "-u", "-m", "elmo_bench", "--version"]  # as submitit puts it together
    file("raise SystemExit('imported from the current folder')", "random.py")
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.startswith("elmo_bench ")


@pytest.fixture
def attempt(tmp_path):
    """Of a command that fails."""
    command = [sys.executable, "-c", "raise SystemExit(1)"]
    return Attempt(command, QueuedRun(tmp_path, "x", "a run", tmp_path / "record"), 3)


def started(attempt: Attempt, **changes: str) -> str:
    """The first line of a job's script, with a stand-in for `sbatch`; what it prints."""
    folder = attempt.run.folder
    (folder / RUNS).write_text("w\nx\n")
    (folder / "sbatch").write_text(f'#!/bin/sh\nenv | grep ^SLURM; echo "$@" >>{folder}/asked; echo "13;cluster"\n')
    (folder / "sbatch").chmod(0o755)
    script = folder / "script"
    script.write_text(first_line(folder, attempt.attempts))
    environment = {"PATH": f"{folder}:{os.environ['PATH']}", "SLURM_JOB_ID": "14", "SLURM_ARRAY_JOB_ID": "12",
                   "SLURM_ARRAY_TASK_ID": "1", **changes}  # fmt: skip
    return subprocess.run(["sh", script], env=environment, capture_output=True, text=True, check=True).stdout


@pytest.mark.slow
def test_a_run_is_started_a_bounded_number_of_times_and_a_job_has_one_successor(attempt):
    for start in (1, 2, 3):
        assert started(attempt) == ""
        with pytest.raises(RuntimeError, match="ended with status 1"):
            attempt()
        assert attempt.run.starts == start
        assert (attempt.checkpoint() is not None) == (start < 3)
    folder = attempt.run.folder
    assert (folder / "asked").read_text() == f"--parsable --dependency=afternotok:12_1 --array=1 {folder}/script 12_1\n"
    assert attempt.run.journal.read_text().splitlines().count("queued 13_1 after 12_1") == 1
    started(attempt)
    with pytest.raises(RuntimeError, match="given up after 3 starts"):
        attempt()


def test_where_jobs_may_not_submit_jobs_the_log_says_so(attempt):
    (attempt.run.folder / "env").write_text("#!/bin/sh\n[ $# = 0 ] || exit 1\n")
    (attempt.run.folder / "env").chmod(0o755)
    assert started(attempt) == "no successor is queued: sbatch refuses it on this node\n"
    assert attempt.run.jobs == ["12_1"]


@pytest.mark.parametrize("name", ["record", CANCELLED])
def test_what_is_recorded_or_cancelled_is_not_started(attempt, name):
    (attempt.run.record.parent / name).touch()
    attempt()
    started(attempt)
    assert (attempt.run.folder / "asked").exists() == (name == "record")  # dropped when the job ends well


def test_a_run_that_is_trained_again_is_started_though_its_record_is_there(attempt, tmp_path):
    path = store.place(tmp_path, "open", "toy", "x")
    run = replace(attempt, run=replace(attempt.run, record=path))
    path.parent.mkdir(parents=True)
    path.touch()
    run()
    start_anew(store.work(tmp_path, "open", "toy", "x"))
    with pytest.raises(RuntimeError, match="ended with status 1"):
        run()


def test_the_status_tells_all_states(tmp_path, monkeypatch):
    folder = queued.cluster_folder(tmp_path) / "1"
    folder.mkdir(parents=True)
    names = ("done", "goes on", "waits", "broken", "never")
    runs = {name: {"title": name, "record": str(tmp_path / name)} for name in names}
    (folder / queued.FILE).write_text(json.dumps({"sweep": "table2 ner", "runs": runs, "prepare": ["1"]}))
    for number, name in enumerate(names[:-1], start=2):
        QueuedRun(folder, name, name, tmp_path).queued(str(number))
    (tmp_path / "done").touch()
    (folder / "goes on.jobs").write_text("queued 3\nstarted 3\nstarted 3\n")
    (folder / "5_0_log.out").write_bytes(b"Traceback\nerror: no such\xff file\nsubmitit INFO\n")
    monkeypatch.setattr(cluster, "queue", lambda: {"3": Queued("RUNNING", "None"), "4": Queued("PENDING", "Priority")})
    assert queued.in_lines(*queued.status(tmp_path).popitem()) == [
        "table2 ner: 1 recorded, 1 running, 1 waiting, 2 failed",
        "  running  goes on (job 3, start 2)",
        "  waiting  waits (job 4, Priority)",
        f"  failed  broken: no such\ufffd file; log: {folder}/5_0_log.out",
        "  failed  never: ended before it began",
    ]
    assert queued.queued_runs(tmp_path) == {"goes on", "waits"}
    (folder / CANCELLED).touch()
    counts, *lines = queued.in_lines(*queued.status(tmp_path).popitem())
    assert counts == "table2 ner: 1 recorded, 1 running, 1 waiting, 2 cancelled"
    assert lines[2:] == ["  cancelled  broken", "  cancelled  never"]


def test_jobs_that_wait_are_ended_before_those_that_run(tmp_path, monkeypatch):
    folder = queued.cluster_folder(tmp_path) / "1"
    folder.mkdir(parents=True)
    (folder / queued.FILE).write_text(
        json.dumps({"sweep": "s", "runs": {"x": {"title": "", "record": ""}}, "prepare": []})
    )
    (folder / "x.jobs").write_text("queued 2\nqueued 3 after 2\n")
    monkeypatch.setattr(cluster, "queue", lambda: {"2": Queued("RUNNING", ""), "3": Queued("PENDING", "Dependency")})
    ended = []
    monkeypatch.setattr(cluster, "cancel", ended.append)
    assert queued.cancel(tmp_path) == 2
    assert ended == [["3"], ["2"]]
    assert (folder / CANCELLED).exists()


def test_where_slurm_is_not_there_one_line_says_so(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    with refuses("Slurm is not installed here .no squeue."):
        cluster.queue()


# The table of docs/clusters.md, a row a test: what ends a run's job, and what follows.


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
    Row("an error that another start would repeat", UserError.status, ""),
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
        program = " ".join([*processes.python("submitit.core._submit"), str(self.folder)])
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
    table = (
        PAGE.read_text().partition("| cause | what happens next |\n|---|---|\n")[2].partition("\n\n")[0].splitlines()
    )
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
