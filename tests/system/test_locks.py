"""Locks between processes."""

import errno
import os
import subprocess
import sys

import pytest

from elmo_bench.system.errors import UserError
from elmo_bench.system.places import ROOT
from elmo_bench.system.storage import locks

HOLD = """
import sys
from pathlib import Path
from elmo_bench.system.storage import locks
with locks.held(Path(sys.argv[1]), "waiting", wait=True) as waited:
    print("waited" if waited else "at once", flush=True)
    sys.stdin.readline()
"""


def holder(folder, said: str = "at once") -> subprocess.Popen[str]:
    """A process that holds the lock, or waits for it, until it reads a line; its own first line is as said."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)], cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )  # fmt: skip
    assert process.stdout.readline() == f"{said}\n"
    return process


@pytest.mark.slow
def test_a_second_process_waits_for_the_first(tmp_path):
    with holder(tmp_path) as first, holder(tmp_path, "waiting") as second:
        first.communicate("go\n")
        assert second.stdout.readline() == "waited\n"
        second.communicate("go\n")


@pytest.mark.slow
def test_a_second_process_that_does_not_wait_is_told_why_and_a_dead_one_lets_go_of_its_lock(tmp_path):
    with holder(tmp_path) as first:
        with pytest.raises(UserError, match="busy; wait for it"), locks.held(tmp_path, "busy; wait for it"):
            pass
        first.kill()
    with locks.held(tmp_path, "waiting") as waited:
        assert not waited


def test_a_file_system_without_locks_is_told_in_one_line(tmp_path, monkeypatch):
    def refused(*_):
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr("fcntl.flock", refused)
    with pytest.raises(UserError, match="has no locks .flock.; put results_root and cache_root on one that has"):
        locks.held(tmp_path, "waiting").__enter__()


@pytest.mark.parametrize(("make", "what"), [(os.mkfifo, "a pipe"), (os.mkdir, "a folder")])
def test_what_is_no_file_in_the_place_of_a_lock_is_told_at_once(tmp_path, make, what):
    make(tmp_path / "lock")
    with pytest.raises(UserError, match=f"lock: expected a regular file, and it is {what}"):
        locks.held(tmp_path, "waiting", wait=True).__enter__()
