"""The pointwise and row-wise operations between the products of a training step, optionally compiled.

Plain functions of tensors: eager, they run anywhere; compiled (by a C++ compiler on a CPU, Triton on a GPU), each
becomes one pass over its arguments. The compiled cells write tanh as a sigmoid: equal up to rounding, and twice as fast
there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from elmo_bench.bilm import lstm


def pool(best: Tensor, at: Tensor, values: Tensor, step: Tensor) -> None:
    """Updates each running maximum with the next window, in place; `at` is the step of the maximum."""
    better = values > best
    at.copy_(torch.where(better, step, at))
    best.copy_(torch.where(better, values, best))


def unpool(d_best: Tensor, at: Tensor, step: Tensor, d_values: Tensor) -> None:
    """Gradients of one window's values: those of the maxima that it gave, zero elsewhere."""
    d_values.copy_(torch.where(at == step, d_best, torch.zeros_like(d_best)))


def exponentials(logits: Tensor, bias: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """exp(logits + bias - m) in the logits' dtype, the maximum m of each row, and the row sums in float32.

    Args:
        logits: (N, K).
        bias: (K,) float32.
    """
    x = logits.float() + bias  # (N, K)
    most = x.amax(dim=-1)  # (N,)
    x = torch.exp(x - most[:, None])
    return x.to(logits.dtype), most, x.sum(dim=-1)


def cell_forward(gates: Tensor, bias: Tensor, before: Tensor, c: Tensor, hidden: Tensor, clip: float) -> None:
    """`lstm.cell_forward` for pre-activations without their bias; fills `c` (B, C) and `hidden` (B, C)."""
    new, out = lstm.cell_forward(gates + bias.to(gates.dtype), before, clip)
    c.copy_(new)
    hidden.copy_(out)


def cell_backward(
    gates: Tensor, bias: Tensor, before: Tensor, c: Tensor, d_hidden: Tensor, d_c: Tensor, clip: float
) -> Tensor:
    """`lstm.cell_backward` likewise: overwrites `gates` with their gradients; returns those of `before`."""
    d_gates, d_before = lstm.cell_backward(gates + bias.to(gates.dtype), before, c, d_hidden, d_c, clip)
    gates.copy_(d_gates)
    return d_before


def fast_cell_forward(gates: Tensor, bias: Tensor, before: Tensor, c: Tensor, hidden: Tensor, clip: float) -> None:
    """`cell_forward` with tanh x = 2 sigmoid(2x) - 1."""
    i, j, f, o = (gates.float() + bias).chunk(4, dim=-1)  # each (B, C)
    new = torch.sigmoid(f + lstm.FORGET_BIAS) * before + torch.sigmoid(i) * _tanh(j)
    new = new.clamp(-clip, clip)
    c.copy_(new)
    hidden.copy_(torch.sigmoid(o) * _tanh(new))


def fast_cell_backward(
    gates: Tensor, bias: Tensor, before: Tensor, c: Tensor, d_hidden: Tensor, d_c: Tensor, clip: float
) -> Tensor:
    """`cell_backward` with tanh x = 2 sigmoid(2x) - 1."""
    i, j, f, o = (gates.float() + bias).chunk(4, dim=-1)
    i, j, f, o = torch.sigmoid(i), _tanh(j), torch.sigmoid(f + lstm.FORGET_BIAS), torch.sigmoid(o)
    squashed, d_hidden = _tanh(c), d_hidden.float()
    d_c = torch.where(c.abs() < clip, d_c + d_hidden * o * (1 - squashed * squashed), 0.0)
    quarters = gates.unflatten(-1, (4, -1))  # (.., B, 4, C): written one by one, which compiles to the fastest code
    quarters[..., 0, :] = d_c * j * i * (1 - i)
    quarters[..., 1, :] = d_c * i * (1 - j * j)
    quarters[..., 2, :] = d_c * before * f * (1 - f)
    quarters[..., 3, :] = d_hidden * squashed * o * (1 - o)
    return d_c * f


def _tanh(x: Tensor) -> Tensor:
    return 2 * torch.sigmoid(2 * x) - 1


@dataclass(frozen=True)
class Pointwise:
    """The functions that a training step uses."""

    pool: Callable[..., None] = pool
    unpool: Callable[..., None] = unpool
    exponentials: Callable[..., tuple[Tensor, Tensor, Tensor]] = exponentials
    cell_forward: Callable[..., None] = cell_forward
    cell_backward: Callable[..., Tensor] = cell_backward

    @classmethod
    def compiled(cls) -> Pointwise:
        """Each function compiled; only the number of words, which changes with every chunk, is dynamic."""
        return cls(
            torch.compile(pool, dynamic=True),
            torch.compile(unpool, dynamic=True),
            torch.compile(exponentials, dynamic=False),
            torch.compile(fast_cell_forward, dynamic=False),
            torch.compile(fast_cell_backward, dynamic=False),
        )


EAGER = Pointwise()
