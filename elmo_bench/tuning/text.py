"""The text of a task, without its labels: what a biLM is tuned on, and what its perplexity is measured on.

A training sentence that also stands in dev or test is left out, and so is a dev sentence that stands in test, without
regard to capitals. Of equal sentences, such as SNLI's premises, one is kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hydra.utils import instantiate

from elmo_bench.system.errors import UserError
from elmo_bench.system.storage.files import write_text
from elmo_bench.task import Reader
from elmo_bench.text.tokens import sentences

TRAIN, DEV = "train.txt", "dev.txt"


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
