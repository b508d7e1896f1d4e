"""A bidirectional LSTM over sentences of different lengths."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from elmo_bench.nn.numerics import wide


class BiLSTM(nn.Module):
    """One layer, both directions, each sentence on its own: padding is never read.

    Args:
        input_size: D.
        hidden_size: H, per direction.
    """

    def __init__(self, input_size: int, hidden_size: int):
        super().__init__()
        self.forward_lstm = nn.LSTM(input_size, hidden_size, batch_first=True)
        self.backward_lstm = nn.LSTM(input_size, hidden_size, batch_first=True)
        self.output_size = 2 * hidden_size

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """(B, T, D), mask (B, T) bool with the words first -> (B, T, 2H), zeros at padding."""
        return both_directions(self.forward_lstm, self.backward_lstm, x, mask)


def both_directions(forward: nn.RNNBase, backward: nn.RNNBase, x: Tensor, mask: Tensor) -> Tensor:
    """Two layers of one direction over (B, T, D), mask (B, T) with the words first -> (B, T, 2H), zeros at padding.

    Sentences are left-aligned, for the backward layer each in reverse order, so padding always comes after the last
    word. On a CPU the layers compute in float32 also under autocast: not every processor has an LSTM of 16 bits.
    """
    if x.device.type == "cpu" and torch.is_autocast_enabled("cpu"):
        with torch.autocast("cpu", enabled=False):
            return both_directions(forward, backward, wide(x), mask)
    ahead, _ = forward(x)  # (B, T, H)
    back, _ = backward(reverse(x, mask))
    return torch.cat([ahead, reverse(back, mask)], dim=-1) * mask.unsqueeze(2)


def reverse(x: Tensor, mask: Tensor) -> Tensor:
    """(B, T, D) with the words of each sentence in reverse order and its padding left where it is."""
    position = torch.arange(mask.shape[1], device=mask.device)  # (T,)
    mirrored = torch.where(mask, mask.sum(1, keepdim=True) - 1 - position, position)  # (B, T)
    return x.gather(1, mirrored.unsqueeze(2).expand_as(x))
