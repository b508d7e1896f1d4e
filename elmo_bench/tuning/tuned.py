"""The biLM of `bilm=tuned`: tuned when it is first needed, and identified by its recipe and its parent.

A tuning reads the text of a task without its labels, trains a softmax if the parent has none, tunes the biLM, and
measures the perplexities before and after. Training sentences that also occur in dev or test are left out, and so are
dev sentences that occur in test, ignoring case. Of equal sentences, such as SNLI's premises, one is kept.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hydra.utils import instantiate

from elmo_bench.bilm.card import CARD, check_folder, is_private, read_card
from elmo_bench.bilm.corpus import Corpus, TextSource
from elmo_bench.bilm.lm import has_softmax, read_lm, softmax_files
from elmo_bench.bilm.pretraining.recipe import Recipe
from elmo_bench.bilm.pretraining.run import is_of, pretrain
from elmo_bench.configuration.keys import valid
from elmo_bench.configuration.schema import RunConfig, TunedConfig, TuningConfig
from elmo_bench.records.settings import Files, maker
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage import json_text, limits
from elmo_bench.system.storage.files import write_text
from elmo_bench.system.storage.hashing import fingerprint, sha256
from elmo_bench.system.storage.locks import held
from elmo_bench.task import Reader
from elmo_bench.text.tokens import sentences

TRAIN, DEV = "train.txt", "dev.txt"


def tune(tuning: TuningConfig, work: Path, output: Path, about: Mapping[str, Any], force: bool = False) -> None:
    """Tunes a biLM and writes it with its card; after an interruption the same call resumes from the last checkpoint.

    Args:
        tuning: the settings, the parent's files, and the reader of the text.
        work: folder for the text, the new softmax if there is one, and checkpoints.
        output: folder of the tuned biLM, which appears only when it is complete.
        about: further keys for its card.
        force: start from the beginning.
    """
    text = read(tuning.task, tuning.reader, tuning.text)
    for name, lines in ((TRAIN, text.train), (DEV, text.dev)):
        write_text(work / "text" / name, "".join(f"{line}\n" for line in lines))

    def train(recipe: Recipe, folder: Path, about: Mapping[str, Any] | None = None) -> None:
        place = work / "text", work / "training", folder
        pretrain(recipe, *place, tuning.compile, tuning.every, force, tuning.device, about=about)

    parent = Path(str(tuning.source.options)), Path(str(tuning.source.weights))
    fitted = not has_softmax(parent[1].parent)
    if fitted:  # the same biLM with a new softmax, unless it exists
        folder, new = work / "softmax", tuning.softmax
        changes = {"vocabulary": new.vocabulary, "frozen": True, "lr": new.lr, "dropout": 0.0}
        recipe = _recipe(tuning, text, parent, new.epochs, **changes)
        done = (folder / CARD).is_file() and is_private(folder) and is_of(read_card(folder), recipe, work / "text")
        if force or not done:
            train(recipe, folder)
        parent = folder / "options.json", folder / "weights.hdf5"
    lm, words = read_lm(*parent)
    before = lm.perplexity(Corpus.read([TextSource(work / "text" / DEV)]), words, name=DEV)
    del lm  # the training reads its own copy
    known = set(words)
    described: dict[str, Any] = {"vocabulary": len(words), "left_out": text.left_out}
    for name, lines in (("train", text.train), ("dev", text.dev)):
        listed = [word for line in lines for word in line.split()]
        unknown = sum(word not in known for word in listed)
        described[name] = {"sentences": len(lines), "words": len(listed), "unknown": unknown}
    card = {
        **about,
        "softmax": "fitted to this text, all else frozen" if fitted else "the parent's",
        "text": described,
        "before": {DEV: before},
    }
    train(_recipe(tuning, text, parent, tuning.epochs, vocabulary=len(words)), output, card)
    shutil.rmtree(work / "training", ignore_errors=True)  # its checkpoints are larger than the biLM


def _recipe(tuning: TuningConfig, text: TaskText, parent: tuple[Path, Path], epochs: int, **changes: Any) -> Recipe:
    """The recipe of one training, whose length is counted in passes over the training text."""
    keys = ("lr", "softmax_lr", "warmup", "rows", "steps", "negatives", "clip", "dropout", "bfloat16", "seed")
    options, weights = (str(path.absolute()) for path in parent)
    files = {"options": json_text.read(options), "parent": (options, weights)}
    tokens = sum(len(line.split()) + 1 for line in text.train)  # the ends of sentences are predicted, too
    texts = {"text": [(TRAIN, None)], "heldout": [(DEV, None)], "tokens": epochs * tokens}
    return valid(Recipe, {**files, **texts, **{key: getattr(tuning, key) for key in keys}, **changes}, "recipe")


# The text.


class TaskText(NamedTuple):
    """Distinct sentences, their words separated by spaces."""

    train: list[str]
    dev: list[str]
    left_out: int  # training sentences that occur in dev or test


def read(task: str, reader: Mapping[str, Any], changes: Mapping[str, Any] | None = None) -> TaskText:
    """The text of a task."""
    instance: Reader = instantiate({**reader, **(changes or {})})
    splits = instance.load()
    train, dev, test = (_lines(splits[split], instance.fields) for split in ("train", "dev", "test"))
    known = {line.lower() for line in test}
    dev = [line for line in dev if line.lower() not in known]
    known |= {line.lower() for line in dev}
    kept = [line for line in train if line.lower() not in known]
    for name, lines in (("train", kept), ("dev", dev)):
        if not lines:
            raise UserError(f"task={task} has no text to tune a biLM on: the {name} split has no sentence of its own")
    return TaskText(kept, dev, len(train) - len(kept))


def _lines(rows: Any, fields: Sequence[str]) -> list[str]:
    """The distinct sentences of a split, in the biLM's form; a word that contains a space becomes two."""
    split = [rows.select_columns(list(fields))] if fields else []
    lines = (" ".join(" ".join(words).split()) for words in sentences(split, fields))
    return [line for line in dict.fromkeys(lines) if line]


