"""Words to token vectors without gradients: by the compiled functions (`words.h`), and by torch's products."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from elmo_bench.bilm.encoder import Highway, TokenEncoder
from elmo_bench.bilm.kernels.linear import FixedLinear
from elmo_bench.nn.kernels.library import EncoderWeights, Kernels, Linear
from elmo_bench.nn.kernels.threads import most_threads

CHUNK = 128  # words encoded at once by a thread: what lies between their products nearly stays in the second cache
LEAST = 16  # words that are worth a thread
WINDOWS = 8192  # windows of characters that torch processes at once
TILE = 512  # rows per product of torch


class CompiledEncoder:
    """Character ids -> token vectors."""

    def __init__(self, encoder: TokenEncoder, kernels: Kernels):
        self.kernels, self.width = kernels, encoder.options.lstm.projection_dim
        features = encoder.options.char_cnn.n_filters
        filled = _up(features, kernels.panel // 2)
        missing = filled - features
        projection = encoder.projection
        self.weights = EncoderWeights(
            kernels.factors(encoder.characters.weight).contiguous(),
            list(encoder.options.char_cnn.filters),
            encoder.activation is torch.tanh,
            features,
            filled,
            [self._filters(*_linear(convolution)) for convolution in encoder.convolutions],
            [self._highway(*_highway(highway), missing) for highway in encoder.highways],
            [self._linear(*_linear(projection), missing)] if isinstance(projection, nn.Linear) else [],
        )

    def _filters(self, weight: Tensor, bias: Tensor) -> Linear:
        odd = weight.shape[1] % 2 if self.kernels.half else 0
        return self._packed(F.pad(weight.permute(0, 2, 1), (0, odd)).flatten(1), bias)

    def _highway(self, transform: Linear, carry: Linear, missing: int) -> Linear:
        parts = transform, carry
        weight = self._in_turn([F.pad(weight, (0, missing, 0, missing)) for weight, _ in parts])
        return self._packed(weight, self._in_turn([F.pad(bias, (0, missing)) for _, bias in parts]))

    def _in_turn(self, parts: list[Tensor]) -> Tensor:
        """Transform and carry, half a panel of each in turn."""
        halves = [part.unflatten(0, (-1, self.kernels.panel // 2)) for part in parts]
        return torch.stack(halves, dim=1).flatten(0, 2)

    def _linear(self, weight: Tensor, bias: Tensor, missing: int) -> Linear:
        return self._packed(F.pad(weight, (0, missing)), bias)

    def _packed(self, weight: Tensor, bias: Tensor) -> Linear:
        return self.kernels.packed(weight), F.pad(bias.detach(), (0, -len(bias) % self.kernels.panel)).contiguous()

    def __call__(self, table: np.ndarray, used: np.ndarray) -> Tensor:
        """(U, K) ids and (U,) numbers of characters that are not padding -> (U, P)."""
        threads = max(1, min(most_threads(), len(table) // LEAST))
        ids, lengths = (torch.from_numpy(array.astype(np.int32)) for array in (table, used))
        return self.kernels.encode(ids, lengths, self.weights, CHUNK, threads)[:, : self.width]


class PlainEncoder:
    """Character ids -> token vectors by torch's products."""

    def __init__(self, encoder: TokenEncoder):
        self.widths, self.numbers = zip(*encoder.options.char_cnn.filters, strict=True)
        self.activation, self.padding = encoder.activation, encoder.padding_columns()
        self.embedding, projection = encoder.characters.weight.detach(), encoder.projection
        convolutions = [_linear(convolution) for convolution in encoder.convolutions]
        self.convolutions = [  # (number, width * char_dim)
            FixedLinear(weight.permute(0, 2, 1).flatten(1), bias) for weight, bias in convolutions
        ]
        self.highways = [  # transform and carry in one product: (2F, F)
            FixedLinear(*(torch.cat(both) for both in zip(*_highway(highway), strict=True)))
            for highway in encoder.highways
        ]
        self.project = FixedLinear(*_linear(projection)) if isinstance(projection, nn.Linear) else None

    def __call__(self, table: np.ndarray, used: np.ndarray) -> Tensor:
        """(U, K) ids and (U,) numbers of characters that are not padding -> (U, P)."""
        order = np.argsort(used, kind="stable")
        features = self.embedding.new_empty(len(table), sum(self.numbers))
        for group in _groups(used[order], self.padding):
            rows = order[group]
            width = int(used[rows].max()) + self.padding
            ids = torch.from_numpy(table[rows, :width].astype(np.int64)).to(features.device)
            maxima = self._maxima(F.embedding(ids, self.embedding))
            features[torch.from_numpy(rows).to(features.device)] = self.activation(maxima)
        return torch.cat([self._highways(tile) for tile in features.split(TILE)])

    def _highways(self, x: Tensor) -> Tensor:
        """(n, F) -> (n, P)."""
        for highway in self.highways:
            transform, carry = highway(x).chunk(2, dim=-1)
            x = torch.lerp(x, transform.relu_(), carry.sigmoid_())
        return x if self.project is None else self.project(x)

    def _maxima(self, x: Tensor) -> Tensor:
        """(n, K, char_dim) -> (n, F): each window is one row of a product, TILE rows at a time."""
        n, length, dim = x.shape
        pooled = x.new_empty(n, sum(self.numbers))
        for width, product, maxima in zip(
            self.widths, self.convolutions, pooled.split(self.numbers, dim=1), strict=True
        ):
            places = length - width + 1
            windows = x.as_strided((n, places, width * dim), (length * dim, dim, 1))
            words = max(TILE // places, 1)  # per tile
            for start in range(0, n, words):
                some = windows[start : start + words]
                out = product(some.flatten(0, 1))  # (words * places, number)
                torch.amax(out.view(len(some), places, -1), dim=1, out=maxima[start : start + words])
        return pooled


def _groups(lengths: np.ndarray, padding: int) -> Iterator[slice]:
    """Runs of words of similar length (ascending), with at most WINDOWS windows in total."""
    start = 0
    for i, length in enumerate(lengths):
        if length > lengths[start] + 4 or (i - start + 1) * (length + padding) > WINDOWS:
            yield slice(start, i)
            start = i
    if len(lengths):
        yield slice(start, len(lengths))


def _up(size: int, step: int) -> int:
    return -(-size // step) * step


def _highway(highway: nn.Module) -> tuple[Linear, Linear]:
    assert isinstance(highway, Highway)
    return _linear(highway.transform), _linear(highway.carry)


def _linear(layer: nn.Module) -> Linear:
    assert isinstance(layer, nn.Linear | nn.Conv1d)
    assert layer.bias is not None
    return layer.weight.detach(), layer.bias.detach()
