"""The optimisers of the dense parameters and of the softmax, whose gradients are sparse."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from elmo_bench.bilm.pretraining.recipe import Recipe


def optimisers(
    recipe: Recipe, dense: Sequence[nn.Parameter], tables: Sequence[Tensor]
) -> tuple[torch.optim.Optimizer, torch.optim.Optimizer]:
    """The optimisers of the dense parameters and of the softmax's tables; the learning rate is set at every update.

    Adam leaves the moments of rows without a gradient as they are; its bias correction counts all updates.
    """
    if recipe.optimiser == "adagrad":
        dense_one, sparse_one = (
            torch.optim.Adagrad(parameters, initial_accumulator_value=recipe.accumulator)
            for parameters in (dense, tables)
        )
        return dense_one, sparse_one
    return torch.optim.Adam(dense, betas=recipe.betas, fused=True), torch.optim.SparseAdam(tables, betas=recipe.betas)


def step(optimiser: torch.optim.Optimizer, rate: float) -> None:
    """One update with this learning rate."""
    for group in optimiser.param_groups:
        group["lr"] = rate
    optimiser.step()


def give_rows(table: Tensor, ids: Tensor, gradient: Tensor) -> None:
    """Sets the gradient of a table that is zero but in some rows.

    Args:
        ids: (R,) distinct row numbers, sorted.
        gradient: (R, P), of these rows.
    """
    # torch 2.11 warns where its argument `check_invariants=False` says the same
    with torch.sparse.check_sparse_tensor_invariants(enable=False):
        table.grad = torch.sparse_coo_tensor(ids[None], gradient, table.shape, is_coalesced=True)