VERSION = 1  # raised when the same recipe gives another model, rounding aside


class TunedBilm:
    """Tunes a biLM on a task's text.

    Args:
        bilm: names the parent, the task's reader, the settings and the folder of the result.
        places: its cache_root holds checkpoints.
    """

    def __init__(self, bilm: TunedConfig, places: RunConfig):
        self.bilm, self.tuning, self.cache = bilm, bilm.tuning, Path(places.cache_root)
        self.folder, source = Path(bilm.tuning.folder), bilm.tuning.source
        if source.maker == bilm.maker:
            raise UserError(f"bilm.parent={bilm.parent}: name a biLM to tune, not a tuned one")
        if not source.options or not source.weights:
            raise UserError(
                f"bilm.parent={bilm.parent} names no files of a biLM; choose another, or give "
                "bilm.tuning.source.options=FILE bilm.tuning.source.weights=FILE"
            )
        self.options, self.weights = Path(source.options), Path(source.weights)
        self.parent = maker(source, places)
        self.again = f"`elmo-bench tune task={self.tuning.task} ... force=true` tunes it again"

    def recipe(self) -> dict[str, Any]:
        """The settings, the reader that makes the text, and the parent's files or own recipe."""
        text = {**self.tuning.reader, **(self.tuning.text or {})}
        if self.parent is None:
            softmax = softmax_files(self.weights.parent) if has_softmax(self.weights.parent) else ()
            named = {"options": self.options, "weights": self.weights, **{path.name: path for path in softmax}}
            parent = {key: str(path.absolute()) for key, path in named.items()}
        else:
            parent = self.parent.recipe()
        return {"tuned": VERSION, **self.tuning.identifying(), "text": text, "parent": parent}

    def make(self, force: bool = False) -> Path:
        """The folder of the tuned biLM."""
        if self.parent is not None:
            self.parent.make()
        for path in (self.options, self.weights):
            if not path.is_file():
                where = f"; get it: {self.tuning.source.download}" if self.tuning.source.download else ""
                raise UserError(f"{limits.absent(path)}: bilm.parent={self.bilm.parent} names it{where}", path)
        if self.folder.exists() and not (self.folder / CARD).is_file():
            raise UserError("exists, but is not a biLM tuned here (no card.json); give another folder", self.folder)
        work = self.cache / "tuning" / fingerprint(os.path.realpath(self.folder))
        with held(work, "another process is tuning this biLM; waiting for it", wait=True):
            if force or not self.check():
                print(f"tuning the biLM {self.bilm.parent} on the text of {self.tuning.task}", flush=True)
                parent = {"name": self.bilm.parent, "sha256": sha256(self.weights)}
                about = {"made": self._recipe_hash(), "task": self.tuning.task, "parent": parent}
                tune(self.tuning, work, self.folder, about, force)
        return self.folder

    def check(self) -> bool:
        """Whether the tuned biLM exists; if its parent or recipe differs, it is refused."""
        if not self.folder.exists():
            return False
        card = read_card(self.folder, self.again)
        check_folder(self.folder, self.again)
        recorded, present = str((card.get("parent") or {}).get("sha256")), sha256(self.weights)
        if recorded != present:
            problem = (
                f"was tuned from the biLM with sha256 {recorded[:8]}..., but bilm.parent={self.bilm.parent} has "
                f"{present[:8]}...; restore that biLM, or {self.again}"
            )
            raise UserError(problem, self.folder)
        if card.get("made") != self._recipe_hash():
            problem = "was tuned by another recipe or on other text"
            raise UserError(f"{problem}; {self.again}, another bilm.tuning.folder keeps it", self.folder)
        return True

    def _recipe_hash(self) -> str:
        """A hash of the recipe, with the content of its files."""
        return fingerprint(Files({}, self.cache).digested(self.recipe()))
