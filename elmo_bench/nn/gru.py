"""A bidirectional GRU over sentences of different lengths."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from elmo_bench.nn.lstm import reverse


class BiGRU(nn.Module):
    """One layer, both directions, each sentence on its own: padding is never read.

    The reset gate is applied after the recurrent product, as in cuDNN.

    Args:
        input_size: D.
        hidden_size: H, per direction.
        deviation: standard deviation of the initial weights, drawn from a normal distribution truncated at two
            deviations, with zero biases (Clark and Gardner 2018); None: torch's own initialisation.
    """

    def __init__(self, input_size: int, hidden_size: int, deviation: float | None = None):
        super().__init__()
        self.forward_gru = nn.GRU(input_size, hidden_size, batch_first=True)
        self.backward_gru = nn.GRU(input_size, hidden_size, batch_first=True)
        self.output_size = 2 * hidden_size
        if deviation is not None:
            for weight in self.parameters():
                if weight.dim() == 2:
                    nn.init.trunc_normal_(weight, std=deviation, a=-2 * deviation, b=2 * deviation)
                else:
                    nn.init.zeros_(weight)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """(B, T, D), mask (B, T) bool with the words first -> (B, T, 2H), zeros at padding."""
        ahead, _ = self.forward_gru(x)  # (B, T, H)
        back, _ = self.backward_gru(reverse(x, mask))
        return torch.cat([ahead, reverse(back, mask)], dim=-1) * mask.unsqueeze(2)
