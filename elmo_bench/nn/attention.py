"""Attention between sequences of different lengths and within one: padding gets no weight."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from elmo_bench.nn.numerics import ScoreLinear, wide


def masked_softmax(scores: Tensor, mask: Tensor, dim: int = -1) -> Tensor:
    """Softmax over `dim` among the true entries of `mask` (broadcastable to `scores`); zeros elsewhere.

    Without a true entry all weights are zero, and gradients stay finite. 16-bit scores are widened for the softmax.
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
        (B, S, D) from y, and (B, T, D) from x. Rows at padding are meaningless.
    """
    of_y = masked_softmax(scores, y_mask.unsqueeze(1), dim=2) @ y  # (B, S, D)
    of_x = masked_softmax(scores, x_mask.unsqueeze(2), dim=1).mT @ x  # (B, T, D)
    return of_y, of_x


class TriLinear(nn.Module):
    """score(x, y) = u.x + v.y + w.(x * y) + b for every pair of words (Seo et al. 2017).

    Args:
        size: D.
    """

    def __init__(self, size: int):
        super().__init__()
        self.u, self.v, self.w = (nn.Parameter(torch.empty(size)) for _ in range(3))
        self.b = nn.Parameter(torch.zeros(()))
        bound = math.sqrt(6 / (3 * size + 1))  # Glorot, as for a linear map from [x; y; x * y] to 1
        for weight in (self.u, self.v, self.w):
            nn.init.uniform_(weight, -bound, bound)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """(B, S, D), (B, T, D) -> (B, S, T); the products x * y of all pairs are never stored."""
        own = (x @ self.u).unsqueeze(2) + (y @ self.v).unsqueeze(1)  # (B, S, T)
        return own + (x * self.w) @ y.mT + self.b


class BiAttention(nn.Module):
    """Attention from context to question and from question to context: [x; q; x * q; x * c] for each context word x.

    With tri-linear scores S between context x and question y, context word i attends to
    q_i = sum_j softmax_j(S_ij) y_j, and the question attends to c = sum_i softmax_i(max_j S_ij) x_i, one vector for the
    whole context (Seo et al. 2017).

    Args:
        size: D, width of the words of both.
        products: initial weight of every x * y in the scores; None: random, like the other weights.
    """

    def __init__(self, size: int, products: float | None = None):
        super().__init__()
        self.similarity = TriLinear(size)
        if products is not None:
            nn.init.constant_(self.similarity.w, products)
        self.output_size = 4 * size

    def forward(self, x: Tensor, y: Tensor, x_mask: Tensor, y_mask: Tensor) -> Tensor:
        """Context (B, T, D), question (B, S, D) and their masks -> (B, T, 4D)."""
        scores = self.similarity(x, y)  # (B, T, S)
        of_question = masked_softmax(scores, y_mask.unsqueeze(1)) @ y  # (B, T, D)
        nearest = scores.masked_fill(~y_mask.unsqueeze(1), torch.finfo(scores.dtype).min).amax(2)  # (B, T)
        of_context = masked_softmax(nearest, x_mask).unsqueeze(1) @ x  # (B, 1, D)
        return torch.cat([x, of_question, x * of_question, x * of_context], dim=-1)


class SelfAttention(nn.Module):
    """Each word x with the mean a of the other words that it attends to: [x; a; x * a] (Clark and Gardner 2018).

    Tri-linear scores; no word attends to itself. A learned score for attending to nothing is added to the normaliser
    only, so the weights of a word sum to less than one.

    Args:
        size: D.
    """

    def __init__(self, size: int):
        super().__init__()
        self.similarity = TriLinear(size)
        self.nothing = nn.Parameter(torch.tensor(-1.0))  # the reference's initial value
        self.output_size = 3 * size

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """(B, T, D), mask (B, T) -> (B, T, 3D)."""
        scores = self.similarity(x, x)  # (B, T, T)
        itself = torch.eye(x.shape[1], dtype=torch.bool, device=x.device)  # (T, T)
        scores = scores.masked_fill(itself | ~mask.unsqueeze(1), torch.finfo(scores.dtype).min)
        nothing = self.nothing.to(scores.dtype).expand(*scores.shape[:2], 1)  # (B, T, 1)
        weights = wide(torch.cat([scores, nothing], dim=2)).softmax(2).to(scores.dtype)[..., :-1]  # (B, T, T)
        attended = weights @ x  # (B, T, D)
        return torch.cat([x, attended, x * attended], dim=-1)


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
