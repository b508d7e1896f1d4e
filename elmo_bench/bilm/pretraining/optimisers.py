"""The optimisers: torch's own for the dense parameters; for the softmax, ones that only access touched rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor, nn

from elmo_bench.bilm.pretraining.recipe import Recipe


class RowOptimiser(Protocol):
    """Updates some rows of several tables with the same row numbers."""

    def step(self, ids: Tensor, rows: Sequence[Tensor], gradients: Sequence[Tensor], lr: float) -> None:
        """Updates the tables.

        Args:
            ids: (R,) distinct row numbers.
            rows, gradients: for each table its (R, P) values at `ids`, and their gradients.
            lr: learning rate of this update.
        """

    def state_dict(self) -> dict: ...

    def load_state_dict(self, state: dict) -> None: ...


class RowAdam:
    """Adam on the rows that an update touches, equal to `torch.optim.SparseAdam` but without sparse tensors.

    The moments of other rows are unchanged; the bias correction counts all updates.
    """

    def __init__(self, tables: Sequence[Tensor], betas: tuple[float, float], eps: float = 1e-8):
        self.tables, self.betas, self.eps = list(tables), betas, eps
        self.first = [torch.zeros_like(table, requires_grad=False) for table in tables]
        self.second = [torch.zeros_like(table, requires_grad=False) for table in tables]
        self.updates = 0

    @torch.no_grad()
    def step(self, ids: Tensor, rows: Sequence[Tensor], gradients: Sequence[Tensor], lr: float) -> None:
        self.updates += 1
        a, b = self.betas
        size = lr * math.sqrt(1 - b**self.updates) / (1 - a**self.updates)
        moments = zip(self.tables, self.first, self.second, rows, gradients, strict=True)
        for table, firsts, seconds, row, d in moments:
            first, second = firsts[ids].lerp_(d, 1 - a), seconds[ids].mul_(b).addcmul_(d, d, value=1 - b)
            table.index_copy_(0, ids, torch.addcdiv(row, first, second.sqrt().add_(self.eps), value=-size))
            firsts.index_copy_(0, ids, first)
            seconds.index_copy_(0, ids, second)

    def state_dict(self) -> dict:
        return {"first": self.first, "second": self.second, "updates": self.updates}

    def load_state_dict(self, state: dict) -> None:
        for ours, theirs in zip(self.first + self.second, state["first"] + state["second"], strict=True):
            ours.copy_(theirs)
        self.updates = state["updates"]


class RowAdagrad:
    """Adagrad on the rows that an update touches; other rows have zero gradients and would not change."""

    def __init__(self, tables: Sequence[Tensor], accumulator: float):
        self.tables = list(tables)
        self.sums = [torch.full_like(table, accumulator, requires_grad=False) for table in tables]

    @torch.no_grad()
    def step(self, ids: Tensor, rows: Sequence[Tensor], gradients: Sequence[Tensor], lr: float) -> None:
        for table, sums, row, d in zip(self.tables, self.sums, rows, gradients, strict=True):
            total = sums[ids].addcmul_(d, d)
            table.index_copy_(0, ids, torch.addcdiv(row, d, total.sqrt(), value=-lr))
            sums.index_copy_(0, ids, total)

    def state_dict(self) -> dict:
        return {"sums": self.sums}

    def load_state_dict(self, state: dict) -> None:
        for ours, theirs in zip(self.sums, state["sums"], strict=True):
            ours.copy_(theirs)


def optimisers(
    recipe: Recipe, dense: Sequence[nn.Parameter], tables: Sequence[Tensor]
) -> tuple[torch.optim.Optimizer, RowOptimiser]:
    """The optimisers of the dense parameters and of the softmax's tables."""
    if recipe.optimiser == "adagrad":
        adagrad = torch.optim.Adagrad(dense, recipe.lr, initial_accumulator_value=recipe.accumulator)
        return adagrad, RowAdagrad(tables, recipe.accumulator)
    return torch.optim.Adam(dense, recipe.lr, betas=recipe.betas, fused=True), RowAdam(tables, recipe.betas)
