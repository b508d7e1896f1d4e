"""The loss of one update."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from elmo_bench.bilm.kernels.lstm import States
from elmo_bench.bilm.lm import BidirectionalLM, sampled_nll
from elmo_bench.bilm.lstm import cell
from elmo_bench.bilm.pretraining.batches import UpdateInput


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
    cell: Callable[..., tuple[Tensor, Tensor]] = cell,
) -> Tensor:
    """Mean of the two directions' sampled losses in nats per token.

    Args:
        rows: from `touched`; the softmax's gradients are collected there.
        states: of both directions' layers; updated in place.
        drop, cell: for `BidirectionalLM.outputs`.
    """
    weight, bias = rows[0], rows[1].squeeze(-1)
    losses = []
    for h, sample in zip(lm.outputs(batch.words, states, lm.dtype, drop, cell), batch.samples, strict=True):
        places = torch.cat([sample.targets, sample.negatives])  # (N + K,)
        losses.append(
            sampled_nll(
                h, weight[places], bias[places], sample.targets, sample.log_targets, sample.negatives,
                sample.log_negatives,
            )
        )  # fmt: skip
    return torch.stack(losses).mean()
