"""One vector for a sequence, without its padding. A sequence without words gives zeros."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from elmo_bench.nn.attention import masked_softmax
from elmo_bench.nn.numerics import ScoreLinear, wide


def masked_max(x: Tensor, mask: Tensor) -> Tensor:
    """(B, T, D), mask (B, T) bool -> (B, D)."""
    lowest = torch.finfo(x.dtype).min
    return x.masked_fill(~mask.unsqueeze(2), lowest).amax(1) * mask.any(1, keepdim=True)


def masked_min(x: Tensor, mask: Tensor) -> Tensor:
    """(B, T, D), mask (B, T) bool -> (B, D)."""
    return -masked_max(-x, mask)


def masked_mean(x: Tensor, mask: Tensor) -> Tensor:
    """(B, T, D), mask (B, T) bool -> (B, D)."""
    return wide(x * mask.unsqueeze(2)).sum(1) / mask.sum(1, keepdim=True).clamp(min=1)


class SelfAttentivePooling(nn.Module):
    """The mean of a sequence weighted by softmax(w.x_t) over its words (McCann et al. 2017, equation 12).

    There is no bias, because adding a constant does not change a softmax.

    Args:
        size: D.
    """

    def __init__(self, size: int):
        super().__init__()
        self.score = ScoreLinear(size, 1, bias=False)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """(B, T, D), mask (B, T) bool -> (B, D)."""
        weights = masked_softmax(self.score(x).squeeze(2), mask)  # (B, T)
        return (weights.unsqueeze(1) @ x).squeeze(1)
