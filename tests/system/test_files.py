"""Files that are written whole or not at all."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from elmo_bench.system.places import ROOT
from elmo_bench.system.storage import locks
from elmo_bench.system.storage.files import replacing
from tests.fakes import refuses


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("mode, content", [("w", "neü\n"), ("wb", b"\0\xff")])
def test_a_file_takes_its_place_when_it_is_whole(tmp_path, mode, content):
    path = tmp_path / "x"
    path.write_text("old")
    with replacing(path, mode) as file:
        file.write(content)
        file.flush()
        assert path.read_text() == "old"
    assert path.read_bytes() == (content if mode == "wb" else content.encode())
    assert names(tmp_path) == ["x"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_after_an_error_all_is_as_before(tmp_path, error):
    path = tmp_path / "x"
    path.write_text("old")

    def fail():
        with replacing(path) as file:
            file.write("new")
            raise error

    with pytest.raises(error):
        fail()
    assert path.read_text() == "old"
    assert names(tmp_path) == ["x"]


def test_what_is_renamed_is_on_the_disk(tmp_path, monkeypatch):
    done = []
    sync, rename = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda descriptor: done.append(os.fstat(descriptor).st_size) or sync(descriptor))
    monkeypatch.setattr(os, "replace", lambda *paths: done.append("renamed") or rename(*paths))
    with replacing(tmp_path / "x") as file:
        file.write("four")
    assert done[:2] == [4, "renamed"]
    assert len(done) == 3  # the folder, which holds the new name


def test_a_folder_that_is_missing_is_not_made(tmp_path):
    with pytest.raises(FileNotFoundError), replacing(tmp_path / "none" / "x"):
        pass
    assert names(tmp_path) == []


DIES = """
import os, sys
from elmo_bench.system.storage.files import replacing
with replacing(sys.argv[1]) as file:
    file.write("half")
    file.flush()
    os.kill(os.getpid(), 9)
"""


@pytest.mark.slow
def test_what_a_killed_process_left_goes_with_the_next_write_and_a_living_ones_stays(tmp_path):
    path = tmp_path / "x"
    for _ in range(2):
        assert subprocess.run([sys.executable, "-c", DIES, path]).returncode == -9
        assert len(names(tmp_path)) == 1
        assert not path.exists()
    other = tmp_path / ".xy~01234567.partial"  # of another file
    other.touch()
    with replacing(path) as first, replacing(path) as second:
        first.write("first")
        second.write("second")
        assert len(names(tmp_path)) == 3
    assert names(tmp_path) == [other.name, "x"]
    assert path.read_text() == "first"


# Locks between processes.


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
        with refuses("busy; wait for it"), locks.held(tmp_path, "busy; wait for it"):
            pass
        first.kill()
    with locks.held(tmp_path, "waiting") as waited:
        assert not waited


def test_a_file_system_without_locks_is_told_in_one_line(tmp_path, monkeypatch):
    def refused(*_):
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr("fcntl.flock", refused)
    with refuses("has no locks .flock.; put results_root and cache_root on one with locks"):
        locks.held(tmp_path, "waiting").__enter__()


@pytest.mark.parametrize("make, what", [(os.mkfifo, "a pipe"), (os.mkdir, "a folder")])
def test_what_is_no_file_in_the_place_of_a_lock_is_told_at_once(tmp_path, make, what):
    make(tmp_path / "lock")
    with refuses(f"lock: expected a regular file, but it is {what}"):
        locks.held(tmp_path, "waiting", wait=True).__enter__()
