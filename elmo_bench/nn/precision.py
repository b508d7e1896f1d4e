"""What keeps the precision of the weights under mixed precision (`trainer.precision=bf16-mixed`).

Autocast computes products in 16 bits. The scores that a loss or a search compares, softmax and log-sum-exp stay in
float32, on every device; without autocast nothing here changes a result.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

HALVES = (torch.bfloat16, torch.float16)


def wide(x: Tensor) -> Tensor:
    """A tensor of 16 bits as float32; any other unchanged."""
    return x.float() if x.dtype in HALVES else x


def half(x: Tensor) -> torch.dtype | None:
    """The 16 bits in which autocast computes the products of such a tensor; None without autocast."""
    device = x.device.type
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else None


class ScoreLinear(nn.Linear):
    """A linear layer whose scores have the precision of its weights, also under autocast.

    For a last layer, which is narrow: 8 bits of a score are too few to tell close classes, tags or words apart.
    """

    def forward(self, input: Tensor) -> Tensor:
        """(..., D) -> (..., K)."""
        with torch.autocast(input.device.type, enabled=False):
            return super().forward(input.to(self.weight.dtype))
