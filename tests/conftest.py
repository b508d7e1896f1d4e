"""Fixtures for all tests."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch: matrices this small are slower on several threads
os.environ.pop("MAKEFLAGS", None)  # of `make test ARGS=...`: a make that a test calls would take over ARGS

import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
import torch
from hydra.core.global_hydra import GlobalHydra
from omegaconf import DictConfig, base, grammar_parser

from elmo_bench.bilm import frozen
from elmo_bench.configuration import composing
from elmo_bench.configuration.schema import RunConfig
from elmo_bench.nn.kernels import library
from elmo_bench.system import places, processes
from elmo_bench.system.machine import cores
from tests import fakes, toy

ROOT = Path(__file__).resolve().parent.parent
PATIENCE = 900  # seconds after which what a test has started counts as hanging, on a busy machine too
STAND_IN = "elmo_bench.layers.bilm.BilmLayers"  # what a small stand-in for the biLM takes the place of
needs_compiler = pytest.mark.skipif(
    not any(shutil.which(name) for name in library.COMPILERS if name), reason="no C++ compiler"
)

# Thousands of configurations are composed, with the same interpolations, which OmegaConf parses in plain Python.
setattr(base, "parse", lru_cache(maxsize=4096)(grammar_parser.parse))  # noqa: B010


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """With `-n auto`, two processes more than cores: some tests wait for a server or for another process."""
    return cores() + 2


@pytest.fixture(scope="session", autouse=True)
def interruptible() -> None:
    """Ctrl-C is heard by what the tests start, also where they run in the background of a script, which ignores it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Tests marked `gpu` are skipped where there are fewer GPUs than they need: one, or `gpu(number)`."""
    for mark in item.iter_markers("gpu"):
        wanted = mark.args[0] if mark.args else 1
        if (found := torch.cuda.device_count()) < wanted:
            pytest.skip(f"needs {wanted} NVIDIA GPU{'s' * (wanted > 1)}, and torch finds {found}")


@pytest.fixture(autouse=True)
def no_hydra_left() -> Iterator[None]:
    """A command that ended in an error leaves Hydra's global state behind."""
    yield
    GlobalHydra.instance().clear()


@pytest.fixture(scope="session")
def data_root() -> Path:
    """The folder of real data: DATA_ROOT, else ../shared/data beside the checkout."""
    place = os.environ.get("DATA_ROOT")
    folder = Path(place) if place else ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"no real data: {folder} is no folder (set DATA_ROOT)")
    return folder


@pytest.fixture(scope="session")
def stored_activations() -> Path:
    """elmo_fixture of REFERENCE_ROOT, else of ../shared/reference beside the checkout."""
    place = os.environ.get("REFERENCE_ROOT")
    folder = (Path(place) if place else ROOT.parent / "shared" / "reference") / "elmo_fixture"
    if not folder.is_dir():
        pytest.skip(f"no stored activations: {folder} is no folder (set REFERENCE_ROOT)")
    return folder


@pytest.fixture
def one_thread(set_threads) -> None:
    """Sums in one order, so that two runs can be equal bit for bit."""
    set_threads(1)


@pytest.fixture
def default_dtype() -> Iterator[Callable[[torch.dtype], None]]:
    """Sets torch's type of new numbers, for one test."""
    before = torch.get_default_dtype()
    yield torch.set_default_dtype
    torch.set_default_dtype(before)


@pytest.fixture
def fresh(tmp_path, monkeypatch) -> Iterator[Path]:
    """An empty folder for compiled libraries, and none loaded."""
    monkeypatch.setattr(places, "machine_cache", lambda: tmp_path)
    frozen.kernels.cache_clear()
    yield tmp_path / "kernels"
    frozen.kernels.cache_clear()


@pytest.fixture
def without_tf32(monkeypatch) -> None:
    """On a GPU, cuDNN would compute float32 products in 19 bits by default."""
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user may look into, unlike `tmp_path`."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        yield Path(name)


@pytest.fixture
def file(tmp_path) -> Callable[..., Path]:
    """Writes a file and returns its path; text is packed where the name says so."""

    def write(content: str | bytes, name: str = "file.conll") -> Path:
        return fakes.put(tmp_path, {name: content}) / name

    return write


def last_of(chosen: Sequence[str]) -> list[str]:
    """Of two values for a key, the last."""
    return list({argument.partition("=")[0]: argument for argument in chosen}.values())


