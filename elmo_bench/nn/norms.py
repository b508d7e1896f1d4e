"""Norms of many tensors together: of gradients, which they bound, and of weights, as a penalty."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable


def gradient_norm(parameters: Iterable[nn.Parameter]) -> Tensor:
    """The 2-norm of all gradients together, a scalar; not finite if one of them is not."""
    return nn.utils.get_total_norm([p.grad for p in parameters if p.grad is not None])


def clip(parameters: Iterable[nn.Parameter], norm: Tensor, bound: float) -> None:
    """Scales gradients of a known norm down to `bound`, as `clip_grad_norm_` does.

    On a CPU only if the norm is larger; elsewhere looking at it would wait for the device.
    """
    if norm.device.type != "cpu" or bound / (norm + 1e-6) < 1:
        nn.utils.clip_grads_with_norm_(parameters, bound, norm)


def squared_norm(*weights: Tensor) -> Tensor:
    """The sum of the squares of all numbers, a scalar, whose gradient takes a single pass."""
    return _SquaredNorm.apply(*weights)  # type: ignore[return-value]


class _SquaredNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *weights: Tensor) -> Tensor:
        ctx.save_for_backward(*weights)
        return torch.stack([torch.linalg.vector_norm(weight) for weight in weights]).square().sum()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, ...]:
        return tuple(2 * gradients[0] * weight for weight in ctx.saved_tensors)
