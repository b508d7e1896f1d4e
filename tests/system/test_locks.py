"""Locks between processes, and between machines: with ELMO_BENCH_LOCKS=lease, a lease takes their place."""

from __future__ import annotations

import errno
import signal
import subprocess
import sys
import time

import pytest

from elmo_bench.system.errors import UserError
from elmo_bench.system.places import ROOT
from elmo_bench.system.storage import locks

HOLD = """
import sys
from pathlib import Path
from elmo_bench.system.storage import locks
locks.LEASE = 1.5
with locks.held(Path(sys.argv[1]), "waiting") as waited:
    print("waited" if waited else "at once", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def lease(monkeypatch):
    """Locks are leases, renewed every half second."""
    monkeypatch.setenv(locks.CHOICE, "lease")
    monkeypatch.setattr(locks, "LEASE", 1.5)


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
def test_a_dead_process_lets_go_of_its_lock(tmp_path):
    with holder(tmp_path) as first:
        first.kill()
    with locks.held(tmp_path, "waiting") as waited:
        assert not waited


@pytest.mark.slow
@pytest.mark.usefixtures("lease")
def test_a_lease_excludes_others_as_long_as_its_holder_lives(tmp_path):
    with holder(tmp_path) as process:
        time.sleep(2)  # longer than a lease that nobody renews
        with pytest.raises(UserError, match="busy"), locks.alone(tmp_path, "busy"):
            pass
        process.communicate("\n")
    with locks.held(tmp_path, "waiting") as waited:
        assert not waited


@pytest.mark.slow
@pytest.mark.usefixtures("lease")
def test_a_lease_that_is_not_renewed_is_taken_over(tmp_path):
    """The holder stands still, as seen from here like one on a machine that has died."""
    with holder(tmp_path) as process:
        process.send_signal(signal.SIGSTOP)
        with locks.held(tmp_path, "waiting") as waited:
            assert waited
            process.send_signal(signal.SIGCONT)
            assert process.wait(10) == -signal.SIGTERM  # it notices, and works on nothing that is no longer its own


def test_a_file_system_without_locks_is_told_in_one_line(tmp_path, monkeypatch):
    def refused(*_):
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.delenv(locks.CHOICE, raising=False)
    monkeypatch.setattr("fcntl.flock", refused)
    with pytest.raises(UserError, match="this file system has no locks; ELMO_BENCH_LOCKS=lease does without"):
        locks.held(tmp_path, "waiting").__enter__()


def test_the_choice_of_locks_is_checked(tmp_path, monkeypatch):
    monkeypatch.setenv(locks.CHOICE, "no")
    with pytest.raises(UserError, match="ELMO_BENCH_LOCKS=no: choose from flock, lease"):
        locks.held(tmp_path, "waiting").__enter__()
