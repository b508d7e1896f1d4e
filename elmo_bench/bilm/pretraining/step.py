"""One update: its loss, and the optimisers of the dense parameters and of the softmax, whose gradients are sparse."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from elmo_bench.bilm.kernels.lstm import States
from elmo_bench.bilm.lm import BidirectionalLM, sampled_nll
from elmo_bench.bilm.pretraining.batches import UpdateInput
from elmo_bench.bilm.pretraining.recipe import Recipe


class Dropout:
    """Dropout whose masks follow from a seed alone, so that a resumed run draws the same ones."""

    def __init__(self, p: float, seed: int, device: torch.device):
        self.p = p
        self.generator = torch.Generator(device).manual_seed(seed)

    def __call__(self, x: Tensor) -> Tensor:
        if not self.p:
            return x
        mask = torch.empty_like(x).bernoulli_(1 - self.p, generator=self.generator)
        return x * mask / (1 - self.p)


def touched(lm: BidirectionalLM, batch: UpdateInput) -> list[Tensor]:
    """The softmax's rows (R, P) and biases (R, 1) that the update reads, as leaf tensors that collect gradients."""
    tables = (lm.softmax.weight, lm.softmax_bias.weight)
    return [table.detach()[batch.ids].requires_grad_() for table in tables]


def loss(
    lm: BidirectionalLM,
    batch: UpdateInput,
    rows: list[Tensor],
    states: States,
    drop: Callable[[Tensor], Tensor] = lambda x: x,
) -> Tensor:
    """Mean of the two directions' sampled losses in nats per token.

    Args:
        rows: from `touched`; the softmax's gradients are collected there.
        states: of both directions' layers; updated in place.
        drop: for `BidirectionalLM.outputs`.
    """
    weight, bias = rows[0], rows[1].squeeze(-1)
    losses = [
        sampled_nll(h, weight, bias, sample.targets, sample.log_targets, sample.negatives, sample.log_negatives)
        for h, sample in zip(lm.outputs(batch.words, states, lm.dtype, drop), batch.samples, strict=True)
    ]
    return torch.stack(losses).mean()


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


def change(optimiser: torch.optim.Optimizer, rate: float) -> None:
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
