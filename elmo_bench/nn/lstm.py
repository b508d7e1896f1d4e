"""A bidirectional LSTM over sentences of different lengths."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from elmo_bench.nn.compiled import loopable
from elmo_bench.nn.recurrent import LSTM, both_directions


class BiLSTM(nn.Module):
    """One layer, both directions, each sentence on its own: padding is never read.

    On a CPU by compiled time loops (`recurrent.py`). Elsewhere both directions run on left-aligned sentences, the
    backward one on each sentence reversed, so padding always comes after the last word.

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
        return self.each((x, mask))[0]

    def each(self, *batches: tuple[Tensor, Tensor]) -> list[Tensor]:
        """Several batches with their masks: on a CPU all at once."""
        if (kernels := loopable(batches[0][0])) is not None:
            return both_directions(LSTM, kernels, batches, [self.forward_lstm, self.backward_lstm])
        return [self._left_aligned(*batch) for batch in batches]

    def _left_aligned(self, x: Tensor, mask: Tensor) -> Tensor:
        ahead, _ = self.forward_lstm(x)  # (B, T, H)
        back, _ = self.backward_lstm(reverse(x, mask))
        return torch.cat([ahead, reverse(back, mask)], dim=-1) * mask.unsqueeze(2)


def reverse(x: Tensor, mask: Tensor) -> Tensor:
    """(B, T, D) with the words of each sentence in reverse order and its padding left where it is."""
    position = torch.arange(mask.shape[1], device=mask.device)  # (T,)
    mirrored = torch.where(mask, mask.sum(1, keepdim=True) - 1 - position, position)  # (B, T)
    return x.gather(1, mirrored.unsqueeze(2).expand_as(x))
