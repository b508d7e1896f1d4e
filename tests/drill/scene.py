"""Small files of every kind that the project writes, made by its own commands; a trial may damage them."""

import json
import os
import random
import shutil
import sys
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager, redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

from elmo_bench.commands.bilm import Pretrain
from elmo_bench.commands.train import Train
from elmo_bench.records.record import Record
from elmo_bench.running import launch
from elmo_bench.system import places
from tests.command import stop_in_mid_epoch
from tests.conftest import Bench
from tests.drill import warm

WORDS = "ba de gi ko lu".split()
WORLD = json.loads("""
{"lm": [2000, 300, 300], "ner": [6, 3, 3], "srl": [6, 3, 3], "coref": [2, 1, 1], "snli": [6, 3, 3],
 "squad": [2, 1, 1], "sst": [10, 5, 5], "names": 200, "invented": 2}
""")
RECIPE = """
    recipe.options.lstm.dim=8 recipe.options.lstm.projection_dim=4 recipe.options.char_cnn.embedding.dim=4
    recipe.options.char_cnn.filters=[[1,4],[2,4]] recipe.text=[[train.txt,null]] recipe.heldout=[[dev.txt,null]]
    recipe.vocabulary=8 recipe.tokens=1200 recipe.rows=4 recipe.steps=6 recipe.negatives=3 recipe.lr=0.02
    recipe.warmup=5 recipe.seed=3
""".split()
VECTORS = """
# @package _global_
name: open
recipe: {text: [[lm/one.txt, null]], tokens: 600, rows: 4, steps: 5, seed: 1}
"""


class Scene:
    """A folder that is put back to how it was made.

    Args:
        make: fills it; it runs in a fork.

    Attributes:
        place: the folder.
    """

    def __init__(self, make: Callable[[Path], Any]):
        self.place = Path(tempfile.mkdtemp())
        outcome, told = warm.call(lambda: make(self.place) and None)
        if outcome != warm.VALUE:
            raise RuntimeError(told)
        self.folders = {path for path in self.place.rglob("*") if path.is_dir()}
        self.files = {path: path.read_bytes() for path in self.place.rglob("*") if path.is_file()}

    def written(self) -> list[Path]:
        """The files that are not as they were made."""
        there = [path for path in self.place.rglob("*") if path.is_file()]
        return [path for path in there if path.read_bytes() != self.files.get(path)]

    def restore(self) -> None:
        """Files that are as they were made are left alone."""
        for path in sorted(self.place.rglob("*"), reverse=True):
            if path.is_dir() and not path.is_symlink():
                if path not in self.folders:
                    path.rmdir()
            elif path not in self.files:
                path.unlink()
        for folder in sorted(self.folders):
            folder.mkdir(exist_ok=True)
        for path, content in self.files.items():
            if not path.is_file() or path.read_bytes() != content:
                path.unlink(missing_ok=True)
                path.write_bytes(content)


@cache
def of(make: Callable[[Path], Any]) -> Scene:
    """One scene for all that begin with the same."""
    return Scene(make)


def arguments(*values: str) -> AbstractContextManager[Any]:
    """The command line that an entry point reads."""
    return mock.patch.object(sys, "argv", ["drill", *values])


# A biLM.


def text(folder: Path) -> None:
    """train.txt and dev.txt, one sentence a line."""
    draw = random.Random(0)
    folder.mkdir(parents=True, exist_ok=True)
    for name, lines in (("train", 100), ("dev", 10)):
        sentences = [" ".join(draw.choices(WORDS, k=7)) for _ in range(lines)]
        (folder / f"{name}.txt").write_text("\n".join(sentences) + "\n")


def pretrained(folder: Path, *more: str) -> Path:
    """Trains a biLM on that text as the command does; a training that was interrupted is resumed."""
    places_ = f"root={folder}", f"cache_root={folder}/cache", f"output={folder}/bilm"
    with arguments("scale=mini", *places_, "device=cpu", "compile=false", *RECIPE, *more):
        Pretrain.parse(sys.argv[1:]).run()
    return folder / "bilm"


def bilm(folder: Path) -> Path:
    """A text and the biLM trained on it."""
    for name, content in _bilm_files().items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder / "bilm"


@cache
def _bilm_files() -> dict[str, bytes]:
    """The files of both, by their places in the folder: made once, and not again in every fork."""
    with tempfile.TemporaryDirectory() as folder:
        text(Path(folder))
        pretrained(Path(folder))
        files = [path for path in Path(folder).rglob("*") if path.is_file()]
        return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def shipped(folder: Path) -> None:
    """The biLMs and the heads that come with the project."""
    shutil.copytree(places.ROOT / "models", folder, ignore=shutil.ignore_patterns("*.md"), dirs_exist_ok=True)


# Runs of the toy task.


def bench(folder: Path) -> Bench:
    """The toy task with a small biLM, for this process."""
    made = Bench(folder)
    bilm(folder)
    page = made.conf / "pretrain" / "open.yaml"
    page.write_text(VECTORS.lstrip())
    os.utime(page, (0, 0))  # unchanged from scene to scene, so that what Hydra composed serves them all
    (made.data / "lm").mkdir()
    shutil.copy(folder / "train.txt", made.data / "lm" / "one.txt")
    return made


def opened(folder: Path) -> Bench:
    """The same in another process."""
    made = Bench.__new__(Bench)
    made.folder, made.conf, made.results, made.data = folder, folder / "conf", folder / "results", folder / "data"
    places.CONF = made.conf
    return made


def overrides(folder: Path, *changes: str) -> list[str]:
    """Of a run of the toy task in this folder."""
    files = f"bilm.options={folder}/bilm/options.json", f"bilm.weights={folder}/bilm/weights.hdf5"
    small = "task.fit.epochs=3", "task.optimizer.lr=0.1", "trainer.threads=1", "trainer.progress=false"
    return opened(folder).overrides(*files, *small, *changes)


def run(folder: Path, *changes: str) -> Record:
    """The record of a run: read, or made by training."""
    return launch.train(opened(folder).compose(*overrides(folder, *changes)))


def trained(folder: Path) -> None:
    """A toy task and one finished run."""
    bench(folder)
    run(folder)


def interrupted(folder: Path) -> None:
    """The same, but the run is killed in its third epoch."""

    def killed() -> None:
        stop_in_mid_epoch(2, 0)
        run(folder)

    bench(folder)
    os.waitpid(warm.start(killed), 0)


def swept(folder: Path) -> None:
    """A toy task and a finished sweep."""
    bench(folder)
    sweep(folder)


def sweep(folder: Path) -> None:
    """Two arms of two seeds each, as one multirun of the command."""
    seeds = "arm=baseline,elmo", "seed=1,2", "task.fit.epochs=1"
    with arguments("-m", *overrides(folder, *seeds)):
        Train.parse(sys.argv[1:]).run()


def vectors(folder: Path) -> Record:
    """The record of a run with skip-gram vectors of the text, which are made or found."""
    small = "vectors.size=4", "task.words.size=4", "vectors.epochs=2", "vectors.min_count=2", "task.fit.epochs=1"
    return run(folder, "arm=baseline", "vectors=text", *small)


@cache
def rehearse() -> None:
    """Runs and reads once what the trials do, so that all modules are imported; what it says is not shown."""
    with (
        tempfile.TemporaryDirectory() as folder, mock.patch.object(places, "CONF", places.CONF),
        open(os.devnull, "w") as silent, redirect_stdout(silent), redirect_stderr(silent),
    ):  # fmt: skip
        trained(Path(folder))
        vectors(Path(folder))
