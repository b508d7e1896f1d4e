"""One direction of one LSTM layer: projected, with both clips, over packed sequences.

Written by hand because no library has it: `torch.nn.LSTM(proj_size=...)` has neither the cell clip nor the projection
clip that the released weights were trained with, and gives other results where they clip. The input products are one
product for all steps; a step is product, cell, product.

Packed means time-major and left-aligned: rows sorted by length, longest first; step t has `batch_sizes[t]` rows; the
backward direction's sequences are reversed beforehand, so that both directions are computed alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

FORGET_BIAS = 1.0  # added at run time, as TensorFlow's LSTMCell did for the released weights


class State(NamedTuple):
    """State of one direction of one layer, one row per sequence."""

    h: Tensor  # (B, P) projected and clipped output
    c: Tensor  # (B, C) clipped cell


def cell(gates: Tensor, c: Tensor, clip: float) -> tuple[Tensor, Tensor]:
    """(B, 4C) pre-activations in the order i, j, f, o and (B, C) cells -> new cells and outputs before projection.

    Cells are stored and computed in float32 even if the products are in bfloat16.
    """
    precise = gates.float() if gates.dtype == torch.bfloat16 else gates
    i, j, f, o = precise.chunk(4, dim=-1)  # each (B, C)
    c = torch.sigmoid(f + FORGET_BIAS) * c + torch.sigmoid(i) * torch.tanh(j)
    c = c.clamp(-clip, clip)
    return c, (torch.sigmoid(o) * torch.tanh(c)).to(gates.dtype)


class Shared(torch.autograd.Function):
    """A parameter in the type of the products, at one of its uses: the gradients of all uses are summed in float32."""

    @staticmethod
    def forward(ctx: Any, parameter: Tensor, converted: Tensor) -> Tensor:
        return converted.view_as(converted)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:  # type: ignore[override]
        return gradient.float(), None


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

    def forward(
        self, x: Tensor, batch_sizes: Sequence[int], state: State, cell: Callable[..., tuple[Tensor, Tensor]] = cell
    ) -> tuple[Tensor, State]:
        """Runs over packed sequences, with gradients for everything except the state (truncated BPTT).

        Args:
            x: (N, input_size) packed input, N = sum of batch_sizes; its dtype is that of the products.
            batch_sizes: number of rows of each step, never increasing.
            state: before the first step, (B, P) and (B, C) with B = batch_sizes[0].
            cell: the function of that name, or the same compiled.

        Returns:
            (N, P) outputs, and each sequence's state after its own last step.
        """
        weight, bias = self.input.to(x.dtype), self.bias.to(x.dtype)
        recurrent, projection = (self._shared(each, x.dtype) for each in (self.recurrent, self.projection))
        cell_clip, proj_clip = self.clips
        h, c = state.h.detach().to(x.dtype), state.c.detach()
        outputs, ended = [], []
        for step in F.linear(x, weight, bias).split(list(batch_sizes)):  # (n, 4C)
            n = len(step)
            if n < len(h):  # sequences that ended at the previous step
                ended.append((h[n:], c[n:]))
                h, c = h[:n], c[:n]
            c, out = cell(torch.addmm(step, h, recurrent().t()), c, cell_clip)
            h = F.linear(out, projection()).clamp(-proj_clip, proj_clip)  # (n, P)
            outputs.append(h)
        last = zip((h, c), *reversed(ended), strict=True)
        return torch.cat(outputs), State(*(torch.cat(parts).detach() for parts in last))

    @staticmethod
    def _shared(parameter: nn.Parameter, dtype: torch.dtype) -> Callable[[], Tensor]:
        """Gives the parameter in this type for a step."""
        if parameter.dtype == dtype:
            return lambda: parameter
        converted = parameter.detach().to(dtype)
        return lambda: Shared.apply(parameter, converted)  # type: ignore[no-any-return]
