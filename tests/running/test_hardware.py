"""What a run asks of its machine, before anything is prepared, and the device that each of its processes takes."""

import importlib
import sys
import threading
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from elmo_bench.bilm.pretraining.parallel import choose_device
from elmo_bench.configuration.schema import TrainerConfig
from elmo_bench.running import build, fit, ranks, run
from elmo_bench.running.module import BenchModule
from elmo_bench.running.ranks import Rank, RankWatch
from elmo_bench.sweeps.local import Job, run_jobs
from elmo_bench.system import console, machine
from elmo_bench.system.errors import Interrupted
from tests.conftest import PATIENCE
from tests.fakes import cases, refuses

pytestmark = pytest.mark.slow
without_gpu = pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")


@pytest.fixture
def alone(monkeypatch) -> pytest.MonkeyPatch:
    """A machine without GPUs, and no job."""
    for name in (*machine.GIVEN, "SLURM_JOB_ID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(machine, "DRIVER", "/no/such/driver")
    monkeypatch.setenv("PATH", "/nowhere")
    return monkeypatch


# A GPU that torch does not see.


@without_gpu
@cases("""
    given
    {"CUDA_VISIBLE_DEVICES": "0"}
    {"SLURM_JOB_GPUS": "0,1"}
    {"SLURM_STEP_GPUS": "3"}
""")
def test_a_job_that_was_given_a_gpu_does_not_train_on_the_cpu(given, alone):
    assert build.device_of("auto") == choose_device().type == "cpu"
    for name, value in given.items():
        alone.setenv(name, value)
    ((name, value),) = given.items()
    for request in ("auto", "gpu", "cuda"):
        with refuses(rf"accelerator={request}: there is a GPU \({name}={value}\), but torch"):
            build.device_of(request)
    with refuses(r"device=auto: there is a GPU.*make setup TORCH=cuda, or choose device=cpu"):
        choose_device()
    assert build.device_of("cpu") == choose_device("cpu").type == "cpu"
    alone.setenv("CUDA_VISIBLE_DEVICES", "")  # hidden by the user
    assert build.device_of("auto") == "cpu"


@without_gpu
def test_nor_does_a_machine_that_has_one(alone, tmp_path, file):
    file("#!/bin/sh\necho 'GPU 0: NVIDIA H100 (UUID: GPU-1)'\n", "nvidia-smi")
    (tmp_path / "nvidia-smi").chmod(0o755)
    alone.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    with refuses(r"nvidia-smi GPU 0: NVIDIA H100.*rm -rf \.venv && make setup TORCH=cuda"):
        build.device_of("auto")
    alone.setenv("SLURM_JOB_ID", "12")  # a job on a node with GPUs, of which it was given none
    assert build.device_of("auto") == "cpu"
    alone.delenv("SLURM_JOB_ID")
    file("#!/bin/sh\nexit 9\n", "nvidia-smi")
    assert build.device_of("auto") == "cpu"
    alone.setattr(machine, "DRIVER", str(tmp_path / "nvidia-smi"))
    with refuses("there is a GPU"):
        build.device_of("auto")


# Asked before anything is prepared.


@without_gpu
@cases("""
    command | wanted                     | gpu | said
    train   | trainer=default            | "0" | accelerator=auto: there is a GPU (CUDA_VISIBLE_DEVICES=0), but torch
    train   | trainer.accelerator=gpu    | ""  | torch finds none on this machine
    prepare | trainer.precision=16-mixed | ""  | 16-mixed needs a GPU
    prepare | trainer.devices=64         | ""  | this machine has
""")
def test_what_the_machine_lacks_is_said_before_anything_is_prepared(command, wanted, gpu, said, bench):
    done = bench.command(command, *bench.overrides(wanted), CUDA_VISIBLE_DEVICES=gpu, SLURM_JOB_GPUS=gpu)
    assert done.returncode == 2, done.stderr
    (line,) = done.stderr.splitlines()
    assert said in line
    assert not (bench.folder / "cache").exists()


def test_more_gpus_than_there_are_are_refused(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    assert fit.check_machine(TrainerConfig(accelerator="gpu")) == "cuda"
    with refuses(r"trainer\.devices=2: this machine has at most 1"):
        fit.check_machine(TrainerConfig(accelerator="gpu", devices=2))


# The device of each process.


def test_a_ranks_own_gpu_is_chosen_before_anything_is_opened(bench, monkeypatch):
    done = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "set_device", done.append)
    monkeypatch.setattr(run, "layers_source", lambda *_: done.append("opened") or 1 / 0)
    config = bench.validated("trainer.accelerator=auto", "trainer.devices=2")
    with pytest.raises(ZeroDivisionError):
        run.follow(config, bench.folder, Rank(1, 2, 1))
    assert done == [1, "opened"]


def test_jobs_are_dealt_the_gpus_that_are_there(tmp_path, monkeypatch):
    """Four at a time on two GPUs are two on each; of three that take two GPUs, the third shares."""
    code = "import os, pathlib, sys, time; here = pathlib.Path(sys.argv[1]); (here / sys.argv[2]).write_text(os.environ"
    wait = "; [time.sleep(0.02) for _ in iter(lambda: len(list(here.iterdir())) < int(sys.argv[3]), False)]"
    code += "['CUDA_VISIBLE_DEVICES'])" + wait

    def given(number: int, gpus: list[str], each: int) -> list[str]:
        folder = tmp_path / f"{number} {each}"
        folder.mkdir()
        jobs = [Job(str(i), [sys.executable, "-c", code, str(folder), str(i), str(number)]) for i in range(number)]
        assert run_jobs(jobs, number, gpus=gpus, each=each) == [None] * number
        return [(folder / str(i)).read_text() for i in range(number)]

    assert given(4, ["2", "5"], 1) == "2 5 2 5".split()
    assert given(3, ["0", "1", "2", "3"], 2) == ["0,1", "2,3", "0,1"]


def test_the_gpus_of_a_machine_are_named_as_they_are_visible(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert machine.gpus() == ["0", "1"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,GPU-7")
    assert machine.gpus() == ["3", "GPU-7"]


def test_tf32_and_repeated_sums_are_keys_that_say_what_is_on(bench):
    before = torch.backends.cudnn.allow_tf32
    try:
        for on in (True, False):
            record = bench.train(f"trainer.tf32={on}", f"trainer.deterministic={on}", "elmo.where=none", "force=true",
                                 "task.fit.epochs=1")  # fmt: skip
            assert torch.backends.cudnn.allow_tf32 is torch.backends.cuda.matmul.allow_tf32 is on
            assert torch.are_deterministic_algorithms_enabled() is on
            assert (record.config["trainer"]["tf32"], record.config["trainer"]["deterministic"]) == (on, on)
            assert record.settings.get("trainer", {}) == ({"tf32": True} if on else {})
    finally:
        torch.backends.cudnn.allow_tf32 = before


# What another start mends.


@cases("""
    code | status
    -9 | 75
    1  | 75
    75 | 75
    2  | 2
""")
def test_a_rank_that_was_killed_ends_the_run_with_a_status_that_is_started_again(code, status, tmp_path, monkeypatch):
    ended: Any = SimpleNamespace(returncode=code, poll=lambda: code)
    error = ranks._ended(1, ended, tmp_path)
    assert (error.status, isinstance(error, Interrupted)) == (status, status == 75)
    left, gone = [], threading.Event()

    def leave(status):
        left.append(status)
        gone.set()

    monkeypatch.setattr(ranks, "GRACE", 0.0)
    monkeypatch.setattr(ranks.os, "_exit", leave)
    watch = RankWatch([ended], tmp_path)
    assert gone.wait(PATIENCE)
    watch.stopped.set()
    assert {*left} == {status}

    def main():
        raise error

    with pytest.raises(SystemExit) as end:
        console.report(main)
    assert end.value.code == status


# Parameters without a gradient.


@cases("""
    task  | joint | unused
    ner   | false | false
    snli  | false | false
    coref | false | true
    ner   | true  | true
""")
def test_only_heads_that_need_it_have_unused_parameters_looked_for(task, joint, unused):
    head = importlib.import_module(f"tasks.{task}.head")
    (kind,) = [each for name, each in vars(head).items() if name.endswith("Head") and name != "BaseHead"][-1:]
    elmo = SimpleNamespace(bilm=object() if joint else None)
    module: Any = SimpleNamespace(head=kind, representation=SimpleNamespace(elmo=elmo))
    assert BenchModule.leaves_unused.fget(module) is unused  # type: ignore[attr-defined]
