"""The computation of `TokenEncoder` and `ProjectedLSTM`, optimised for fixed weights.

Three things make it fast: every distinct word is encoded once, with convolutions written as products over windows cut
to the lengths of the words; the weights of all products are packed once; and each direction of the LSTMs has a thread
of its own, because the products of one step are too small for torch to split. Where a compiler is at hand, compiled
functions (`compiled.py`) do all this, with all threads at work on every step; elsewhere torch's products.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from threading import Lock

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from elmo_bench.bilm.characters import character_table, used_characters
from elmo_bench.bilm.compiled import CompiledDirections, CompiledEncoder, kernels
from elmo_bench.bilm.encoder import TokenEncoder
from elmo_bench.bilm.kernels import Kernels
from elmo_bench.bilm.lstm import FORGET_BIAS, Directions, ProjectedLSTM, State
from elmo_bench.nn.packed_linear import FixedLinear
from elmo_bench.nn.packing import BLOCK, REGULAR, blocks, on_device, regular

REMEMBERED_WORDS = 16384  # token vectors kept between batches
WORDS = 2048  # words encoded at once
WINDOWS = 8192  # windows of characters processed at once
TILE = 512  # rows per product in the token encoder


def for_weight(weight: Tensor, half: bool) -> Kernels | None:
    """The compiled functions, if there are any for this weight: float32 on a CPU."""
    return kernels(half) if weight.device.type == "cpu" and weight.dtype == torch.float32 else None


class FrozenEncoder:
    """Words -> token vectors; each distinct word is computed once and remembered, up to a limit.

    Args:
        encoder: its modules.
        half: multiply in bfloat16 where the compiled functions can.
    """

    def __init__(self, encoder: TokenEncoder, half: bool = False):
        self.options = encoder.options
        weight = encoder.characters.weight.detach()
        self.kernels = for_weight(weight, half)
        self.encoder = PlainEncoder(encoder) if self.kernels is None else CompiledEncoder(encoder, self.kernels)
        self.places: dict[str, int] = {}
        self.vectors = weight.new_empty(REMEMBERED_WORDS, self.options.projection_dim)
        self.lock = Lock()  # guards the remembered vectors

    def __call__(self, words: list[str]) -> Tensor:
        """(U, P) for distinct words."""
        if len(words) > REMEMBERED_WORDS:
            return torch.cat([self.compute(words[i : i + WORDS]) for i in range(0, len(words), WORDS)])
        with self.lock:
            missing = [word for word in words if word not in self.places]
            if len(self.places) + len(missing) > REMEMBERED_WORDS:
                self.places.clear()
                missing = words
            for start in range(0, len(missing), WORDS):
                self._remember(missing[start : start + WORDS])
            rows = np.fromiter((self.places[word] for word in words), np.int64, len(words))
            return self.vectors[on_device(rows, self.vectors.device)]

    def forget(self) -> None:
        """Drops the remembered vectors."""
        with self.lock:
            self.places.clear()

    def _remember(self, words: list[str]) -> None:
        first = len(self.places)
        self.vectors[first : first + len(words)] = self.compute(words)
        self.places.update(zip(words, range(first, first + len(words)), strict=True))

    def compute(self, words: Sequence[str]) -> Tensor:
        """(U, P), ignoring the remembered vectors; its working memory grows with U."""
        table = character_table(words, self.options.max_characters)  # (U, K)
        return self.encoder(table, used_characters(table))


class PlainEncoder:
    """Character ids -> token vectors by torch's products."""

    def __init__(self, encoder: TokenEncoder):
        self.options, self.padding = encoder.options, encoder.padding_columns()
        self.activation = encoder.activation
        self.embedding = encoder.characters.weight.detach()
        self.widths = [width for width, _ in self.options.filters]
        self.convolutions = [  # (number, width * char_dim)
            FixedLinear(c.weight.detach().permute(0, 2, 1).flatten(1), c.bias, rows=TILE)  # type: ignore
            for c in encoder.convolutions
        ]
        self.highways = [  # transform and carry in one product: (2F, F)
            FixedLinear(
                torch.cat([h.transform.weight, h.carry.weight]),  # type: ignore
                torch.cat([h.transform.bias, h.carry.bias]),  # type: ignore
                rows=TILE,
            )
            for h in encoder.highways
        ]
        last = encoder.projection
        self.project = FixedLinear(last.weight, last.bias, rows=TILE) if isinstance(last, torch.nn.Linear) else None

    def __call__(self, table: np.ndarray, used: np.ndarray) -> Tensor:
        """(U, K) ids and (U,) numbers of characters that are not padding -> (U, P)."""
        order = np.argsort(used, kind="stable")
        features = self.embedding.new_zeros(regular(len(table)), self.options.n_filters)
        for group in _groups(used[order], self.padding):
            rows = order[group]
            width = int(used[rows].max()) + self.padding
            ids = torch.from_numpy(table[rows, :width].astype(np.int64)).to(features.device)
            maxima = self._maxima(F.embedding(ids, self.embedding))
            features[torch.from_numpy(rows).to(features.device)] = self.activation(maxima)
        return torch.cat([self._highways(tile) for tile in features.split(TILE)])[: len(table)]

    def _highways(self, x: Tensor) -> Tensor:
        """(n, F) -> (n, P)."""
        for highway in self.highways:
            transform, carry = highway(x).chunk(2, dim=-1)
            x = torch.lerp(x, transform.relu_(), carry.sigmoid_())
        return x if self.project is None else self.project(x)

    def _maxima(self, x: Tensor) -> Tensor:
        """(n, K, char_dim) -> (n, F): each window is one row of a product, TILE rows at a time."""
        n, length, dim = x.shape
        pooled = x.new_empty(n, self.options.n_filters)
        for width, product, maxima in zip(self.widths, self.convolutions, self._parts(pooled), strict=True):
            places = length - width + 1
            windows = x.as_strided((n, places, width * dim), (length * dim, dim, 1))
            words = max(TILE // places, 1)  # per tile
            tile = x.new_zeros(regular(min(words, n) * places), width * dim)
            for start in range(0, n, words):
                some = windows[start : start + words]
                rows = len(some) * places
                tile[:rows].view(some.shape).copy_(some)
                out = product(tile[: regular(rows)])[:rows]  # (words * places, number)
                torch.amax(out.view(len(some), places, -1), dim=1, out=maxima[start : start + words])
        return pooled

    def _parts(self, features: Tensor) -> Sequence[Tensor]:
        """The columns of each filter width."""
        return features.split([number for _, number in self.options.filters], dim=1)


def frozen_directions(
    stacks: Sequence[Sequence[ProjectedLSTM]], skip: bool, half: bool = False
) -> Directions | CompiledDirections:
    """The fastest way to run these layers without gradients here; arguments as for `Directions`, `FrozenEncoder`."""
    found = for_weight(stacks[0][0].bias, half)
    if found is not None:
        return CompiledDirections(stacks, skip, found)
    return Directions((map(FrozenLSTM, layers) for layers in stacks), skip)


class FrozenLSTM:
    """One direction of one layer, called like `ProjectedLSTM`, but without gradients."""

    def __init__(self, layer: ProjectedLSTM):
        with torch.no_grad():
            i, j, f, o = layer.bias.chunk(4)
            self.input = FixedLinear(self._sorted(layer.input), torch.cat([i, f + FORGET_BIAS, o, j]), rows=BLOCK)
            self.recurrent = FixedLinear(self._sorted(layer.recurrent))
            self.projection = FixedLinear(layer.projection)
        self.cell_clip, self.proj_clip = layer.clips
        self.dim = layer.projection.shape[1]

    @staticmethod
    def _sorted(weight: Tensor) -> Tensor:
        """Gates i, j, f, o -> i, f, o, j: the three sigmoids side by side."""
        i, j, f, o = weight.chunk(4)
        return torch.cat([i, f, o, j])

    def __call__(self, x: Tensor, batch_sizes: Sequence[int], state: State) -> tuple[Tensor, State]:
        output = x.new_empty(len(x), state.h.shape[1])
        h_last, c_last = torch.empty_like(state.h), torch.empty_like(state.c)
        x = F.pad(x, (0, 0, 0, 2 * REGULAR))  # products take regular row counts; the extra rows are dropped
        running = len(state.h)
        h, c = (F.pad(s, (0, 0, 0, regular(running) - running)) for s in state)  # (regular B, P), (regular B, C)
        done = 0
        for block in blocks(batch_sizes):
            rows = sum(block) + regular(block[-1]) - block[-1]
            products, start = self.input(x[done : done + regular(rows)]), 0  # (rows and more, 4C)
            for n in block:
                h_last[n:running], c_last[n:running] = h[n:running], c[n:running]  # these ended at the previous step
                running, computed = n, regular(n)
                h, c = self._step(products[start : start + computed], h[:computed], c[:computed])
                output[done : done + n] = h[:n]
                start, done = start + n, done + n
        h_last[:running], c_last[:running] = h[:running], c[:running]
        return output, State(h_last, c_last)

    def _step(self, gates: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        gates = self.recurrent.add_to(gates, h)  # (n, 4C)
        i, f, o = gates[:, : 3 * self.dim].sigmoid_().chunk(3, dim=-1)
        c = torch.addcmul(i * gates[:, 3 * self.dim :].tanh_(), f, c).clamp_(-self.cell_clip, self.cell_clip)
        h = self.projection(torch.tanh(c).mul_(o)).clamp_(-self.proj_clip, self.proj_clip)
        return h, c


def _groups(lengths: np.ndarray, padding: int) -> Iterator[slice]:
    """Runs of words of similar length (ascending), with at most WINDOWS windows in total."""
    start = 0
    for i, length in enumerate(lengths):
        if length > lengths[start] + 4 or (i - start + 1) * (length + padding) > WINDOWS:
            yield slice(start, i)
            start = i
    if len(lengths):
        yield slice(start, len(lengths))
