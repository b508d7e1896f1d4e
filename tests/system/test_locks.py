"""Locks between processes, and between machines: where the system's do not hold, a lease takes their place."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from elmo_bench.system.errors import UserError
from elmo_bench.system.places import ROOT
from elmo_bench.system.storage import locks, shared_disks

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
    monkeypatch.setenv(shared_disks.CHOICE, "lease")
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


@pytest.mark.parametrize(
    ("line", "holds"),
    [
        ("36 35 0:42 / /data rw,noatime shared:1 - nfs4 server:/ rw,vers=4.2,local_lock=none", True),
        ("36 35 0:42 / /data rw - nfs server:/ rw,local_lock=all", False),
        ("36 35 0:42 / /data rw - nfs server:/ rw,nolock", False),
        ("36 35 0:42 / /data rw - lustre 10.0.0.1@o2ib:/fs rw,flock,lazystatfs", True),
        ("36 35 0:42 / /data rw - lustre 10.0.0.1@o2ib:/fs rw,localflock", False),
        ("36 35 0:42 / /data rw - beegfs beegfs_nodev rw", False),
        ("36 35 8:1 / /data rw shared:1 master:2 - ext4 /dev/sda1 rw", True),
    ],
)
def test_what_a_mount_says_of_its_locks(line, holds):
    assert (shared_disks._reason(shared_disks.parsed(line)) is None) == holds


def test_the_deepest_mount_counts(tmp_path):
    mounts = [shared_disks.Mount(str(folder), kind, frozenset()) for folder, kind in
              (("/", "ext4"), (tmp_path, "nfs4"), (tmp_path / "other", "xfs"))]  # fmt: skip
    assert shared_disks.mount_of(tmp_path / "a" / "b", mounts).kind == "nfs4"


def test_a_file_system_is_asked_once_and_said_once(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(shared_disks, "_known", {})
    monkeypatch.delenv(shared_disks.CHOICE, raising=False)
    asked = []
    monkeypatch.setattr(shared_disks, "_refused", lambda folder: asked.append(folder) or "there are no locks")
    for name in "ab":
        with locks.held(tmp_path / name, "waiting"):
            assert os.listdir(tmp_path / name) == ["lease"]
    assert len(asked) == 1
    assert capsys.readouterr().err.count("there are no locks; locked by files that are renewed") == 1


def test_the_choice_of_locks_is_checked(tmp_path, monkeypatch):
    monkeypatch.setenv(shared_disks.CHOICE, "no")
    with pytest.raises(UserError, match="ELMO_BENCH_LOCKS=no: choose from flock, lease"):
        locks.held(tmp_path, "waiting").__enter__()
