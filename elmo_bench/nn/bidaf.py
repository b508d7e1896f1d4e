"""Attention for reading comprehension: between context and question (Seo et al. 2017), and within the context."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from elmo_bench.nn.attention import TriLinear, masked_softmax
from elmo_bench.nn.numerics import wide


class BiAttention(nn.Module):
    """Attention from context to question and from question to context: [x; q; x * q; x * c] for each context word x.

    With the tri-linear scores S between context x and question y, q_i = sum_j softmax_j(S_ij) y_j is what context word
    i attends to, and c = sum_i softmax_i(max_j S_ij) x_i, one vector for the whole context, what the question attends
    to.

    Args:
        size: D, width of the words of both.
    """

    def __init__(self, size: int):
        super().__init__()
        self.similarity = TriLinear(size)
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
