"""Large products in training, on a CPU by oneDNN, which on AMD's processors is twice as fast as the MKL of torch.mm."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable


@cache
def _by_onednn() -> bool:
    """Whether torch has this operation of its own, and it computes the product."""
    x, weight = torch.linspace(-1, 1, 24).view(4, 6), torch.linspace(1, 2, 18).view(3, 6)
    try:
        found = torch.ops.mkldnn._linear_pointwise(x, weight, None, "none", [], "")
    except (AttributeError, RuntimeError, NotImplementedError):
        return False
    return torch.allclose(found, x @ weight.t(), atol=1e-5)


def product(a: Tensor, b: Tensor) -> Tensor:
    """(N, D), (D, K) -> (N, K), without gradients."""
    if a.device.type == "cpu" and a.dtype == b.dtype == torch.float32 and a.numel() and b.numel() and _by_onednn():
        return torch.ops.mkldnn._linear_pointwise(a, b.t(), None, "none", [], "")
    return a @ b


def linear(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """`F.linear` with gradients: (..., D), (K, D), (K,) -> (..., K)."""
    if x.device.type == "cpu" and x.dtype == torch.float32 and not torch.is_autocast_enabled("cpu"):
        return _Linear.apply(x.flatten(0, -2), weight, bias).view(*x.shape[:-1], -1)  # type: ignore[union-attr]
    return F.linear(x, weight, bias)


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return product(x, weight.t()).add_(bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (x, weight), (gradient,), needed = ctx.saved_tensors, gradients, ctx.needs_input_grad
        return (
            product(gradient, weight) if needed[0] else None,
            product(gradient.t(), x) if needed[1] else None,
            gradient.sum(0) if needed[2] else None,
        )
