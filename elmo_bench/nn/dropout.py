"""Dropout of whole features of a sequence."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn


class VariationalDropout(nn.Dropout):
    """Drops whole features of a sequence: one mask for all its time steps (Gal and Ghahramani 2016)."""

    def forward(self, input: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, D)."""
        if not self.training or self.p == 0:
            return input
        kept = F.dropout(input.new_ones(input.shape[0], 1, input.shape[2]), self.p)  # (B, 1, D)
        return input * kept
