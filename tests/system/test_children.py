"""What a process that we start imports: this very code, and nothing that the current folder holds."""

import os
import platform
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from elmo_bench.running import ranks
from elmo_bench.speed.measuring import in_own_process
from elmo_bench.sweeps import local
from elmo_bench.system import machine
from tests.conftest import PATIENCE, ROOT
from tests.fakes import cases, for_each

SCORE = ("score", "task=sst5", "gold=gold", "predictions=gold")


@pytest.fixture
def folder(tmp_path):
    """A folder with files of the names of Python's own modules and of libraries, and another `elmo_bench` beside it."""
    here, other = tmp_path / "here", tmp_path / "other"
    for name in "random yaml queue csv tempfile omegaconf submitit".split():
        (here / f"{name}.py").parent.mkdir(exist_ok=True)
        (here / f"{name}.py").write_text("raise SystemExit('imported from the current folder')")
    for name in ("elmo_bench", "tasks"):
        (other / name).mkdir(parents=True)
        (other / name / "__init__.py").write_text("raise SystemExit('another copy of the project')")
    (here / "gold").write_text("1\n2\n")
    return here


def said(folder: Path, *command: str, **environment: str) -> str:
    done = subprocess.run(
        command, cwd=folder, env=os.environ | environment, capture_output=True, text=True, timeout=PATIENCE
    )
    return done.stdout + done.stderr


@pytest.mark.slow
def test_a_job_imports_the_code_of_its_parent_and_nothing_from_the_current_folder(folder):
    other = str(folder.parent / "other")
    assert said(folder, *local.TRAIN[:-1], *SCORE, PYTHONPATH=other) == '{"accuracy": 100.0}\n'
    shown = said(folder, *local.TRAIN[:-1], "prepare", "task=nosuch")
    assert shown.startswith("error: task=nosuch: there is no such task")


@pytest.mark.slow
@for_each("path", ": /tmp:")
def test_an_empty_part_of_the_path_is_not_the_current_folder(folder, path):
    assert said(folder, *local.TRAIN[:-1], *SCORE, PYTHONPATH=path) == '{"accuracy": 100.0}\n'
    code = "import sys; sys.argv[0] = 'elmo-bench'; import elmo_bench; print(os.environ['PYTHONPATH'])"
    (folder / "code").write_text(f"import os; {code}")  # as the console command begins
    assert said(folder, sys.executable, "code", PYTHONPATH=f":{ROOT}:", PYTHONSAFEPATH="1") == f"{ROOT}\n"


def test_a_command_in_a_removed_folder_says_so(folder):
    command = shlex.join([*local.TRAIN[:-1], *SCORE])
    told = said(folder, "sh", "-c", f"mkdir gone && cd gone && rmdir ../gone && {command}")
    assert told == "error: the current folder has been removed; cd into another one\n"


def test_a_command_takes_the_current_folder_off_the_path_and_nothing_else(tmp_path):
    show = "print(*sys.path, sep=':')"
    both = f"import sys; {show}; sys.argv[0] = '-m'; import elmo_bench; {show}"  # as where Python begins `python -m`
    before, after = said(tmp_path, sys.executable, "-c", both, PYTHONSAFEPATH="", PYTHONPATH=str(ROOT)).splitlines()
    first, *others = before.split(":")
    assert first == ""
    assert sorted(after.split(":")) == sorted(others)


def test_ranks_and_measurements_are_started_like_jobs(tmp_path, monkeypatch):
    started = []

    def noted(command, **_):
        started.append(command[: len(local.TRAIN) - 2])
        raise FileNotFoundError

    monkeypatch.setattr(subprocess, "Popen", noted)
    for start in (lambda: ranks._start(ranks.ALONE, {}, tmp_path), lambda: in_own_process(said)):
        with pytest.raises(FileNotFoundError):
            start()
    assert started == [[sys.executable, "-P", *local.TRAIN[2:-2]]] * 2


# What a process asks of the machine.


WHERE = """
import ctypes
from elmo_bench.system import machine
{keep}
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
place = libc.malloc(ctypes.c_size_t({mib} << 20))
for line in open("/proc/self/maps"):
    first, last = (int(end, 16) for end in line.split()[0].split("-"))
    if first <= place < last:
        print("[heap]" in line)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="of glibc")
@cases("""
    keep                                          | mib | kept
    ""                                            | 16 | False
    machine.keep_freed_memory()                   | 16 | True
    machine.keep_freed_memory()                   | 64 | False
    machine.keep_freed_memory(however_large=True) | 64 | True
""")
def test_large_arrays_come_from_memory_that_is_kept(keep, mib, kept):
    command = [sys.executable, "-c", WHERE.format(keep=keep, mib=mib)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=machine.ROOT)
    assert done.stdout.strip() == kept
