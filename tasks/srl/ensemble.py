"""Several labellers as one: the mean of their probabilities of each word's tag, and its best valid sequence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from elmo_bench.task import Batch, Row
from tasks.srl.head import SrlHead, SrlScores

METHOD = "averaged probabilities of tags, Viterbi"


def opinions(head: SrlHead, scores: SrlScores, batch: Batch) -> list[Tensor]:
    """Of one member, for each sentence the probabilities (P, T, K) of the tags, for each of its P predicates.

    A sentence without a predicate has been scored once, as in `SrlHead.decode`.
    """
    shares, before, found = scores.emissions.float().softmax(-1).cpu(), 0, []
    for row in batch.rows:
        after = before + max(len(row["predicates"]), 1)
        found.append(shares[before:after, : len(row["tokens"])].clone())
        before = after
    return found


def agreed(members: Sequence[Sequence[Tensor]], head: SrlHead, rows: Sequence[Row]) -> list[Any]:
    """The answers of all members together.

    Args:
        members: the opinions of each, on all rows.
        head: of any member.
        rows: of the split.
    """
    head, answers = head.cpu(), []
    for row, *opinions in zip(rows, *members, strict=True):
        mean = torch.stack(opinions).double().mean(0).clamp(min=1e-300).log()  # (P, T, K), finite
        scores = SrlScores(None, mean, torch.ones(mean.shape[:2], dtype=torch.bool))
        answers += head.decode(scores, Batch([row], {}, {}))
    return answers
