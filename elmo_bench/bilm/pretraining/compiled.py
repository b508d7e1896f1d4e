"""The compiled functions of a training step; those of `amx.cpp` where they can be built and compute rightly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

import torch
from torch import Tensor

from elmo_bench.bilm.lstm import ProjectedLSTM, State
from elmo_bench.bilm.pretraining import recurrence
from elmo_bench.bilm.pretraining.amx import SOURCE, Amx
from elmo_bench.bilm.pretraining.pointwise import EAGER, Pointwise
from elmo_bench.bilm.pretraining.softmax import Sample, sampled_losses
from elmo_bench.system import compiler

NEAR = 0.02  # largest difference from torch that the check allows, as a share of a result's norm
ROWS, STEPS, CELLS, WIDTH = 32, 2, 64, 32


def compiled(dtype: torch.dtype, device: torch.device) -> Pointwise:
    """The functions for products in this type on this device."""
    return Pointwise.compiled(amx() if dtype == torch.bfloat16 and device.type == "cpu" else None)


@cache
def amx() -> Amx | None:
    """The functions of `amx.cpp`; None without a compiler or the instructions, or if they compute other results."""
    with torch.inference_mode(False), torch.enable_grad(), torch.random.fork_rng([]):
        return compiler.checked(lambda: Amx(compiler.built(SOURCE)), differences, NEAR)


def differences(amx: Amx) -> Iterator[float]:
    """The differences of all results and gradients from torch's, on small random input."""
    for results in (_layer, _losses):
        yield from map(_apart, results(Pointwise(amx=amx)), results(EAGER))


def _layer(pointwise: Pointwise) -> Sequence[Tensor]:
    """Outputs, states and gradients of both directions of a layer whose clips bite."""
    torch.manual_seed(0)
    layers = [ProjectedLSTM(WIDTH, CELLS, WIDTH, 0.7, 0.2) for _ in range(2)]
    x, direction = torch.randn(2, STEPS * ROWS, WIDTH), torch.randn(2, STEPS * ROWS, WIDTH)
    states = [State(torch.randn(ROWS, WIDTH) / 10, torch.randn(ROWS, CELLS) / 2) for _ in range(2)]
    given = [x.bfloat16().requires_grad_(), *(p for layer in layers for p in layer.parameters())]
    output, after = recurrence.run(layers, given[0], states, pointwise)
    return [output, *after[0], *after[1], *torch.autograd.grad(output, given, direction.bfloat16())]


def _losses(pointwise: Pointwise) -> Sequence[Tensor]:
    """Loss and gradients of the sampled softmax; some negatives are targets."""
    torch.manual_seed(0)
    n, number = 2 * ROWS, 3 * ROWS
    h, rows, biases = torch.randn(2, n, WIDTH).bfloat16(), torch.randn(2 * number, WIDTH), torch.randn(2 * number)
    given = [each.requires_grad_() for each in (h, rows, biases)]
    samples = []
    for _ in range(2):
        targets, negatives = torch.randint(0, 2 * number, (n,)), torch.randperm(2 * number)[:number]
        row, column = (targets[:, None] == negatives).nonzero().unbind(1)
        samples.append(Sample(targets, negatives, torch.randn(n), torch.randn(number), (row, column)))
    loss = sampled_losses(*given, samples, pointwise)  # type: ignore[arg-type]
    return [loss, *torch.autograd.grad(loss, given)]


def _apart(found: Tensor, expected: Tensor) -> float:
    return float((found.detach().float() - expected.detach().float()).norm() / expected.detach().float().norm())
