"""A disk that is full, read-only or another user's: one line that names the file, and later, it goes on."""

import errno
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch

from elmo_bench.commands.bilm import Vocabulary
from elmo_bench.commands.compare import Report
from elmo_bench.commands.use import Embed
from elmo_bench.layers.cache import ActivationCache
from elmo_bench.system import console
from elmo_bench.system.storage import disk
from elmo_bench.system.storage.files import replacing, write_text
from elmo_bench.system.storage.locks import held
from tests import tiny_bilm
from tests.bilm.pretraining.test_pretraining_runs import inside, place
from tests.conftest import ROOT
from tests.fakes import FakeBiLM, for_each, refuses

pytestmark = pytest.mark.slow

__all__ = ["place"]  # a fixture
FULL = r"no space left"


@contextmanager
def small_files(size: int) -> Iterator[None]:
    """No file may have more bytes: the error of a full disk, in every write beyond."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.fixture
def small_disk(tmp_path) -> Iterator[Path]:
    """A disk of 64 kB; skipped where none may be mounted."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if shutil.which("mount") is None or mount(folder, "size=64k"):
        pytest.skip("no disk may be mounted here")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def mount(folder: Path, options: str) -> int:
    return subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], capture_output=True).returncode


def partial(folder: Path) -> list[Path]:
    return list(folder.rglob("*.partial*"))


def refused(action, capsys) -> str:
    """The line of a command that is refused."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        console.report(action)
    said = capsys.readouterr().err
    assert ended.value.code == 2, said
    assert "Traceback" not in said
    (line,) = [line for line in said.splitlines() if line.startswith("error: ")]
    return line


# The parts.


@for_each("mode", "w wb")
def test_a_full_disk_leaves_the_old_file_and_names_it(tmp_path, mode):
    (tmp_path / "x").write_text("old")
    with refuses(rf"x: {FULL}"), small_files(1000), replacing(tmp_path / "x", mode) as file:
        file.write("new" * 1000 if mode == "w" else b"new" * 1000)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("x", "old")]


def test_a_disk_without_room_is_told_as_such(small_disk):
    with refuses(rf"x: {FULL} on the disk"):
        write_text(small_disk / "x", "new" * 100_000)
    assert not list(small_disk.iterdir())
    write_text(small_disk / "x", "new")


def test_a_read_only_disk_is_told_as_such(small_disk):
    write_text(small_disk / "x", "old")
    if mount(small_disk, "remount,ro"):
        pytest.skip("no disk may be mounted read-only here")
    for action in (lambda: write_text(small_disk / "x", "new"), lambda: write_text(small_disk / "a" / "x", "new")):
        with refuses(r"the disk is read-only"):
            action()
    with refuses(r"the disk is read-only"), held(small_disk / "run", "waiting"):
        pass


@pytest.mark.parametrize("below", ["", "a", "a/b"])
def test_a_file_where_a_folder_is_needed_is_named(tmp_path, below, file):
    file("precious", "file")
    for action in (
        lambda: write_text(tmp_path / "file" / below / "x", "new"),
        lambda: held(tmp_path / "file" / below, "waiting").__enter__(),
    ):
        with refuses(r"/file: is a file where a folder is needed"):
            action()
    assert (tmp_path / "file").read_text() == "precious"


def test_a_device_is_not_replaced_and_a_link_is_followed(tmp_path):
    with refuses(r"/dev/full: is a device"):
        write_text(Path("/dev/full"), "x")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    with refuses(r"pipe: is a device or a pipe"):
        write_text(tmp_path / "pipe", "x")
    write_text(tmp_path / "link", "x")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text() == "x"


def test_libraries_do_not_see_the_error(tmp_path):
    """HDF5 would end the process, and torch's writer too."""

    def layers(stream):
        with h5py.File(stream, "w") as file:
            for i in range(50):
                file.create_dataset(str(i), data=np.zeros(1000))

    for write in (layers, lambda stream: torch.save(torch.zeros(9000), stream)):
        with (
            refuses(FULL), small_files(20_000), replacing(tmp_path / "x", "w+b") as file,
            disk.steady(file) as stream,
        ):  # fmt: skip
            write(stream)
        assert not list(tmp_path.iterdir())
        with replacing(tmp_path / "x", "w+b") as file, disk.steady(file) as stream:
            write(stream)
        (tmp_path / "x").unlink()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as two users")
