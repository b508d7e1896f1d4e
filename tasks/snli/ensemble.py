"""Several classifiers as one: the mean of their probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from elmo_bench.task import Batch, Row
from tasks.snli.head import SnliHead, SnliScores

METHOD = "averaged probabilities"


def opinions(head: SnliHead, scores: SnliScores, batch: Batch) -> list[Tensor]:
    """Of one member, for each pair of a batch the probabilities (K,) of its labels."""
    return list(scores.logits.float().softmax(-1).cpu())


def agreed(members: Sequence[Sequence[Tensor]], head: SnliHead, rows: Sequence[Row]) -> list[Any]:
    """The answers of all members together.

    Args:
        members: the opinions of each, on all rows.
        head: of any member.
        rows: of the split.
    """
    mean = torch.stack([torch.stack(list(member)) for member in members]).mean(0)  # (rows, K)
    return head.decode(SnliScores(None, mean), Batch(list(rows), {}, {}))
