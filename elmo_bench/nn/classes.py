"""Scores of classes as numbers that a person reads."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def probabilities(logits: Tensor, names: Sequence[str], digits: int = 4) -> list[dict[str, float]]:
    """Logits (B, K) -> for each row the probability of each of the K classes by its name, rounded."""
    rows = logits.float().softmax(dim=-1).tolist()
    return [{name: round(p, digits) for name, p in zip(names, row, strict=True)} for row in rows]


def of_rows(logits: Tensor) -> list[Tensor]:
    """Logits (B, K) -> for each row the probabilities (K,) of the classes, on the CPU."""
    return list(logits.float().softmax(-1).cpu())


def averaged(members: Sequence[Sequence[Tensor]]) -> Tensor:
    """The probabilities (K,) that each model gives each row -> their mean over the models, (rows, K)."""
    return torch.stack([torch.stack(list(member)) for member in members]).mean(0)