def test_the_lock_of_another_user_is_one_line(open_folder):
    run = open_folder / "run"
    with held(run, "waiting"):
        pass
    with as_nobody(), refuses(r"run/lock: this user may not"), held(run, "waiting"):
        pass
    with as_nobody(), refuses(r"run/x: this user may not"):
        write_text(run / "x", "new")


@contextmanager
def as_nobody() -> Iterator[None]:
    """This process with the rights of another user."""
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_another_error_of_the_system_keeps_its_traceback():
    assert disk.explain(OSError(errno.ECONNREFUSED, "refused")) is None
    assert console.explain(OSError(errno.ECONNREFUSED, "refused")) is None


# The commands.


@pytest.mark.usefixtures("stand_in")
def test_a_run_on_a_full_disk_goes_on_when_there_is_room(bench, capsys):
    whole = bench.train(f"results_root={bench.folder}/whole")
    for size, name in ((500, "/work/open/toy/"), (9000, ".ckpt")):  # the CSV file, the checkpoint
        with small_files(size):
            assert name in (line := refused(bench.train, capsys))
        assert "no space left" in line
        assert not partial(bench.folder)
    again = bench.train()
    assert again.metrics == whole.metrics
    assert again.history["loss"] == whole.history["loss"]


def test_a_cache_without_room_is_computed_around(tmp_path, capsys):
    sentences = [["a", "b", str(i)] for i in range(60)]
    cache = ActivationCache(FakeBiLM(), tmp_path / "cache")
    with small_files(1000):
        cache.prepare(sentences)
    assert "layers cannot be written" in capsys.readouterr().err
    assert not partial(tmp_path)
    roomy = ActivationCache(FakeBiLM(), tmp_path / "roomy")
    roomy.prepare(sentences)
    assert torch.equal(cache.layers(sentences), roomy.layers(sentences))
    cache.prepare(sentences)
    assert len(cache.shards.places) == 60


def test_a_pretraining_on_a_full_disk_goes_on_when_there_is_room(place):
    small = ("recipe.tokens=960", "every=0")
    assert inside(place, *small, output="first")[0] == 0
    shutil.rmtree(place / "cache")
    for size in (20, 3000, 25_000):  # the log, the checkpoint, the softmax
        with small_files(size):
            code, _, said = inside(place, *small)
        assert code == 2, said
        assert "no space left" in said
        assert "Traceback" not in said
        assert not (place / "out").exists()
        assert not partial(place)
    assert inside(place, *small)[0] == 0
    for name in ("weights.hdf5", "softmax.safetensors", "vocabulary.txt"):
        assert (place / "out" / name).read_bytes() == (place / "first" / name).read_bytes()


@pytest.fixture
def tiny(tmp_path) -> tuple[str, str]:
    tiny_bilm.exported(tmp_path)
    (tmp_path / "text.txt").write_text("a few words in a line\n" * 200)
    return f"options={tmp_path}/options.json", f"weights={tmp_path}/weights.hdf5"


def test_embed_on_a_full_disk_does_not_crash(tmp_path, tiny):
    """In a process of its own: HDF5 writes what it still holds at the end of the process."""
    line = [sys.executable, "-m", "elmo_bench", "embed", *tiny]
    line += [f"input={tmp_path}/text.txt", f"output={tmp_path}/out.h5"]
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))  # noqa: E731
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, preexec_fn=limit)
    assert done.returncode == 2, done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert f"{tmp_path}/out.h5: no space left" in done.stderr
    assert not (tmp_path / "out.h5").exists()
    assert not partial(tmp_path)


@pytest.mark.parametrize(
    "command, arguments, size",
    [
        (Embed, ["input={}/text.txt", "output={}/out/x"], 50_000),
        (Vocabulary, ["text={}/text.txt", "output={}/out/x"], 20),
        (Report, ["results_root={}/out"], 100),
    ],
    ids=["embed", "vocabulary", "report"],
)
def test_a_command_is_refused_and_then_done(command, arguments, size, tmp_path, tiny, capsys, monkeypatch):
    given = [*(tiny if command is Embed else ()), *(argument.format(tmp_path) for argument in arguments)]
    monkeypatch.setattr(sys, "argv", ["x", *given])
    (tmp_path / "out").mkdir()
    with small_files(size):
        assert f"{tmp_path}/out" in refused(lambda: command.parse(given).run(), capsys)
    assert not partial(tmp_path)
    console.report(lambda: command.parse(given).run())
    assert any(path.is_file() for path in (tmp_path / "out").rglob("*"))
