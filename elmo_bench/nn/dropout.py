"""Dropout: of numbers, and of whole features of a sequence."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from elmo_bench.nn.compiled import usable
from elmo_bench.nn.kernels import Kernels


def dropout(x: Tensor, p: float) -> Tensor:
    """As `F.dropout` in training, with the same random numbers, which on a CPU are drawn ten times as fast."""
    kernels = usable(x) if 0 < p < 1 else None
    if kernels is None:
        return F.dropout(x, p)
    return x * kernels.bernoulli(x, 1 - p, 1 / (1 - p))


def relu_dropout(x: Tensor, p: float) -> Tensor:
    """`dropout(x.relu(), p)`, which may overwrite x; p of 0: no dropout. On a CPU one pass over x, and one back."""
    kernels = _in_place(x, p)
    if kernels is None:
        return dropout(x.relu_(), p)
    return _ReluDropout.apply(x, p, kernels)  # type: ignore[return-value]


def relu_dropout_score(x: Tensor, p: float, weight: Tensor, bias: Tensor) -> Tensor:
    """`F.linear(relu_dropout(x, p), weight, bias)` of (P, H), (1, H) and (1,), which may overwrite x: (P, 1)."""
    kernels = _in_place(x, p)
    if kernels is None:
        return F.linear(relu_dropout(x, p), weight, bias)
    return _ReluDropoutScore.apply(x, p, weight.contiguous(), bias, kernels)  # type: ignore[return-value]


def _in_place(x: Tensor, p: float) -> Kernels | None:
    """The compiled functions if they can overwrite x; else None."""
    return usable(x) if 0 < p < 1 and x.is_contiguous() else None


class _ReluDropout(torch.autograd.Function):
    """x, any shape, contiguous; overwritten."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, p: float, kernels: Kernels) -> Tensor:
        ctx.scale, ctx.kernels = 1 / (1 - p), kernels
        kernels.relu_dropout(x, 1 - p, ctx.scale)
        ctx.mark_dirty(x)
        ctx.save_for_backward(x)
        return x

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (y,) = ctx.saved_tensors
        return ctx.kernels.relu_dropout_back(y, gradients[0], ctx.scale), None, None


class _ReluDropoutScore(torch.autograd.Function):
    """x (P, H), contiguous; overwritten. The gradient of its dropped numbers is never held by itself."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, p: float, weight: Tensor, bias: Tensor, kernels: Kernels) -> Tensor:
        ctx.scale, ctx.kernels = 1 / (1 - p), kernels
        kernels.relu_dropout(x, 1 - p, ctx.scale)
        ctx.save_for_backward(x, weight)
        return F.linear(x, weight, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        y, weight = ctx.saved_tensors
        d_x = ctx.kernels.relu_dropout_score_back(y, gradients[0], weight, ctx.scale)
        return d_x, None, gradients[0].t() @ y, gradients[0].sum(0), None


class Dropout(nn.Dropout):
    """`nn.Dropout`, by `dropout`."""

    def forward(self, input: Tensor) -> Tensor:
        return dropout(input, self.p) if self.training and self.p else input


class VariationalDropout(nn.Dropout):
    """Drops whole features of a sequence: one mask for all its time steps (Gal and Ghahramani 2016)."""

    def forward(self, input: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, D)."""
        if not self.training or self.p == 0:
            return input
        kept = dropout(input.new_ones(input.shape[0], 1, input.shape[2]), self.p)  # (B, 1, D)
        return input * kept
