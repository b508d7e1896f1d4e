"""Classifiers over one vector: layers of rectified or of maxout units."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn


class ReluLayers(nn.Sequential):
    """(B, input_size) -> (B, output_size): rectified layers of the given sizes, each with dropout, then a linear map.

    Args:
        input_size: of the vector.
        output_size: number of scores.
        sizes: of the hidden layers.
        dropout: behind each of them.
    """

    def __init__(self, input_size: int, output_size: int, sizes: Sequence[int], dropout: Sequence[float]):
        parts: list[nn.Module] = []
        for size, drop in zip(sizes, dropout, strict=True):
            parts += [nn.Linear(input_size, size), nn.ReLU(), nn.Dropout(drop)]
            input_size = size
        super().__init__(*parts, nn.Linear(input_size, output_size))


class Maxout(nn.Module):
    """(..., input_size) -> (..., output_size): of `pool` linear maps the greatest value (Goodfellow et al. 2013)."""

    def __init__(self, input_size: int, output_size: int, pool: int):
        super().__init__()
        self.maps = nn.Linear(input_size, output_size * pool)
        self.pool = pool

    def forward(self, x: Tensor) -> Tensor:
        return self.maps(x).unflatten(-1, (-1, self.pool)).amax(-1)


class MaxoutLayers(nn.Sequential):
    """(B, input_size) -> (B, output_size), all layers of maxout units, dropout behind the hidden ones.

    Args:
        input_size, output_size, sizes, dropout: as those of `ReluLayers`.
        pool: linear maps of a unit.
    """

    def __init__(
        self, input_size: int, output_size: int, sizes: Sequence[int], dropout: Sequence[float], pool: int = 4
    ):
        parts: list[nn.Module] = []
        for size, drop in zip(sizes, dropout, strict=True):
            parts += [Maxout(input_size, size, pool), nn.Dropout(drop)]
            input_size = size
        super().__init__(*parts, Maxout(input_size, output_size, pool))
