"""Attention between sequences of different lengths: padding gets no weight."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from elmo_bench.nn.numerics import wide


def masked_softmax(scores: Tensor, mask: Tensor, dim: int = -1) -> Tensor:
    """Softmax over `dim` among the true entries of `mask` (broadcastable to `scores`); zeros elsewhere.

    Without a true entry all weights are zero, and gradients stay finite. Scores of 16 bits are widened for the softmax.
    """
    lowest = torch.finfo(scores.dtype).min  # not -inf: a row without a true entry would give NaN
    return wide(scores.masked_fill(~mask, lowest)).softmax(dim).to(scores.dtype) * mask


def soft_align(scores: Tensor, x: Tensor, y: Tensor, x_mask: Tensor, y_mask: Tensor) -> tuple[Tensor, Tensor]:
    """Each word of one sequence as the mean of the other's, weighted by a softmax of the scores between them.

    Args:
        scores: (B, S, T) similarity of word s of x with word t of y; `x @ y.mT` in ESIM and in BCN.
        x, y: (B, S, D) and (B, T, D).
        x_mask, y_mask: (B, S) and (B, T) bool.

    Returns:
        (B, S, D) made of y, and (B, T, D) made of x. Rows at padding are meaningless.
    """
    of_y = masked_softmax(scores, y_mask.unsqueeze(1), dim=2) @ y  # (B, S, D)
    of_x = masked_softmax(scores, x_mask.unsqueeze(2), dim=1).mT @ x  # (B, T, D)
    return of_y, of_x


class TriLinear(nn.Module):
    """score(x, y) = u.x + v.y + w.(x * y) [+ b] for every pair of words (Seo et al. 2017).

    Args:
        x_size: D.
        y_size: width of y if it differs from D, which needs product=False; None: D.
        product: include w.(x * y).
        bias: include b.
    """

    def __init__(self, x_size: int, y_size: int | None = None, product: bool = True, bias: bool = False):
        super().__init__()
        y_size = x_size if y_size is None else y_size
        if product and x_size != y_size:
            raise ValueError(f"x * y needs equal sizes, not {x_size} and {y_size}")
        self.u, self.v = nn.Parameter(torch.empty(x_size)), nn.Parameter(torch.empty(y_size))
        self.w = nn.Parameter(torch.empty(x_size)) if product else None
        self.b = nn.Parameter(torch.zeros(())) if bias else None
        for weight in (self.u, self.v, self.w):
            if weight is not None:  # Glorot, as for a linear map from [x; y; x * y] to 1
                bound = math.sqrt(6 / (x_size + y_size + x_size * product + 1))
                nn.init.uniform_(weight, -bound, bound)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """(B, S, D), (B, T, D) -> (B, S, T); the products x * y of all pairs are never stored."""
        scores = (x @ self.u).unsqueeze(2) + (y @ self.v).unsqueeze(1)  # (B, S, T)
        if self.w is not None:
            scores = scores + (x * self.w) @ y.mT
        return scores if self.b is None else scores + self.b
