"""Remedies for a training that cannot continue, and the check of a metric before it starts."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from elmo_bench.records.items import difference
from elmo_bench.system.errors import UserError

if TYPE_CHECKING:
    from elmo_bench.task import Batch, Metric, Prediction, Row

LOWER = "lower task.optimizer.lr or task.clip.value"
SMALLER = "lower task.batch.batch_size, or bound the tokens of a batch by task.batch.token_budget"


class Size(NamedTuple):
    """The size of a batch."""

    rows: int
    tokens: int
    padded: int  # tokens, padding included

    @classmethod
    def of(cls, batch: Batch) -> Size:
        lengths = [len(sentence) for tokens in batch.texts.values() for sentence in tokens.sentences]
        return cls(len(batch.rows), sum(lengths), sum(tokens.words.numel() for tokens in batch.texts.values()))

    def __str__(self) -> str:
        return f"{self.rows} rows, {self.tokens} tokens ({self.padded} with padding)"


def rehearse_metric(make: Callable[[], Metric], predictions: Sequence[Prediction], rows: Sequence[Row]) -> None:
    """Compares a metric with its own examples before training.

    An untrained model may have no correct answer. So the metric is also tried with the values in the rows, such as gold
    answers; values that it does not accept are skipped.
    """
    alike = [key for key, value in rows[0].items() if type(value) is type(predictions[0])]
    for answers in (predictions, *([row.get(key) for row in rows] for key in alike)):
        metric = make()
        try:
            with warnings.catch_warnings(action="ignore"):  # about values that are no answers
                metric.update(answers, rows)
                apart = difference(metric.from_totals(metric.items().totals()), metric.compute())
        except Exception:  # in a task's own code: no answer, or too few answers to score
            continue
        if apart:
            raise UserError(f"task.metric: the items of {type(metric).__name__} give {apart}, as its compute() has it")
