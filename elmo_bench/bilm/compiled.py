"""The frozen biLM's convolutions, highways and LSTMs by compiled functions; `frozen.py` has the same in torch.

They are used where a compiler can build them and they compute what torch computes; `ELMO_BENCH_KERNELS=0` turns them
off.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from elmo_bench.bilm.encoder import Highway, TokenEncoder
from elmo_bench.bilm.kernels import Kernels, built
from elmo_bench.bilm.lstm import FORGET_BIAS, ProjectedLSTM, State
from elmo_bench.bilm.options import Options
from elmo_bench.bilm.threads import in_parallel
from elmo_bench.nn.packed_linear import FixedLinear
from elmo_bench.nn.packing import REGULAR, blocks, regular

CHUNK = 64  # words convolved by one thread at once
NEAR = 1e-5  # largest difference from torch that the check allows


@cache
def kernels() -> Kernels | None:
    """The compiled functions; None without a compiler, where they are turned off, or if they compute other results."""
    if os.environ.get("ELMO_BENCH_KERNELS") == "0":
        return None
    try:
        found = Kernels(built())
    except (OSError, AttributeError, subprocess.SubprocessError):
        return None
    return found if all(difference < NEAR for difference in differences(found)) else None


class Convolutions:
    """Character ids -> every filter's maximum over the windows of a word."""

    def __init__(self, encoder: TokenEncoder, kernels: Kernels):
        self.kernels = kernels
        self.embedding = encoder.characters.weight.detach().contiguous()
        self.filters = [self._packed(convolution) for convolution in encoder.convolutions]  # type: ignore[arg-type]

    def _packed(self, convolution: nn.Conv1d) -> tuple[int, int, Tensor, Tensor]:
        """Width, number, packed weight and padded bias of the filters of one width."""
        number, _, width = convolution.weight.shape
        weight = self.kernels.packed(convolution.weight.permute(0, 2, 1).flatten(1))
        assert convolution.bias is not None
        return width, number, weight, _padded(convolution.bias.detach(), len(weight) * self.kernels.panel)

    def __call__(self, table: np.ndarray, used: np.ndarray) -> Tensor:
        """(U, K) ids and (U,) numbers of characters that are not padding -> (U, F), before the activation."""
        ids, lengths = (torch.from_numpy(array.astype(np.int32)) for array in (table, used))
        parts = list(zip(ids.split(CHUNK), lengths.split(CHUNK), strict=True))
        return torch.cat(in_parallel(lambda part: self._maxima(*part), parts))

    def _maxima(self, ids: Tensor, used: Tensor) -> Tensor:
        found = (
            self.kernels.convolve(ids, used, self.embedding, width, weight, bias)[:, :number]
            for width, number, weight, bias in self.filters
        )
        return torch.cat(list(found), dim=1)


class CompiledLSTM:
    """One direction of one layer, called like `ProjectedLSTM`, but without gradients."""

    def __init__(self, layer: ProjectedLSTM, kernels: Kernels):
        self.kernels = kernels
        self.width, self.cells = layer.projection.shape
        cells = _up(self.cells, kernels.lanes) - self.cells  # added to fill the last vector, and always zero
        width = _up(self.width, kernels.panel) - self.width
        with torch.no_grad():
            bias = layer.bias.clone()
            bias[2 * self.cells : 3 * self.cells] += FORGET_BIAS
            self.input = FixedLinear(self._sorted(layer.input), self._sorted(bias[:, None])[:, 0])
            self.recurrent = kernels.packed(F.pad(self._sorted(layer.recurrent), (0, width)))
            self.projection = kernels.packed(F.pad(layer.projection, (0, cells, 0, width)))
        self.padding, self.clips = (width, cells), (layer.clips[0], layer.clips[1])

    def _sorted(self, weight: Tensor) -> Tensor:
        """(4C, n), gates i, j, f, o one after another -> for each vector of cells its i, f, o, j, one after another."""
        lanes = self.kernels.lanes
        i, j, f, o = (F.pad(gate, (0, 0, 0, -len(gate) % lanes)).unflatten(0, (-1, lanes)) for gate in weight.chunk(4))
        return torch.stack([i, f, o, j], dim=1).flatten(0, 2).contiguous()

    def __call__(self, x: Tensor, batch_sizes: Sequence[int], state: State) -> tuple[Tensor, State]:
        h, c = (F.pad(s, (0, n)).clone(memory_format=torch.contiguous_format) for s, n in zip(state, self.padding))  # noqa: B905
        outputs = [
            self.kernels.lstm(gates, torch.tensor(block), self.recurrent, self.projection, self.clips, h, c)
            for block, gates in self._gates(x, batch_sizes)
        ]
        return torch.cat(outputs)[:, : self.width], State(h[:, : self.width], c[:, : self.cells])

    def _gates(self, x: Tensor, batch_sizes: Sequence[int]) -> Iterator[tuple[list[int], Tensor]]:
        """The input's products, for some steps at a time."""
        x, done = F.pad(x, (0, 0, 0, REGULAR)), 0  # products take regular row counts; the extra rows are dropped
        for block in blocks(batch_sizes):
            rows = sum(block)
            yield block, self.input(x[done : done + regular(rows)])[:rows]
            done += rows


def differences(kernels: Kernels) -> Iterator[float]:
    """The largest difference of each function from torch's results, on small random input."""
    options = Options.parse(CHECKED, "the check of the compiled functions")
    with torch.random.fork_rng([]), torch.no_grad():
        torch.manual_seed(0)
        encoder, highway, layer = TokenEncoder(options), Highway(4 * kernels.lanes), ProjectedLSTM(24, 40, 24, 0.5, 0.2)
        words = ["a", "word", "another-one", "x" * 60]
        ids = encoder.ids(words)
        used = (ids != ids[0, -1]).sum(1)
        expected = torch.cat([c(encoder.characters(ids).mT).amax(-1) for c in encoder.convolutions], dim=1)
        yield _apart(Convolutions(encoder, kernels)(ids.numpy(), used.numpy()), expected)
        x = torch.randn(9, 4 * kernels.lanes)
        expected = highway(x)
        kernels.highway(x, torch.cat([highway.transform(x), highway.carry(x)], dim=1))
        yield _apart(x, expected)
        layer.bias.uniform_(-1, 1)
        x, state = torch.randn(23, 24), State(torch.randn(9, 24), torch.randn(9, 40))
        (out, end), (there, there_end) = (run(x, [9, 9, 3, 2], state) for run in (CompiledLSTM(layer, kernels), layer))
        yield from map(_apart, (out, *end), (there, *there_end))


# A small biLM for the check: numbers of filters, cells and outputs that do not fill whole vectors.
CHECKED = {
    "lstm": {
        "use_skip_connections": True,
        "projection_dim": 24,
        "cell_clip": 3,
        "proj_clip": 3,
        "dim": 40,
        "n_layers": 1,
    },
    "char_cnn": {
        "activation": "relu",
        "filters": [[1, 8], [2, 70], [7, 20]],
        "n_highway": 1,
        "embedding": {"dim": 8},
        "n_characters": 262,
        "max_characters_per_token": 50,
    },
}


def _apart(a: Tensor, b: Tensor) -> float:
    return float((a - b).abs().max())


def _up(size: int, step: int) -> int:
    return -(-size // step) * step


def _padded(x: Tensor, size: int) -> Tensor:
    return F.pad(x, (0, size - len(x))).contiguous()
