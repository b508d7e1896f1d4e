"""The scorer of spans and of pairs of spans."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn


class FFNN(nn.Module):
    """Two hidden layers, ReLU and dropout behind each, one score.

    The first layer's product is the caller's: over spans and pairs of spans it splits into parts that are shared.
    """

    def __init__(self, parts: Sequence[int], hidden: int, dropout: float):
        super().__init__()
        self.parts = list(parts)  # widths of what the input is joined from
        self.first, self.second = nn.Linear(sum(parts), hidden), nn.Linear(hidden, hidden)
        self.score = nn.Linear(hidden, 1)
        self.dropout = nn.Dropout(dropout)
        for layer in (self.first, self.second, self.score):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)

    def weights(self) -> tuple[Tensor, ...]:
        """The first layer's weight, (H, part) for each part."""
        return self.first.weight.split(self.parts, dim=1)

    def forward(self, first: Tensor) -> Tensor:
        """(P, H), the sum of the parts' products with their weights -> (P,)."""
        hidden = self.dropout((first + self.first.bias).relu_())
        return self.score(self.dropout(self.second(hidden).relu())).squeeze(-1)
