"""Optimisers of the softmax: an update touches a few thousand of its rows, and only these are read and written."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn


class RowAdam:
    """Adam on the rows that an update touches, as `torch.optim.SparseAdam` defines it, without sparse tensors.

    The moments of other rows stay as they are; the bias correction counts all updates.

    Args:
        tables: (V, P) parameters that share their rows' numbers.
    """

    def __init__(self, tables: Sequence[nn.Parameter], betas: tuple[float, float], eps: float = 1e-8):
        self.tables, self.betas, self.eps = list(tables), betas, eps
        self.first = [torch.zeros_like(table, requires_grad=False) for table in tables]
        self.second = [torch.zeros_like(table, requires_grad=False) for table in tables]
        self.updates = 0

    @torch.no_grad()
    def step(self, ids: Tensor, rows: Sequence[Tensor], gradients: Sequence[Tensor], lr: float) -> None:
        """Updates the tables.

        Args:
            ids: (R,) distinct row numbers.
            rows, gradients: for each table its (R, P) values at `ids`, and their gradients.
        """
        self.updates += 1
        a, b = self.betas
        size = lr * math.sqrt(1 - b**self.updates) / (1 - a**self.updates)
        for table, firsts, seconds, row, d in zip(self.tables, self.first, self.second, rows, gradients, strict=True):
            first, second = firsts[ids].lerp_(d, 1 - a), seconds[ids].mul_(b).addcmul_(d, d, value=1 - b)
            table.index_copy_(0, ids, torch.addcdiv(row, first, second.sqrt().add_(self.eps), value=-size))
            firsts.index_copy_(0, ids, first)
            seconds.index_copy_(0, ids, second)

    def state_dict(self) -> dict:
        return {"first": self.first, "second": self.second, "updates": self.updates}

    def load_state_dict(self, state: dict) -> None:
        """Raises RuntimeError where a shape differs."""
        for ours, theirs in zip(self.first + self.second, state["first"] + state["second"], strict=True):
            ours.copy_(theirs)
        self.updates = state["updates"]
