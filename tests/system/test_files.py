"""Files that are written whole or not at all."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from elmo_bench.system.storage.files import replacing


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "content"), [("w", "neü\n"), ("wb", b"\0\xff")])
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
