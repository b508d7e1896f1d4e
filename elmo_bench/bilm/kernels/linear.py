"""Products with fixed weights by torch, the same bits for a row in every batch."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

LEAST = 16  # rows of a product: MKL computes fewer by other routines, which add up in another order


class FixedLinear:
    """x -> x W^T + b for a frozen weight; on a CPU, a row's result has the same bits whatever the number of rows.

    Args:
        weight: (out, in).
        bias: (out,) or None.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None = None):
        self.weight, self.bias = weight.detach().contiguous(), None if bias is None else bias.detach()

    def __call__(self, x: Tensor) -> Tensor:
        """(N, in) -> (N, out); N is at least 1."""
        return F.linear(_filled(x), self.weight, self.bias)[: len(x)]

    def add_to(self, total: Tensor, x: Tensor) -> Tensor:
        """total + x W^T; the bias is not added."""
        return torch.addmm(_filled(total), _filled(x), self.weight.t())[: len(x)]


def _filled(x: Tensor) -> Tensor:
    """(N, D) -> (N or LEAST, D), with rows of zeros below."""
    return x if len(x) >= LEAST else F.pad(x, (0, 0, 0, LEAST - len(x)))
