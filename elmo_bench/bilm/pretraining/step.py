"""The loss of one update, computed with the fast parts of this package."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from elmo_bench.bilm.lm import BidirectionalLM
from elmo_bench.bilm.lstm import State
from elmo_bench.bilm.pretraining.batches import Batch
from elmo_bench.bilm.pretraining.convolutions import encode
from elmo_bench.bilm.pretraining.pointwise import EAGER, Pointwise
from elmo_bench.bilm.pretraining.recurrence import run
from elmo_bench.bilm.pretraining.softmax import sampled_losses


class Dropout:
    """Dropout whose masks follow from a seed alone, so that a resumed run draws the same ones."""

    def __init__(self, p: float, seed: int, device: torch.device):
        self.p = p
        self.generator = torch.Generator(device).manual_seed(seed)

    def __call__(self, x: Tensor) -> Tensor:
        mask = torch.empty_like(x).bernoulli_(1 - self.p, generator=self.generator)
        return x * mask / (1 - self.p)


def outputs(
    lm: BidirectionalLM,
    batch: Batch,
    states: list[list[State]],
    pointwise: Pointwise = EAGER,
    dropout: Callable[[Tensor], Tensor] | None = None,
) -> Tensor:
    """Top-layer outputs (2, T * B, P) of both directions; `states` moves on in place.

    Dropout as in the release: on every layer's input, also where a residual connection adds it, and on the output.
    """
    drop = dropout or (lambda x: x)
    vectors = encode(lm.bilm.encoder, batch.windows, lm.dtype, pointwise)  # (U, P)
    h = F.embedding(torch.stack(batch.indices), vectors)  # (2, T * B, P)
    directions = [list(layers.children()) for layers in lm.bilm.directions]
    for number, layers in enumerate(zip(*directions, strict=True)):
        h = drop(h)
        before = [state[number] for state in states]
        out, after = run(layers, h, before, pointwise)  # type: ignore[arg-type]
        for state, new in zip(states, after, strict=True):
            state[number] = new
        h = out + h if number and lm.bilm.options.use_skip_connections else out
    return drop(h)


def touched(lm: BidirectionalLM, batch: Batch) -> list[Tensor]:
    """The softmax's rows (R, P) and biases (R, 1) that the update reads, as leaf tensors that collect gradients."""
    tables = (lm.softmax.weight, lm.softmax_bias.weight)
    return [table.detach()[batch.ids].requires_grad_() for table in tables]


def loss(
    lm: BidirectionalLM,
    batch: Batch,
    rows: list[Tensor],
    states: list[list[State]],
    pointwise: Pointwise = EAGER,
    dropout: Callable[[Tensor], Tensor] | None = None,
) -> Tensor:
    """Mean of the two directions' sampled losses in nats per token.

    Args:
        rows: from `touched`; the softmax's gradients are collected there.
        states: of both directions' layers; updated in place.
    """
    weight, bias = rows
    h = outputs(lm, batch, states, pointwise, dropout)
    return sampled_losses(h, weight, bias.squeeze(-1), batch.samples, pointwise)
