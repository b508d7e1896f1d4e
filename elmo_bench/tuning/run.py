"""One tuning: the text, a softmax where the parent has none, the training, and the perplexities before and after.

The text is that of a task, without its labels.

A training sentence that also stands in dev or test is left out, and so is a dev sentence that stands in test, without
regard to capitals. Of equal sentences, such as SNLI's premises, one is kept.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hydra.utils import instantiate

from elmo_bench.bilm.card import CARD, is_private, read_card
from elmo_bench.bilm.corpus import Corpus, TextSource
from elmo_bench.bilm.lm import has_softmax, read_lm
from elmo_bench.bilm.pretraining.recipe import Recipe
from elmo_bench.bilm.pretraining.run import is_of, pretrain
from elmo_bench.configuration.keys import valid
from elmo_bench.configuration.schema import TuningConfig
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage import json_text
from elmo_bench.system.storage.files import write_text
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

    Raises:
        UserError: the task has no text, malformed data, a file of the parent that is missing or damaged; the errors of
            `pretrain`.
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
    """The text of a task.

    Raises:
        UserError: the task has no text, or none is left; missing or malformed data.
    """
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
