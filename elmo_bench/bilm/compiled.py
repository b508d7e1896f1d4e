"""The frozen biLM's convolutions, highways and LSTMs by compiled functions; `frozen.py` has the same in torch.

They are used where a compiler can build them and they compute what torch computes; `ELMO_BENCH_KERNELS=0` turns them
off.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import chain

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from elmo_bench.bilm.encoder import Highway, TokenEncoder
from elmo_bench.bilm.kernels import EncoderWeights, Kernels, Linear, Weights, built
from elmo_bench.bilm.lstm import FORGET_BIAS, Directions, ProjectedLSTM, State, States
from elmo_bench.bilm.options import Options
from elmo_bench.nn.packing import Packing
from elmo_bench.system import compiler
from elmo_bench.system.machine import cores

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
        self.kernels, self.width = kernels, encoder.options.projection_dim
        features, last = encoder.options.n_filters, encoder.projection
        filled = _up(features, kernels.panel // 2)
        self.weights = EncoderWeights(
            kernels.factors(encoder.characters.weight).contiguous(),
            [(width, number) for width, number in encoder.options.filters],
            encoder.options.activation == "tanh",
            features,
            filled,
            [self._filters(convolution) for convolution in encoder.convolutions],  # type: ignore[arg-type]
            [self._highway(highway, filled - features) for highway in encoder.highways],  # type: ignore[arg-type]
            [self._linear(last, filled - features)] if isinstance(last, nn.Linear) else [],
        )

    def _filters(self, convolution: nn.Conv1d) -> Linear:
        windows = F.pad(
            convolution.weight.permute(0, 2, 1), (0, convolution.in_channels % 2 if self.kernels.half else 0)
        )
        assert convolution.bias is not None
        return self._packed(windows.flatten(1), convolution.bias)

    def _highway(self, highway: Highway, missing: int) -> Linear:
        parts = highway.transform, highway.carry
        weight = self._in_turn([F.pad(part.weight, (0, missing, 0, missing)) for part in parts])
        return self._packed(weight, self._in_turn([F.pad(part.bias, (0, missing)) for part in parts]))

    def _in_turn(self, parts: list[Tensor]) -> Tensor:
        """Transform and carry, half a panel of each in turn."""
        halves = [part.unflatten(0, (-1, self.kernels.panel // 2)) for part in parts]
        return torch.stack(halves, dim=1).flatten(0, 2)

    def _linear(self, linear: nn.Linear, missing: int) -> Linear:
        return self._packed(F.pad(linear.weight, (0, missing)), linear.bias)

    def _packed(self, weight: Tensor, bias: Tensor) -> Linear:
        return self.kernels.packed(weight), F.pad(bias.detach(), (0, -len(bias) % self.kernels.panel)).contiguous()

    def __call__(self, table: np.ndarray, used: np.ndarray) -> Tensor:
        """(U, K) ids and (U,) numbers of characters that are not padding -> (U, P)."""
        threads = max(1, min(_threads(), len(table) // LEAST))
        ids, lengths = (torch.from_numpy(array.astype(np.int32)) for array in (table, used))
        return self.kernels.encode(ids, lengths, self.weights, CHUNK, threads)[:, : self.width]


class CompiledDirections:
    """Called like `Directions`, but without gradients; both directions use all of torch's threads."""

    def __init__(self, stacks: Sequence[Sequence[ProjectedLSTM]], skip: bool, kernels: Kernels):
        self.kernels, self.skip, first = kernels, skip, stacks[0][0]
        self.width, self.cells = first.projection.shape
        self.clips = (first.clips[0], first.clips[1])
        # Added to fill the last panel of outputs and the last vector of cells, and always zero.
        self.padding = -self.width % kernels.panel, -self.cells % kernels.step
        self.weights = [self._weights(layer) for layers in stacks for layer in layers]

    @torch.no_grad()
    def _weights(self, layer: ProjectedLSTM) -> Weights:
        width, cells = self.padding
        bias = layer.bias.clone()
        bias[2 * self.cells : 3 * self.cells] += FORGET_BIAS
        return Weights(
            self.kernels.packed(self._sorted(F.pad(layer.input, (0, width)))),
            self._sorted(bias[:, None])[:, 0].contiguous(),
            self.kernels.packed(self._sorted(F.pad(layer.recurrent, (0, width)))),
            self.kernels.packed(F.pad(layer.projection, (0, cells, 0, width))),
        )

    def _sorted(self, weight: Tensor) -> Tensor:
        """(4C, n), gates i, j, f, o one after another -> for each vector of cells its i, f, o, j, one after another."""
        missing, lanes = -self.cells % self.kernels.step, self.kernels.lanes
        i, j, f, o = (F.pad(gate, (0, 0, 0, missing)).unflatten(0, (-1, lanes)) for gate in weight.chunk(4))
        return torch.stack([i, f, o, j], dim=1).flatten(0, 2)

    def __call__(self, token: Tensor, packing: Packing, starts: States) -> tuple[Tensor, States]:
        h, c = (self._padded([[state[part] for state in states] for states in starts], part) for part in (0, 1))
        inside, width = packing.inside, self.width + self.padding[0]
        places = inside.new_full((len(token),), -1)
        places[inside] = torch.arange(len(inside))
        order = torch.stack([order for order, _ in packing.orders])
        layers = token.new_empty(len(inside), h.shape[1] + 1, 2, width)
        if self.padding[0]:
            token = F.pad(token, (0, self.padding[0]))
        layers[:, 0] = token.index_select(0, inside)[:, None]
        self.kernels.lstm(
            token, order, places[order], torch.tensor(packing.batch_sizes), self.weights, self.clips, self.skip, h, c,
            layers, _threads(),
        )  # fmt: skip
        h, c = h[..., : self.width], c[..., : self.cells]
        ends = [list(map(State, *direction)) for direction in zip(h, c, strict=True)]
        return layers[..., : self.width].flatten(2), ends

    def _padded(self, states: list[list[Tensor]], part: int) -> Tensor:
        """A copy of the states' h (part 0) or c (1): (2, L, B, P or C)."""
        x = torch.stack([torch.stack(direction) for direction in states])
        return F.pad(x, (0, self.padding[part])) if self.padding[part] else x


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
        stacks = [[ProjectedLSTM(24, 40, 24, 0.5, 0.2) for _ in range(2)] for _ in range(2)]
        for layer in chain(*stacks):
            layer.bias.uniform_(-1, 1)
        token, packing = torch.randn(23, 24), Packing([4, 2, 2, 4, 3, 2, 2, 2, 2])
        starts = [[State(torch.randn(9, 24), torch.randn(9, 40)) for _ in layers] for layers in stacks]
        ways = CompiledDirections(stacks, True, kernels), Directions(stacks, True)
        (layers, ends), (there, there_ends) = (way(token, packing, starts) for way in ways)
        yield _apart(layers, there)
        for states, others in zip(chain(*ends), chain(*there_ends), strict=True):
            yield from map(_apart, states, others)


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


def _threads() -> int:
    """As many as torch uses, but no more than can run at once: they wait for each other."""
    return min(torch.get_num_threads(), cores())
