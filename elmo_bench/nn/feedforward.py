"""Feed-forward layers: classifiers over one vector (ReLU or maxout), and the scorer of spans and of span pairs.

Also the probabilities for a classifier's scores.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor, nn

from elmo_bench.nn.numerics import Linear, ScoreLinear


class ReluLayers(nn.Sequential):
    """(B, input_size) -> (B, output_size): ReLU layers of the given sizes, each with dropout, then a linear layer.

    Args:
        input_size: of the vector.
        output_size: number of scores.
        sizes: of the hidden layers.
        dropout: after each hidden layer.
    """

    def __init__(self, input_size: int, output_size: int, sizes: Sequence[int], dropout: Sequence[float]):
        parts: list[nn.Module] = []
        for size, drop in zip(sizes, dropout, strict=True):
            parts += [Linear(input_size, size), nn.ReLU(), nn.Dropout(drop)]
            input_size = size
        super().__init__(*parts, ScoreLinear(input_size, output_size))


class Maxout(nn.Module):
    """(..., input_size) -> (..., output_size): the maximum of `pool` linear maps (Goodfellow et al. 2013)."""

    def __init__(self, input_size: int, output_size: int, pool: int):
        super().__init__()
        self.maps = Linear(input_size, output_size * pool)
        self.pool = pool

    def forward(self, x: Tensor) -> Tensor:
        return self.maps(x).unflatten(-1, (-1, self.pool)).amax(-1)


class MaxoutLayers(nn.Sequential):
    """(B, input_size) -> (B, output_size), all layers of maxout units, with dropout after the hidden ones.

    Args:
        input_size, output_size, sizes, dropout: as for `ReluLayers`.
        pool: linear maps per unit.
    """

    def __init__(
        self, input_size: int, output_size: int, sizes: Sequence[int], dropout: Sequence[float], pool: int = 4
    ):
        parts: list[nn.Module] = []
        for size, drop in zip(sizes, dropout, strict=True):
            parts += [Maxout(input_size, size, pool), nn.Dropout(drop)]
            input_size = size
        super().__init__(*parts, Maxout(input_size, output_size, pool))


class FFNN(nn.Module):
    """The scorer of spans and of span pairs: two hidden layers with ReLU and dropout, then one score.

    The caller computes the first layer, bias included, because it splits into parts that spans and pairs share.
    """

    def __init__(self, parts: Sequence[int], hidden: int, dropout: float):
        super().__init__()
        self.parts = list(parts)  # widths of the parts of the input
        self.first, self.second = nn.Linear(sum(parts), hidden), Linear(hidden, hidden)
        self.score = nn.Linear(hidden, 1)
        self.dropout = dropout
        for layer in (self.first, self.second, self.score):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)

    def weights(self) -> tuple[Tensor, ...]:
        """The first layer's weight, (H, part) for each part."""
        return self.first.weight.split(self.parts, dim=1)

    def forward(self, first: Tensor) -> Tensor:
        """(P, H), the first layer before its ReLU -> (P,); `first` is overwritten."""
        p = self.dropout if self.training else 0.0
        second = self.second(F.dropout(first.relu_(), p))
        return self.score(F.dropout(second.relu_(), p)).squeeze(-1)


def probabilities(logits: Tensor, names: Sequence[str], digits: int = 4) -> list[dict[str, float]]:
    """Logits (B, K) -> for each row the probability of each of the K classes by its name, rounded."""
    rows = logits.float().softmax(dim=-1).tolist()
    return [{name: round(p, digits) for name, p in zip(names, row, strict=True)} for row in rows]


class VariationalDropout(nn.Dropout):
    """Drops whole features of a sequence: one mask for all its time steps (Gal and Ghahramani 2016)."""

    def forward(self, input: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, D)."""
        if not self.training or self.p == 0:
            return input
        kept = F.dropout(input.new_ones(input.shape[0], 1, input.shape[2]), self.p)  # (B, 1, D)
        return input * kept
