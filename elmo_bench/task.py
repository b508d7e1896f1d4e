"""The contract between the framework and a task: protocols for reader, head and metric, and the types they exchange.

A task is a folder `tasks/<name>/` with a reader, a head and a metric, and its configuration files under `conf/task/`.
The framework (`elmo_bench/`) uses them only through the protocols below and never imports a task.

`tasks/README.md` shows step by step how to add a task. A task that does not offer `scale=mini` has a function
`write_example(folder)` in its reader.py; it writes small invented data where the configuration expects them below
`data_root`, for the tests of this contract.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from elmo_bench.metrics.items import Items
from elmo_bench.text.part import WHOLE, Part
from elmo_bench.text.tokens import Tokens
from elmo_bench.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from datasets import DatasetDict

Row = dict[str, Any]  # one example from the reader: JSON-serializable values, gold labels included
Prediction = Any  # one JSON-serializable answer for one row


class Embedded(NamedTuple):
    """The input of a head for one text field."""

    x: Tensor  # (B, T, D): [x_k ; ELMo_k] with ELMo at the input, else x_k
    elmo: Tensor | None  # (B, T, E): the second mixture, with ELMo at the output
    mask: Tensor  # (B, T) bool

    def after(self, h: Tensor) -> Tensor:
        """[h_k ; ELMo_k] with ELMo at the output (paper, section 3.3), else h unchanged."""
        return h if self.elmo is None else torch.cat([h, self.elmo], dim=-1)


class Batch(NamedTuple):
    """The result of a reader's `collate` for a list of rows; Lightning moves its tensors to the device."""

    rows: list[Row]
    texts: dict[str, Tokens]  # by the names in reader.fields
    labels: dict[str, Tensor]  # gold labels for the loss (absent for raw text), and other features of the input

    @property
    def size(self) -> str:
        """In words: "8 rows, 57 tokens (64 with padding)"."""
        tokens = sum(sum(text.lengths) for text in self.texts.values())
        padded = sum(text.words.numel() for text in self.texts.values())
        return f"{len(self.rows)} rows, {tokens} tokens ({padded} with padding)"

    def each(self, change: Callable[[Tensor], Tensor]) -> Batch:
        """A copy with every tensor changed; the rows, many plain Python objects, stay the same."""
        texts = {name: tokens.each(change) for name, tokens in self.texts.items()}
        return self._replace(texts=texts, labels={name: change(label) for name, label in self.labels.items()})


class Scores(Protocol):
    """The result of a head's `forward`: any object with a loss (None if the batch has no labels)."""

    loss: Tensor | None


class Reader(Protocol):
    """Reads a data set and turns rows into batches.

    `fields` names the columns of a row that hold words: a list of words, or a list of sentences (documents).
    `vocabularies` is filled by `load` from the training split alone ("words", and where used "chars", "labels", ...)
    or restored from a checkpoint; a reader has no other state. `lower` tells whether words are looked up in lower case,
    in the vocabulary and in a file of word vectors.

    A reader may support more: see `Samples`, `ReadsFiles`, `WritesOfficial` and `Windows` below.
    """

    fields: tuple[str, ...]
    lower: bool
    vocabularies: dict[str, Vocabulary]

    def load(self, part: Part = WHOLE) -> DatasetDict:
        """Splits "train", "dev", "test". Raises `UserError` naming file and line on malformed data.

        Args:
            part: of the training data. `part.of(items, unit)` takes it from a list of the task's natural units
                (sentences, documents), before the vocabularies are counted.
        """
        ...

    def collate(self, rows: Sequence[Row]) -> Batch: ...

    def from_text(self, /, **raw: Any) -> Row:
        """A row without labels from one JSON object of `predict`'s input, which may have further keys.

        "text" is tokenized (`text/tokenizer.py`) and, where a row is a document, split into sentences; "tokens" and
        "sentences" are used unchanged. Raises `UserError` on missing keys.
        """
        ...


@runtime_checkable
class Samples(Protocol):
    """A reader that trains on only a part of some rows, such as a window of a long document."""

    def sample(self, row: Row, random: np.random.Generator) -> Row:
        """The part to train on in this epoch; `random` depends only on the seed and the epoch."""
        ...


@runtime_checkable
class ReadsFiles(Protocol):
    """A reader that makes rows for `predict` from the files of training: the data set's own format, and tables.

    The part of the file that a line of the output repeats is in its row under "input". The attribute `keys` lists the
    keys of `task.data` that control how files are read, besides `columns`.

    If such files are JSON, the attribute `json_keys` is the frozenset of keys that distinguishes their first object
    from a row.
    """

    def from_file(self, path: str) -> list[Row]:
        """Rows without labels. Raises `UserError` on malformed data."""
        ...


@runtime_checkable
class WritesOfficial(Protocol):
    """A reader that converts predictions to the official scorer's format, for `predict`.

    If the name of an output is enough to ask for that format, the attribute `official_ending` is its ending (".json").
    A method `unanswered(row)` gives an empty prediction, used to check the rows before anything is computed.
    """

    def official(self, predictions: Sequence[Prediction], rows: Sequence[Row]) -> str:
        """The text of a file for `score` and the official scorer. Raises `UserError` if it cannot represent a row."""
        ...


@runtime_checkable
class Windows(Protocol):
    """A reader that cuts long rows into windows for `predict`; a row's answer is that of its most confident window."""

    def windows(self, row: Row) -> list[Row]: ...

    def confidence(self, prediction: Prediction) -> float: ...


class Head(Protocol):
    """A `torch.nn.Module` built as `head(input_size=D, elmo_size=E, vocabularies=...)`.

    D is the width of `Embedded.x`, and E that of `Embedded.elmo` (0 without it). A head with an argument `own_size`
    also gets the width of x_k, with which x begins.

    If some parameters have no gradient for some batches, the attribute `leaves_unused` must be true; otherwise several
    devices would wait for these gradients.
    """

    def __call__(self, texts: Mapping[str, Embedded], batch: Batch) -> Scores: ...

    def decode(self, scores: Scores, batch: Batch) -> list[Prediction]: ...


@runtime_checkable
class Describes(Protocol):
    """A head that adds readable details to its predictions (names, words, probabilities), for `predict`."""

    def describe(self, predictions: Sequence[Prediction], scores: Any, batch: Batch) -> list[dict[str, Any]]:
        """A JSON object for each row; `predictions` are the result of `decode` for the same scores and batch."""
        ...


class Metric(Protocol):
    """The official definition, in percent, as a function of sums over examples. A fresh one is made for every pass.

    `elmo_bench.metrics.items.AdditiveMetric` implements all but `update` and `from_totals`.
    """

    def update(self, predictions: Sequence[Prediction], rows: Sequence[Row]) -> None:
        """Counts rows, in any order."""
        ...

    def items(self) -> Items:
        """The counts of each example, in the order of the rows given to `update`."""
        ...

    @staticmethod
    def from_totals(totals: Mapping[str, Any]) -> dict[str, Any]:
        """The metric from the sums of the examples' statistics: over all examples, or over a resample.

        A sum may also be an (n,) array, of n resamples; the result is then (n,), or an error if that is not possible.
        """
        ...

    def compute(self) -> dict[str, float]:
        """`from_totals(items().totals())`."""
        ...
