"""Several classifiers as one: the mean of their probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from elmo_bench.nn.feedforward import averaged, of_rows
from elmo_bench.task import Batch, Row
from tasks.snli.head import SnliHead, SnliScores

METHOD = "averaged probabilities"


def opinions(head: SnliHead, scores: SnliScores, batch: Batch) -> list[Tensor]:
    """Of one member, for each pair of a batch the probabilities (K,) of its labels."""
    return of_rows(scores.logits)


def agreed(members: Sequence[Sequence[Tensor]], head: SnliHead, rows: Sequence[Row]) -> list[Any]:
    """The answers of all members together.

    Args:
        members: the opinions of each, on all rows.
        head: of any member.
        rows: of the split.
    """
    return head.decode(SnliScores(None, averaged(members)), Batch(list(rows), {}, {}))
