"""Several readers as one: the mean of their probabilities of the first and of the last word."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from elmo_bench.task import Batch, Row
from tasks.squad.head import SquadHead, SquadScores

METHOD = "averaged probabilities of first and last word"


def opinions(head: SquadHead, scores: SquadScores, batch: Batch) -> list[Tensor]:
    """Of one member, for each question the probabilities (2, T) of its context's words as first and as last."""
    both = torch.stack([scores.start, scores.end], dim=1).exp().cpu()  # (B, 2, T)
    return [x[:, : sum(map(len, row["context"]))].clone() for x, row in zip(both, batch.rows, strict=True)]


def agreed(members: Sequence[Sequence[Tensor]], head: SquadHead, rows: Sequence[Row]) -> list[Any]:
    """The answers of all members together.

    Args:
        members: the opinions of each, on all rows.
        head: of any member.
        rows: of the split.
    """
    answers = []
    for row, *opinions in zip(rows, *members, strict=True):
        start, end = torch.stack(opinions).mean(0).log()[:, None]  # (1, T) each
        answers += head.decode(SquadScores(None, start, end), Batch([row], {}, {}))
    return answers
