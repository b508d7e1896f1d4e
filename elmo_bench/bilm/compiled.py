"""The frozen biLM's convolutions, highways and LSTMs by compiled functions; `frozen.py` has the same in torch.

They are used where a compiler can build them and they compute what torch computes; `ELMO_BENCH_KERNELS=0` turns them
off.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from elmo_bench.bilm.encoder import Highway, TokenEncoder
from elmo_bench.bilm.kernels import Kernels, Weights, built
from elmo_bench.bilm.lstm import FORGET_BIAS, ProjectedLSTM, State
from elmo_bench.bilm.options import Options
from elmo_bench.bilm.threads import in_parallel
from elmo_bench.system import compiler

CHUNK = 128  # words encoded at once: what lies between their products nearly stays in the second cache
LEAST = 16  # words that are worth a thread
NEAR, NEAR_HALF = 1e-5, 0.02  # largest difference from torch that the check allows, in float32 and in bfloat16


@cache
def kernels(half: bool = False) -> Kernels | None:
    """The compiled functions; None without a compiler, where they are turned off, or if they compute other results.

    Args:
        half: those that multiply in bfloat16; None too where the processor or the compiler has no instructions for it.
    """
    return compiler.checked(lambda: Kernels(built(), half), differences, NEAR_HALF if half else NEAR)


class CompiledEncoder:
    """Character ids -> token vectors."""

    def __init__(self, encoder: TokenEncoder, kernels: Kernels):
        self.kernels, self.squash = kernels, encoder.options.activation == "tanh"
        self.table = kernels.factors(encoder.characters.weight).contiguous()
        self.filters = [self._filters(convolution) for convolution in encoder.convolutions]  # type: ignore[arg-type]
        self.features = encoder.options.n_filters
        self.size = _up(self.features, kernels.panel // 2)  # columns added to fill the last vectors are always zero
        self.highways = [self._highway(highway) for highway in encoder.highways]  # type: ignore[arg-type]
        last = encoder.projection
        self.width = encoder.options.projection_dim
        self.projection = self._linear(last.weight, last.bias) if isinstance(last, nn.Linear) else None

    def _filters(self, convolution: nn.Conv1d) -> tuple[int, int, Tensor, Tensor]:
        """Number, width, packed weight and padded bias of the filters of one width."""
        number, size, width = convolution.weight.shape
        windows = F.pad(convolution.weight.permute(0, 2, 1), (0, size % 2 if self.kernels.half else 0))
        assert convolution.bias is not None
        weight = self.kernels.packed(windows.flatten(1))
        return number, width, weight, _padded(convolution.bias.detach(), len(weight) * self.kernels.panel)

    def _highway(self, highway: Highway) -> tuple[Tensor, Tensor]:
        """Packed weight and bias."""
        missing = self.size - self.features
        parts = highway.transform, highway.carry
        weight = self._in_turn([F.pad(part.weight, (0, missing, 0, missing)) for part in parts])
        return self.kernels.packed(weight), self._in_turn([_padded(part.bias, self.size) for part in parts])

    def _in_turn(self, parts: list[Tensor]) -> Tensor:
        """Transform and carry, half a panel of each in turn."""
        halves = [part.detach().unflatten(0, (-1, self.kernels.panel // 2)) for part in parts]
        return torch.stack(halves, dim=1).flatten(0, 2)

    def _linear(self, weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
        packed = self.kernels.packed(F.pad(weight, (0, self.size - self.features)))
        return packed, _padded(bias.detach(), len(packed) * self.kernels.panel)

    def __call__(self, table: np.ndarray, used: np.ndarray) -> Tensor:
        """(U, K) ids and (U,) numbers of characters that are not padding -> (U, P)."""
        threads = min(torch.get_num_threads(), len(table) // LEAST)
        parts = _up(-(-len(table) // CHUNK), max(threads, 1))  # as many for each thread
        ids, lengths = (torch.from_numpy(array.astype(np.int32)).tensor_split(parts) for array in (table, used))
        return torch.cat(in_parallel(lambda part: self._encoded(*part), list(zip(ids, lengths, strict=True))))

    def _encoded(self, ids: Tensor, used: Tensor) -> Tensor:
        x = self.table.new_zeros(
            len(ids), self.size + self.kernels.panel
        )  # filters that do not fill a panel write beyond it
        done = 0
        for number, width, weight, bias in self.filters:
            self.kernels.convolve(ids, used, self.table, width, weight, bias, self.squash, x[:, done:])
            done += number
        for weight, bias in self.highways:
            self.kernels.highway(x, weight, bias)
        if self.projection is not None:
            x = self.kernels.linear(x, self.size, *self.projection)
        return x[:, : self.width]


class CompiledLSTM:
    """One direction of one layer, called like `ProjectedLSTM`, but without gradients."""

    def __init__(self, layer: ProjectedLSTM, kernels: Kernels):
        self.kernels = kernels
        self.width, self.cells = layer.projection.shape
        inputs = -layer.input.shape[1] % kernels.step  # added to fill the last vector, and always zero
        cells, width = -self.cells % kernels.step, -self.width % kernels.panel
        with torch.no_grad():
            bias = layer.bias.clone()
            bias[2 * self.cells : 3 * self.cells] += FORGET_BIAS
            self.weights = Weights(
                kernels.packed(self._sorted(F.pad(layer.input, (0, inputs)))),
                self._sorted(bias[:, None])[:, 0].contiguous(),
                kernels.packed(self._sorted(F.pad(layer.recurrent, (0, width)))),
                kernels.packed(F.pad(layer.projection, (0, cells, 0, width))),
            )
        self.padding, self.clips = (inputs, width, cells), (layer.clips[0], layer.clips[1])

    def _sorted(self, weight: Tensor) -> Tensor:
        """(4C, n), gates i, j, f, o one after another -> for each vector of cells its i, f, o, j, one after another."""
        missing, lanes = -self.cells % self.kernels.step, self.kernels.lanes
        i, j, f, o = (F.pad(gate, (0, 0, 0, missing)).unflatten(0, (-1, lanes)) for gate in weight.chunk(4))
        return torch.stack([i, f, o, j], dim=1).flatten(0, 2)

    def __call__(self, x: Tensor, batch_sizes: Sequence[int], state: State) -> tuple[Tensor, State]:
        x, h, c = (F.pad(a, (0, n)) for a, n in zip((x, *state), self.padding, strict=True))
        h, c = (s.clone(memory_format=torch.contiguous_format) for s in (h, c))  # the state before is kept
        sizes, threads = torch.tensor(batch_sizes), torch.get_num_threads()
        out = self.kernels.lstm(x.contiguous(), sizes, self.weights, self.clips, h, c, threads)
        return out[:, : self.width], State(h[:, : self.width], c[:, : self.cells])


def differences(kernels: Kernels) -> Iterator[float]:
    """The largest difference of each function from torch's results, on small random input."""
    with torch.random.fork_rng([]), torch.no_grad():
        torch.manual_seed(0)
        for activation in ("relu", "tanh"):
            char_cnn = {**CHECKED["char_cnn"], "activation": activation}
            encoder = TokenEncoder(Options.parse({**CHECKED, "char_cnn": char_cnn}))
            ids = encoder.ids(["a", "word", "another-one", "x" * 60])
            used = (ids != ids[0, -1]).sum(1)
            yield _apart(CompiledEncoder(encoder, kernels)(ids.numpy(), used.numpy()), encoder(ids))
        layer = ProjectedLSTM(24, 40, 24, 0.5, 0.2)
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
