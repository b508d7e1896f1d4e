"""One direction of one LSTM layer: projected, with both clips, over packed sequences.

Written by hand because no library has it: `torch.nn.LSTM(proj_size=...)` lacks the cell clip and the projection clip
that the released weights were trained with, so its results differ when values are clipped. The input of all steps is
multiplied in one product; a step is product, cell, product.

Packed means time-major and left-aligned: rows sorted by length, longest first; step t has `batch_sizes[t]` rows; the
backward direction's sequences are reversed beforehand, so that both directions are computed alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from elmo_bench.nn.kernels.library import direction_threads
from elmo_bench.nn.numerics import linear
from elmo_bench.nn.packing import Packing, on_device
from elmo_bench.nn.recurrent import PROJECTED, recurrence


class State(NamedTuple):
    """State, one row per sequence: of one direction of one layer, or of all L layers of both, as (2, L, B, ...)."""

    h: Tensor  # (..., B, P) projected and clipped output
    c: Tensor  # (..., B, C) clipped cell


class ProjectedLSTM(nn.Module):
    """One direction of one layer.

    Args:
        input_size: width of the input.
        dim: C, cells.
        projection_dim: P, width of the projected output.
        cell_clip, proj_clip: bounds on cells and outputs; None: no bound.
    """

    def __init__(
        self, input_size: int, dim: int, projection_dim: int, cell_clip: float | None, proj_clip: float | None
    ):
        super().__init__()
        self.input = nn.Parameter(torch.empty(4 * dim, input_size))  # gates in the order i, j, f, o
        self.recurrent = nn.Parameter(torch.empty(4 * dim, projection_dim))
        self.bias = nn.Parameter(torch.zeros(4 * dim))
        self.projection = nn.Parameter(torch.empty(projection_dim, dim))
        infinite = float("inf")
        self.clips = infinite if cell_clip is None else cell_clip, infinite if proj_clip is None else proj_clip
        for weight in (self.input, self.recurrent, self.projection):
            nn.init.xavier_uniform_(weight)

    def forward(self, x: Tensor, batch_sizes: Sequence[int], state: State) -> tuple[Tensor, State]:
        """Runs over packed sequences, with gradients for everything except the state (truncated BPTT).

        Args:
            x: (N, input_size) packed input, N = sum of batch_sizes; its dtype is that of the products.
            batch_sizes: number of rows of each step, never increasing.
            state: before the first step, (B, P) and (B, C) with B = batch_sizes[0].

        Returns:
            (N, P) outputs, and each sequence's state after its own last step.
        """
        input, bias, recurrent, projection = (
            each.to(x.dtype) for each in (self.input, self.bias, self.recurrent, self.projection)
        )
        base, start = linear(x, input, bias), (state.h.detach()[None], state.c.detach()[None])
        outputs, cells = recurrence(
            PROJECTED, base[None], recurrent[None], batch_sizes, *start, projection=projection[None], clips=self.clips
        )
        steps = np.asarray(batch_sizes)
        lengths = (steps[:, None] > np.arange(steps[0])).sum(0)  # (B,)
        last = on_device((np.cumsum(steps) - steps)[lengths - 1] + np.arange(steps[0]), x.device)
        return outputs[0], State(outputs[0, last].detach(), cells[0, last])


class Directions:
    """All layers of both directions.

    Args:
        stacks: for each direction its layers, which are called like a `ProjectedLSTM`.
        skip: every layer but the first adds its input to its output.
    """

    def __init__(self, stacks: Iterable[Iterable[Callable]], skip: bool):
        self.stacks, self.skip = [list(layers) for layers in stacks], skip

    def __call__(self, token: Tensor, packing: Packing, starts: State) -> tuple[Tensor, State]:
        """Runs a batch.

        Args:
            token: the token vectors, marks included, sentence by sentence; P wide.
            packing: the packing of the batch.
            starts: states before the first step, rows in packed order.

        Returns:
            (N, L+1, 2P) layers of the N words that are not marks, and the states after each sentence, rows in packed
            order. Layer 0 is the token vector twice.
        """

        def run(direction: int) -> tuple[list[Tensor], State]:
            return self._direction(direction, token, packing, starts)

        (forward, forward_ends), (backward, backward_ends) = direction_threads(run, token)
        token = token[packing.inside]
        halves = [token, token, *(half for layer in zip(forward, backward, strict=True) for half in layer)]
        layers = torch.stack(halves, dim=1).unflatten(1, (-1, 2)).flatten(2)  # each number copied once
        return layers, State(*map(torch.stack, zip(forward_ends, backward_ends, strict=True)))

    def _direction(self, direction: int, token: Tensor, packing: Packing, starts: State) -> tuple[list[Tensor], State]:
        """Outputs of every layer, (N, P), and the states after each sentence, (L, B, ...)."""
        order, inverse = packing.orders[direction]
        words = inverse[packing.inside]
        x, outputs, ends = token[order], [], []
        for number, layer in enumerate(self.stacks[direction]):
            out, end = layer(x, packing.batch_sizes, State(*(part[direction, number] for part in starts)))
            x = out + x if number and self.skip else out
            outputs.append(x[words])
            ends.append(end)
        return outputs, State(*map(torch.stack, zip(*ends, strict=True)))
