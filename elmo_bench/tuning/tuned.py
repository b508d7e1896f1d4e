"""The biLM of `bilm=tuned`: tuned where that has not been done yet, and known by its recipe and its parent.

A tuning reads the text of a task without its labels, fits a softmax where the parent has none, trains, and measures the
perplexities before and after. A training sentence that also stands in dev or test is left out, and so is a dev sentence
that stands in test, without regard to capitals. Of equal sentences, such as SNLI's premises, one is kept.
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
from elmo_bench.identity.settings import Files, maker
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage import json_text, limits
from elmo_bench.system.storage.files import write_text
from elmo_bench.system.storage.hashing import fingerprint, sha256
from elmo_bench.system.storage.locks import held
from elmo_bench.task import Reader
from elmo_bench.text.tokens import sentences

TRAIN, DEV = "train.txt", "dev.txt"


def tune(tuning: TuningConfig, work: Path, output: Path, about: Mapping[str, Any], force: bool = False) -> None:
    """Tunes a biLM and writes it with its card; after any interruption the same call goes on from the last checkpoint.

    Args:
        tuning: the numbers, the parent's files, and the reader of the text.
        work: folder for the text, the new softmax if there is one, and checkpoints.
        output: folder of the tuned biLM, which appears only when it is complete.
        about: further keys of its card.
        force: start from the beginning.
    """
    text = read(tuning.task, tuning.reader, tuning.text)
    text.write(work / "text")
    parent = Path(str(tuning.source.options)), Path(str(tuning.source.weights))
    fitted = not has_softmax(parent[1].parent)
    if fitted:
        parent = _with_softmax(tuning, text, parent, work, force)
    lm, words = read_lm(*parent)
    before = lm.perplexity(Corpus.read([TextSource(work / "text" / DEV)]), words, name=DEV)
    del lm  # the training reads its own
    card = {
        **about,
        "softmax": "fitted to this text, all else frozen" if fitted else "the parent's",
        "text": _described(text, words),
        "before": {DEV: before},
    }
    recipe = _recipe(tuning, text, parent, vocabulary=len(words))
    _train(tuning, recipe, work, output, force, card)
    shutil.rmtree(work / "training", ignore_errors=True)  # its checkpoints are larger than the biLM


def _with_softmax(
    tuning: TuningConfig, text: TaskText, parent: tuple[Path, Path], work: Path, force: bool
) -> tuple[Path, Path]:
    """Options and weights of the same biLM beside a new softmax, which is fitted unless that has been done."""
    folder, new = work / "softmax", tuning.softmax
    recipe = _recipe(
        tuning, text, parent, vocabulary=new.vocabulary, frozen=True, epochs=new.epochs, lr=new.lr, dropout=0.0
    )
    done = (folder / CARD).is_file() and is_private(folder) and is_of(read_card(folder), recipe, work / "text")
    if force or not done:
        _train(tuning, recipe, work, folder, force)
    return folder / "options.json", folder / "weights.hdf5"


def _recipe(
    tuning: TuningConfig, text: TaskText, parent: tuple[Path, Path], *, epochs: int | None = None, **changes: Any
) -> Recipe:
    """The recipe of one training."""
    same = {
        key: getattr(tuning, key)
        for key in ("lr", "softmax_lr", "warmup", "rows", "steps", "negatives", "clip", "dropout", "bfloat16", "seed")
    }
    options, weights = (str(path.absolute()) for path in parent)
    files = {"options": json_text.read(options), "parent": (options, weights)}
    read = {"text": [(TRAIN, None)], "heldout": [(DEV, None)], "tokens": (epochs or tuning.epochs) * text.size()}
    return valid(Recipe, {**files, **read, **same, **changes}, "recipe")


def _train(
    tuning: TuningConfig, recipe: Recipe, work: Path, output: Path, force: bool, about: Mapping[str, Any] | None = None
) -> None:
    pretrain(
        recipe, work / "text", work / "training", output, tuning.compile, tuning.every, force, tuning.device,
        about=about,
    )  # fmt: skip


def _described(text: TaskText, words: list[str]) -> dict[str, Any]:
    """The size of both texts, and how much of them the vocabulary lacks."""
    known = set(words)
    described: dict[str, Any] = {"vocabulary": len(words), "left_out": text.left_out}
    for name, lines in (("train", text.train), ("dev", text.dev)):
        words = [word for line in lines for word in line.split()]
        unknown = sum(word not in known for word in words)
        described[name] = {"sentences": len(lines), "words": len(words), "unknown": unknown}
    return described


# The text.


class TaskText(NamedTuple):
    """Distinct sentences, their words separated by spaces."""

    train: list[str]
    dev: list[str]
    left_out: int  # training sentences that stand in dev or test

    def write(self, folder: Path) -> None:
        """Writes train.txt and dev.txt, one sentence a line."""
        for name, lines in ((TRAIN, self.train), (DEV, self.dev)):
            write_text(folder / name, "".join(f"{line}\n" for line in lines))

    def size(self) -> int:
        """How many words a biLM predicts in one pass over the training text, the ends of sentences included."""
        return sum(len(line.split()) + 1 for line in self.train)


def read(task: str, reader: Mapping[str, Any], changes: Mapping[str, Any] | None = None) -> TaskText:
    """The text of a task."""
    made: Reader = instantiate({**reader, **(changes or {})})
    splits = made.load()
    train, dev, test = (_lines(splits[split], made.fields) for split in ("train", "dev", "test"))
    known = {line.lower() for line in test}
    dev = [line for line in dev if line.lower() not in known]
    known |= {line.lower() for line in dev}
    kept = [line for line in train if line.lower() not in known]
    for name, lines in (("train", kept), ("dev", dev)):
        if not lines:
            raise UserError(f"task={task} has no text to tune a biLM on: no sentence of its own in the {name} split")
    return TaskText(kept, dev, len(train) - len(kept))


def _lines(rows: Any, fields: Sequence[str]) -> list[str]:
    """The distinct sentences of a split, as a biLM reads them; a word with a space in it becomes two."""
    split = [rows.select_columns(list(fields))] if fields else []
    lines = (" ".join(" ".join(words).split()) for words in sentences(split, fields))
    return [line for line in dict.fromkeys(lines) if line]


VERSION = 1  # of the tuning: raised when the same recipe gives another model, rounding aside


class TunedBilm:
    """Tunes a biLM on a task's text.

    Args:
        bilm: names the parent, the task's reader, the numbers and the folder of the result.
        places: its cache_root holds checkpoints.
    """

    def __init__(self, bilm: TunedConfig, places: RunConfig):
        self.bilm, self.tuning, self.cache = bilm, bilm.tuning, Path(places.cache_root)
        self.folder, source = Path(bilm.tuning.folder), bilm.tuning.source
        if source.maker == bilm.maker:
            raise UserError(f"bilm.parent={bilm.parent}: name the biLM to be tuned, not a tuned one")
        if not source.options or not source.weights:
            raise UserError(
                f"bilm.parent={bilm.parent} names no files of a biLM; choose another, or give "
                "bilm.tuning.source.options=FILE bilm.tuning.source.weights=FILE"
            )
        self.options, self.weights = Path(source.options), Path(source.weights)
        self.parent = maker(source, places)
        self.again = f"`elmo-bench tune task={self.tuning.task} ... force=true` tunes it again"

    def recipe(self) -> dict[str, Any]:
        """The numbers, the text as the task's reader makes it, and the parent's files or own recipe."""
        text = {**self.tuning.reader, **(self.tuning.text or {})}
        parent = self._files() if self.parent is None else self.parent.recipe()
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
        with held(work, "biLM: being tuned once for both runs", wait=True):
            if force or not self.check():
                print(f"tuning the biLM {self.bilm.parent} on the text of {self.tuning.task}", flush=True)
                parent = {"name": self.bilm.parent, "sha256": sha256(self.weights)}
                about = {"made": self._made(), "task": self.tuning.task, "parent": parent}
                tune(self.tuning, work, self.folder, about, force)
        return self.folder

    def check(self) -> bool:
        """Whether the tuned biLM is there."""
        if not self.folder.exists():
            return False
        card = read_card(self.folder, self.again)
        check_folder(self.folder, self.again)
        if fault := self._fault(card):
            raise UserError(fault, self.folder)
        return True

    def _fault(self, card: Mapping[str, Any]) -> str | None:
        """Why the tuned biLM of a card is not the one that is asked for; None if it is."""
        recorded, present = str((card.get("parent") or {}).get("sha256")), sha256(self.weights)
        if recorded != present:
            return (
                f"was tuned from the biLM with sha256 {recorded[:8]}..., but bilm.parent={self.bilm.parent} has "
                f"{present[:8]}...; restore that one, or {self.again}"
            )
        if card.get("made") != self._made():
            return f"was tuned by another recipe or on other text; {self.again}, another bilm.tuning.folder keeps it"
        return None

    def _made(self) -> str:
        """A hash of the recipe, with the content of its files."""
        return fingerprint(Files({}, self.cache).digested(self.recipe()))

    def _files(self) -> dict[str, str]:
        beside = softmax_files(self.weights.parent) if has_softmax(self.weights.parent) else ()
        named = {path.name: str(path.absolute()) for path in beside}
        return {"options": str(self.options.absolute()), "weights": str(self.weights.absolute()), **named}