class Bench:
    """The toy task, its data, a stand-in for the biLM, and a place for results, all in one temporary folder."""

    def __init__(self, folder: Path):
        self.folder, self.conf, self.results = folder, folder / "conf", folder / "results"
        shutil.copytree(places.CONF, self.conf)
        (self.conf / "task" / "toy.yaml").write_text(toy.PAGE.lstrip())
        scale = self.conf / "scale" / "open.yaml"
        text = scale.read_text().replace("/vectors: glove.6B.50d", "/vectors: page")  # random ones
        scale.write_text(re.sub(r"bilm: open$", "bilm: custom", text, flags=re.M))
        for page in (self.conf / "task" / "toy.yaml", scale):
            os.utime(page, (0, 0))  # unchanged from test to test, so that what Hydra composed serves them all
        self.data = toy.write(folder / "data")
        (folder / "options.json").write_text("{}")
        (folder / "weights").write_text("3")

    def overrides(self, *changes: str) -> list[str]:
        """For one run of the toy task; of two values for a key, the last counts."""
        chosen = [
            "task=toy", "scale=open", "bilm=custom", f"bilm.options={self.folder}/options.json",
            f"bilm.weights={self.folder}/weights", f"data_root={self.data}", f"results_root={self.results}",
            f"cache_root={self.folder}/cache", "trainer=cpu", *changes,
        ]  # fmt: skip
        if "bilm=none" in changes:
            chosen = [argument for argument in chosen if not argument.startswith("bilm.")]
        return last_of(chosen)

    def shared(self, *changes: str) -> list[str]:
        """The same without task and scale, which a sweep is asked for."""
        return [one for one in self.overrides(*changes) if one.partition("=")[0] not in ("task", "scale")]

    def compose(self, *changes: str) -> DictConfig:
        return composing.compose(self.overrides(*changes))

    def validated(self, *changes: str) -> RunConfig:
        return composing.validated(self.compose(*changes))

    def train(self, *changes: str):
        from elmo_bench.running.launch import train

        return train(self.compose(*changes))

    def died(self, *changes: str) -> Path:
        """The work folder of a run that has trained to its end, and died before its record."""
        from elmo_bench.running import run

        before = {*self.results.rglob("last.ckpt")}
        with pytest.MonkeyPatch.context() as dying:
            dying.setattr(run, "make_record", lambda *_: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                self.train(*changes)
        (last,) = {*self.results.rglob("last.ckpt")} - before
        return last.parent

    def command(self, name: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """A command in a fork of this process, with the toy task's configuration."""
        from tests.command import forked

        return forked(self.conf, name, arguments, clean_environment() | environment)

    def process(self, name: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """The same in a new process, as a user starts it."""
        return subprocess.run(
            processes.python("tests.command", str(self.conf), name, *arguments),
            cwd=ROOT, env=clean_environment() | environment, capture_output=True, text=True, timeout=PATIENCE,
        )  # fmt: skip


def clean_environment() -> dict[str, str]:
    """Without what would change a command's behaviour."""
    dropped = """
        HYDRA_FULL_ERROR DATA_ROOT VECTORS_ROOT ELMO_BENCH_CACHE WANDB_API_KEY WANDB_SERVICE STOP
        MAKEFLAGS MAKELEVEL MFLAGS MAKEOVERRIDES
    """.split()
    return {key: value for key, value in os.environ.items() if key not in dropped}


def taken(made: Bench, patch: pytest.MonkeyPatch) -> Bench:
    """The toy task in this process."""
    patch.setattr(places, "CONF", made.conf)
    patch.delenv("DATA_ROOT", raising=False)
    patch.delenv("WANDB_API_KEY", raising=False)
    return made


@pytest.fixture
def bench(tmp_path, monkeypatch) -> Bench:
    """The toy task for one test."""
    return taken(Bench(tmp_path), monkeypatch)


@pytest.fixture(scope="module")
def shared_bench(tmp_path_factory) -> Iterator[Bench]:
    """The toy task with a stand-in for the biLM, for all tests of a module."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(STAND_IN, fakes.FakeBiLM)
        yield taken(Bench(tmp_path_factory.mktemp("toy")), patch)


@pytest.fixture
def call() -> Callable[..., tuple[int, str, str]]:
    """Calls a command in this process; returns exit status, stdout, stderr."""
    return fakes.answer


@pytest.fixture
def refused(call) -> Callable[..., str]:
    """Calls a command, which must refuse its arguments; returns the one line that it says."""

    def run(command: Any, *arguments: object) -> str:
        status, out, err = call(command, *arguments)
        assert (status, out, err.count("\n")) == (2, "", 1), err
        return err

    return run


@pytest.fixture
def stand_in(monkeypatch) -> None:
    """A small stand-in for the biLM."""
    monkeypatch.setattr(STAND_IN, fakes.FakeBiLM)


@pytest.fixture
def set_threads() -> Iterator[Callable[[int], None]]:
    """Sets torch's number of threads, for one test."""
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)
