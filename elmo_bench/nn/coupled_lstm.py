"""The biLSTM of Lee et al. 2017: coupled gates, a learned initial state, one dropout mask per sequence."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from elmo_bench.nn.packing import Packing


class CoupledBiLSTM(nn.Module):
    """One layer, both directions, each sentence on its own.

    c' = (1 - i) c + i tanh(j) and h' = tanh(c') sigmoid(o), where (i, j, o) are linear in the word and in h. Words are
    given without padding, sentence after sentence. One product computes the inputs of all steps, and each step runs
    both directions of all sentences that reach it.

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
        sides = self.input(x).chunk(2, dim=1)  # two of (N, 3H)
        gates = torch.stack([side[order] for side, (order, _) in zip(sides, packing.orders, strict=True)])  # (2, N, 3H)
        h = self._run(gates, packing.batch_sizes)  # (2, N, H)
        return torch.cat([side[inverse] for side, (_, inverse) in zip(h, packing.orders, strict=True)], dim=1)

    def _run(self, gates: Tensor, batch_sizes: list[int]) -> Tensor:
        """All steps; at step t the first batch_sizes[t] sentences are still running."""
        c, h = (state.expand(2, batch_sizes[0], -1) for state in self.initial.unbind(1))  # (2, B, H)
        kept = None
        if self.training and self.dropout:
            kept = nn.functional.dropout(torch.ones_like(h), self.dropout)  # (2, B, H)
        outputs = []
        for step, size in zip(gates.split(batch_sizes, dim=1), batch_sizes, strict=True):
            if size < h.shape[1]:
                c, h, kept = c[:, :size], h[:, :size], kept if kept is None else kept[:, :size]
            i, j, o = torch.baddbmm(step, h if kept is None else h * kept, self.recurrent).chunk(3, dim=2)
            c = torch.lerp(c, j.tanh(), i.sigmoid())  # (2, B, H)
            h = c.tanh() * o.sigmoid()
            outputs.append(h)
        return torch.cat(outputs, dim=1)
