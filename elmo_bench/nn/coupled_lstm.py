"""The biLSTM of Lee et al. 2017: coupled gates, a learned initial state, one dropout mask per sequence."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from elmo_bench.nn.compiled import loopable
from elmo_bench.nn.coupled_steps import Order, Steps
from elmo_bench.nn.dropout import dropout
from elmo_bench.nn.masked_loops import Layer, masked_loops
from elmo_bench.nn.precision import half
from elmo_bench.nn.recurrent import COUPLED, Loops, Words


class CoupledBiLSTM(nn.Module):
    """One layer, both directions, each sentence on its own.

    c' = (1 - i) c + i tanh(j) and h' = tanh(c') sigmoid(o), where (i, j, o) are linear in the word and in h. Words are
    given without padding, sentence after sentence. One product computes the inputs of all steps. The steps run in
    compiled loops (`masked_loops.py`) or, elsewhere, in torch's operations on both directions of all sentences that
    reach a step.

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
        kept = None
        if self.training and self.dropout:
            kept = dropout(self.initial.new_ones(2, len(lengths), self.hidden_size), self.dropout)  # (2, B, H)
        if (kernels := loopable(x)) is not None:
            layer = Layer(Loops(COUPLED, kernels, Words.unpadded(lengths), half(x)), (0, 1))
            weights = self.input.weight, self.input.bias, self.recurrent.mT, self.initial[:, :, 0]
            return masked_loops(layer, x, *weights, kept)
        return Steps.apply(self.input(x), self.recurrent, self.initial, kept, Order.of(lengths, x.device))
