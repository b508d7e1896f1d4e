"""The ranks of a run as the tasks of a Slurm step, started here by hand as `srun` would start them."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from elmo_bench.devices import srun
from elmo_bench.devices.srun import Step, checked, step
from elmo_bench.system.errors import UserError
from tests.conftest import ROOT, Bench, clean_environment

TWO = ("trainer.devices=2", "elmo.where=none", "task.fit.epochs=2")


def environment(number: int, size: int = 2, **changes: str) -> dict[str, str]:
    """Of a task of a step on one node."""
    names = {"SLURM_JOB_ID": "4711", "SLURM_STEP_ID": "0", "SLURM_NTASKS": str(size), "SLURM_PROCID": str(number),
             "SLURM_LOCALID": str(number), "SLURM_NODEID": "0", "SLURM_NNODES": "1"}  # fmt: skip
    return names | {"SLURM_STEP_NUM_NODES": "1", "SLURM_STEP_NUM_TASKS": str(size)} | changes


def run(bench: Bench, *changes: str, size: int = 2, **more: str) -> list[subprocess.CompletedProcess[str]]:
    """The same command in every task of a step."""
    command = [sys.executable, "-m", "tests.command", str(bench.conf), "train", *bench.overrides(*changes)]
    tasks = [
        subprocess.Popen(
            command, cwd=ROOT, env=clean_environment() | environment(number, size, **more), text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        for number in range(size)
    ]  # fmt: skip
    answers = [task.communicate(timeout=300) for task in tasks]
    return [subprocess.CompletedProcess(command, t.returncode, *a) for t, a in zip(tasks, answers, strict=True)]


@pytest.fixture
def port() -> str:
    """A free one: steps of several tests may run side by side."""
    from lightning_fabric.plugins.environments.lightning import find_free_network_port

    return str(find_free_network_port())


def records(bench: Bench) -> list[dict]:
    return [json.loads(path.read_text()) for path in (bench.results / "runs").glob("*/*/*.json")]


def test_two_tasks_of_a_step_train_as_two_local_processes(bench, port):
    local = bench.train(*TWO, f"results_root={bench.folder}/local")
    tasks = run(bench, *TWO, MASTER_PORT=port)
    assert [task.returncode for task in tasks] == [0, 0], tasks
    (record,) = records(bench)
    assert record["run"] == local["run"]
    assert record["metrics"] == local["metrics"]
    assert record["history"]["loss"] == local["history"]["loss"]
    assert record["history"]["tokens"] == local["history"]["tokens"]
    again = run(bench, *TWO, MASTER_PORT=port)
    assert [task.returncode for task in again] == [0, 0], again
    assert "not run again" in again[0].stdout
    assert again[1].stdout == ""


def test_a_sweep_in_two_tasks_goes_from_run_to_run_together(bench, port):
    tasks = run(bench, *TWO, "seed=1,2", "task.fit.epochs=1", "-m", MASTER_PORT=port)
    assert [task.returncode for task in tasks] == [0, 0], tasks
    assert {record["config"]["seed"] for record in records(bench)} == {1, 2}


def test_an_error_of_task_0_ends_the_others_in_one_line(bench, port):
    first, second = run(bench, *TWO, f"data_root={bench.folder}/nowhere", MASTER_PORT=port)
    assert (first.returncode, second.returncode) == (2, 2)
    assert "nowhere" in first.stderr
    assert [len(task.stderr.splitlines()) for task in (first, second)] == [1, 1]


def test_a_task_is_told_when_task_0_has_gone(port):
    script = f"from elmo_bench.devices.srun import Step; s = Step(0, 2, {port}); s._store.set('x', ''); input()"
    first = subprocess.Popen([sys.executable, "-c", script], cwd=ROOT, stdin=subprocess.PIPE, text=True)
    second = Step(1, 2, int(port))
    second._store.get("x")
    first.communicate("\n")
    with pytest.raises(UserError, match="task 0 of this Slurm step has ended"), second.following():
        pass


@pytest.fixture
def slurm(monkeypatch):
    """Sets the variables of a task."""
    srun.step.cache_clear()
    yield lambda **names: [monkeypatch.setenv(name, value) for name, value in names.items()]
    srun.step.cache_clear()


def test_only_the_tasks_of_a_step_are_ranks(slurm):
    assert step() is None
    slurm(SLURM_JOB_ID="12", SLURM_NTASKS="2", SLURM_PROCID="0")  # in a batch script
    srun.step.cache_clear()
    assert step() is None
    slurm(**environment(1))
    srun.step.cache_clear()
    found = step()
    assert (found.number, found.size, found.first) == (1, 2, False)


@pytest.mark.parametrize(
    ("devices", "changes", "message"),
    [
        (2, {"SLURM_NTASKS": "3"}, r"trainer.devices=2, but srun started 3 tasks: give srun -n 2, or -n 1"),
        (1, {}, r"trainer.devices=1, but srun started 2 tasks"),
        (2, {"SLURM_STEP_NUM_NODES": "2"}, r"srun started tasks on 2 nodes"),
    ],
)
def test_a_step_of_another_shape_is_refused(devices, changes, message, slurm):
    slurm(**environment(0, **changes))
    with pytest.raises(UserError, match=message):
        checked(devices)


def test_a_step_of_one_task_starts_its_processes_itself(slurm):
    slurm(**environment(0, 1))
    assert checked(2) is None
