"""The biLSTM of Lee et al. 2017: coupled gates, a learned initial state, one dropout mask per sequence."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from elmo_bench.nn.kernels.products import linear
from elmo_bench.nn.packing import Packing
from elmo_bench.nn.recurrent import COUPLED, recurrence


class CoupledBiLSTM(nn.Module):
    """One layer, both directions, each sentence on its own.

    c' = (1 - i) c + i tanh(j) and h' = tanh(c') sigmoid(o), where i is after its sigmoid and (i, j, o) are linear in
    the word and in h. Words are given without padding, sentence after sentence. One product computes the inputs of all
    steps.

    Args:
        input_size: D.
        hidden_size: H, per direction.
        dropout: on the recurrent h, with one mask for the whole sequence.
    """

    def __init__(self, input_size: int, hidden_size: int, dropout: float = 0.0):
        super().__init__()
        self.hidden_size, self.dropout, self.output_size = hidden_size, dropout, 2 * hidden_size
        self.input = nn.Linear(input_size, 6 * hidden_size)
        self.recurrent = nn.Parameter(torch.empty(2, hidden_size, 3 * hidden_size))
        self.initial = nn.Parameter(torch.empty(2, 2, 1, hidden_size))  # direction, (c, h)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Orthonormal blocks from h to each gate, Glorot's uniform values elsewhere."""
        for weight in self.input.weight.chunk(2):
            nn.init.xavier_uniform_(weight)
        nn.init.zeros_(self.input.bias)
        for direction in self.recurrent.data:
            for block in direction.split(self.hidden_size, dim=1):
                nn.init.orthogonal_(block)
        for state in self.initial.data.flatten(0, 1):
            nn.init.xavier_uniform_(state)

    def forward(self, x: Tensor, lengths: Sequence[int]) -> Tensor:
        """(N, D), the words of sentences of these lengths, one after another -> (N, 2H)."""
        packing = Packing(lengths, x.device)
        sizes, (forward, backward) = packing.batch_sizes, packing.orders
        kept = None
        if self.training and self.dropout:
            kept = F.dropout(self.initial.new_ones(2, len(lengths), self.hidden_size), self.dropout)  # (2, B, H)
        ahead, back = linear(x, self.input.weight, self.input.bias).chunk(2, dim=1)  # (N, 3H) each
        products = torch.stack([ahead[forward[0]], back[backward[0]]])  # (2, N, 3H), step after step
        c, h = (state.expand(-1, sizes[0], -1) for state in self.initial.unbind(1))  # (2, B, H) each
        states, _ = recurrence(COUPLED, products, self.recurrent.mT, sizes, h, c, mask=kept)
        ahead, back = states  # (N, H) each
        return torch.cat([ahead[forward[1]], back[backward[1]]], dim=1)
