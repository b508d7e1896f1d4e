"""The biLM's LSTMs without gradients: by the compiled functions (`lstm.h`), and by torch's products."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from elmo_bench.bilm.kernels.linear import FixedLinear
from elmo_bench.bilm.lstm import ProjectedLSTM, State
from elmo_bench.nn.kernels.library import Kernels, Weights
from elmo_bench.nn.kernels.threads import direction_threads, most_threads
from elmo_bench.nn.packing import Packing, blocks
from elmo_bench.nn.recurrent import FORGET_BIAS

States = list[list[State]]  # by direction, by layer


class Directions:
    """All layers of both directions.

    Args:
        stacks: for each direction its layers, which are called like a `ProjectedLSTM`.
        skip: every layer but the first adds its input to its output.
    """

    def __init__(self, stacks: Iterable[Iterable[Callable]], skip: bool):
        self.stacks, self.skip = [list(layers) for layers in stacks], skip

    def __call__(self, token: Tensor, packing: Packing, starts: States) -> tuple[Tensor, States]:
        """Runs a batch.

        Args:
            token: the token vectors, marks included, sentence by sentence; P wide.
            packing: of the batch.
            starts: states before the first step, rows in packed order.

        Returns:
            (N, L+1, 2P) layers of the N words that are not marks, and the states after each sentence, rows in packed
            order. Layer 0 is the token vector twice.
        """

        def run(direction: int) -> tuple[list[Tensor], list[State]]:
            return self._direction(direction, token, packing, starts[direction])

        (forward, forward_ends), (backward, backward_ends) = direction_threads(run, token)
        token = token[packing.inside]
        halves = [token, token, *(half for layer in zip(forward, backward, strict=True) for half in layer)]
        layers = torch.stack(halves, dim=1).unflatten(1, (-1, 2)).flatten(2)  # each number copied once
        return layers, [forward_ends, backward_ends]

    def _direction(
        self, direction: int, token: Tensor, packing: Packing, states: list[State]
    ) -> tuple[list[Tensor], list[State]]:
        """Outputs of every layer, (N, P), and the states after each sentence."""
        order, inverse = packing.orders[direction]
        words = inverse[packing.inside]
        x, outputs, ends = token[order], [], []
        for number, (layer, state) in enumerate(zip(self.stacks[direction], states, strict=True)):
            out, end = layer(x, packing.batch_sizes, state)
            x = out + x if number and self.skip else out
            outputs.append(x[words])
            ends.append(end)
        return outputs, ends


class CompiledDirections:
    """Called like `Directions`, but without gradients; both directions use all of torch's threads."""

    def __init__(self, stacks: Sequence[Iterable[ProjectedLSTM]], skip: bool, kernels: Kernels):
        layers = [layer for layers in stacks for layer in layers]
        self.kernels, self.skip, self.clips = kernels, skip, layers[0].clips
        self.width, self.cells = layers[0].projection.shape
        # Added to fill the last panel of outputs and the last vector of cells, and always zero.
        self.padding = -self.width % kernels.panel, -self.cells % kernels.step
        self.weights = [self._weights(layer) for layer in layers]

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
            layers, most_threads(),
        )  # fmt: skip
        h, c = h[..., : self.width], c[..., : self.cells]
        ends = [list(map(State, *direction)) for direction in zip(h, c, strict=True)]
        return layers[..., : self.width].flatten(2), ends

    def _padded(self, states: list[list[Tensor]], part: int) -> Tensor:
        """A copy of the states' h (part 0) or c (1): (2, L, B, P or C)."""
        x = torch.stack([torch.stack(direction) for direction in states])
        return F.pad(x, (0, self.padding[part])) if self.padding[part] else x


class FrozenLSTM:
    """One direction of one layer, as `Directions` calls it."""

    def __init__(self, layer: ProjectedLSTM):
        with torch.no_grad():
            i, j, f, o = layer.bias.chunk(4)
            self.input = FixedLinear(self._sorted(layer.input), torch.cat([i, f + FORGET_BIAS, o, j]))
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
        (h, c), running, done = state, len(state.h), 0
        for block in blocks(batch_sizes, x.device):
            products, start = self.input(x[done : done + sum(block)]), 0  # (rows, 4C)
            for n in block:
                h_last[n:running], c_last[n:running] = h[n:], c[n:]  # these ended at the previous step
                h, c = self._step(products[start : start + n], h[:n], c[:n])
                output[done : done + n] = h
                running, start, done = n, start + n, done + n
        h_last[:running], c_last[:running] = h, c
        return output, State(h_last, c_last)

    def _step(self, gates: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        gates = self.recurrent.add_to(gates, h)  # (n, 4C)
        i, f, o = gates[:, : 3 * self.dim].sigmoid_().chunk(3, dim=-1)
        c = torch.addcmul(i * gates[:, 3 * self.dim :].tanh_(), f, c).clamp_(-self.cell_clip, self.cell_clip)
        h = self.projection(torch.tanh(c).mul_(o)).clamp_(-self.proj_clip, self.proj_clip)
        return h, c
