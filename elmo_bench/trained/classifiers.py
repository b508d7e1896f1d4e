"""Several classifiers as one: the mean of their probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from elmo_bench.task import Batch, Row

METHOD = "averaged probabilities"


class Averaged(NamedTuple):
    """The scores that a head decodes: (rows, K), the means in the place of its own logits."""

    logits: Tensor


def opinions(head: Any, scores: Any, batch: Batch) -> list[Tensor]:
    """Of one member, for each row of a batch the probabilities (K,) of the classes."""
    return list(scores.logits.float().softmax(-1).cpu())


def agreed(members: Sequence[Sequence[Tensor]], head: Any, rows: Sequence[Row]) -> list[Any]:
    """The answers of all members together.

    Args:
        members: the opinions of each, on all rows.
        head: of any member.
        rows: of the split.
    """
    mean = torch.stack([torch.stack(list(member)) for member in members]).mean(0)
    return head.decode(Averaged(mean), Batch(list(rows), {}, {}))
