"""A trained model applied to a batch of new rows: its predictions, and a readable form of them."""

from __future__ import annotations

from typing import Any, NamedTuple

from elmo_bench.embedding.model import Model
from elmo_bench.task import Batch, Describes, Prediction


class Answer(NamedTuple):
    """The model's answer for one row."""

    prediction: Prediction  # in the form of the metric and the official scorer
    described: Any  # in readable form: an object, unless the head describes nothing


def answers(model: Model, batch: Batch) -> list[Answer]:
    """An answer for each row of a batch, which is on the model's device."""
    scores = model(batch)
    predictions = model.head.decode(scores, batch)  # type: ignore[operator]
    head = model.head
    described = head.describe(predictions, scores, batch) if isinstance(head, Describes) else predictions
    return list(map(Answer, predictions, described))
