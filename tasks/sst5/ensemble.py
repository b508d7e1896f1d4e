"""Several classifiers as one: the mean of their probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from elmo_bench.nn.feedforward import averaged, of_rows
from elmo_bench.task import Batch, Row
from tasks.sst5.head import Sst5Head, Sst5Scores

METHOD = "averaged probabilities"


def opinions(head: Sst5Head, scores: Sst5Scores, batch: Batch) -> list[Tensor]:
    """Of one member, for each text of a batch the probabilities (K,) of its labels."""
    return of_rows(scores.logits)


def agreed(members: Sequence[Sequence[Tensor]], head: Sst5Head, rows: Sequence[Row]) -> list[Any]:
    """The answers of all members together.

    Args:
        members: the opinions of each, on all rows.
        head: of any member.
        rows: of the split.
    """
    return head.decode(Sst5Scores(None, averaged(members)), Batch(list(rows), {}, {}))
