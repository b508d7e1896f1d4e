"""One direction of one LSTM layer: projected, with both clips, over packed sequences.

Written by hand because no library has it: `torch.nn.LSTM(proj_size=...)` has neither the cell clip nor the projection
clip that the released weights were trained with, and gives other results where they clip. The input products, and in
training the weight gradients, are each one product for all steps; a step is product, cell, product.

Packed means time-major and left-aligned: rows sorted by length, longest first; step t has `batch_sizes[t]` rows; the
backward direction's sequences are reversed beforehand, so that both directions are computed alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from elmo_bench.kernels.lstm import FORGET_BIAS, State


def cell_forward(gates: Tensor, c: Tensor, clip: float) -> tuple[Tensor, Tensor]:
    """(B, 4C) pre-activations in the order i, j, f, o and (B, C) cells -> new cells and outputs before projection."""
    i, j, f, o = _precise(gates).chunk(4, dim=-1)  # each (B, C)
    c = torch.sigmoid(f + FORGET_BIAS) * c + torch.sigmoid(i) * torch.tanh(j)
    c = c.clamp(-clip, clip)
    return c, (torch.sigmoid(o) * torch.tanh(c)).to(gates.dtype)


def cell_backward(
    gates: Tensor, c_before: Tensor, c: Tensor, d_hidden: Tensor, d_c: Tensor, clip: float
) -> tuple[Tensor, Tensor]:
    """Gradients of `cell_forward`: (B, 4C) for the pre-activations, (B, C) for the cells before."""
    i, j, f, o = _precise(gates).chunk(4, dim=-1)
    i, j, f, o = torch.sigmoid(i), torch.tanh(j), torch.sigmoid(f + FORGET_BIAS), torch.sigmoid(o)
    squashed, d_hidden = torch.tanh(c), _precise(d_hidden)
    d_c = (d_c + d_hidden * o * (1 - squashed * squashed)) * (c.abs() < clip)
    d_gates = (
        d_c * j * i * (1 - i),
        d_c * i * (1 - j * j),
        d_c * c_before * f * (1 - f),
        d_hidden * squashed * o * (1 - o),
    )
    return torch.cat(d_gates, dim=-1).to(gates.dtype), d_c * f


def _precise(x: Tensor) -> Tensor:
    """Cells are stored and computed in float32 even if the products are in bfloat16."""
    return x.float() if x.dtype == torch.bfloat16 else x


class Cells(NamedTuple):
    """The two pointwise functions of a step; they can be replaced by compiled ones."""

    forward: Callable = cell_forward
    backward: Callable = cell_backward


POINTWISE = Cells()


class _Recurrence(torch.autograd.Function):
    """The time loop with gradients. The state before the first step is treated as a constant (truncated BPTT)."""

    @staticmethod
    def forward(ctx, gates_x, recurrent, projection, h0, c0, batch_sizes, clips, cells):
        cell_clip, proj_clip = clips
        h, c = h0.to(gates_x.dtype), c0
        gates, cs, hidden, hs = [], [], [], []
        h_last, c_last = torch.empty_like(h), torch.empty_like(c)
        for step in gates_x.split(batch_sizes):  # (n, 4C)
            n = len(step)
            h_last[n : len(h)], c_last[n : len(c)] = h[n:], c[n:]  # sequences that ended at the previous step
            pre = torch.addmm(step, h[:n], recurrent.t())  # (n, 4C)
            c, out = cells.forward(pre, c[:n], cell_clip)
            h = F.linear(out, projection).clamp_(-proj_clip, proj_clip)  # (n, P)
            for kept, new in zip((gates, cs, hidden, hs), (pre, c, out, h), strict=True):
                kept.append(new)
        h_last[: len(h)], c_last[: len(c)] = h, c
        output = torch.cat(hs)  # (N, P)
        ctx.save_for_backward(recurrent, projection, h0, c0, output)
        ctx.kept = gates, cs, hidden, batch_sizes, clips, cells
        ctx.mark_non_differentiable(h_last, c_last)
        return output, h_last, c_last

    @staticmethod
    @once_differentiable
    def backward(ctx, d_output, _h, _c):  # type: ignore[override]
        recurrent, projection, h0, c0, output = ctx.saved_tensors
        gates, cs, hidden, batch_sizes, (cell_clip, proj_clip), cells = ctx.kept
        hs = output.split(batch_sizes)
        d_projected = (d_output * 1).split(batch_sizes)  # a copy: the steps below add into it
        d_gates: list[Tensor] = []
        d_c = torch.zeros_like(cs[-1])
        for t in reversed(range(len(batch_sizes))):
            n = batch_sizes[t]
            if d_gates:
                following = batch_sizes[t + 1]
                d_projected[t][:following] += d_gates[-1] @ recurrent
                d_c = F.pad(d_c, (0, 0, 0, n - following)) if following < n else d_c
            d_projected[t].mul_(hs[t].abs() < proj_clip)  # (n, P)
            before = c0 if t == 0 else cs[t - 1]
            pre, d_c = cells.backward(gates[t], before[:n], cs[t], d_projected[t] @ projection, d_c, cell_clip)
            d_gates.append(pre)
        d_pre = torch.cat(d_gates[::-1])  # (N, 4C)
        earlier = (h[:n] for h, n in zip(hs, batch_sizes[1:], strict=False))
        h_before = torch.cat([h0.to(output.dtype), *earlier])  # (N, P)
        d_recurrent = d_pre.t() @ h_before  # (4C, P): one product for all steps
        d_projection = torch.cat(d_projected).t() @ torch.cat(hidden)  # (P, C)
        return d_pre, d_recurrent, d_projection, None, None, None, None, None


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
        self.clips = tuple(float("inf") if clip is None else clip for clip in (cell_clip, proj_clip))
        for weight in (self.input, self.recurrent, self.projection):
            nn.init.xavier_uniform_(weight)

    def forward(
        self, x: Tensor, batch_sizes: Sequence[int], state: State, cells: Cells = POINTWISE
    ) -> tuple[Tensor, State]:
        """Runs over packed sequences, with gradients for everything except the state.

        Args:
            x: (N, input_size) packed input, N = sum of batch_sizes; its dtype is that of the products.
            batch_sizes: number of rows of each step, never increasing.
            state: before the first step, (B, P) and (B, C) with B = batch_sizes[0].

        Returns:
            (N, P) outputs, and each sequence's state after its own last step.
        """
        dtype = x.dtype
        gates_x = F.linear(x, self.input.to(dtype), self.bias.to(dtype))  # (N, 4C)
        output, h, c = _Recurrence.apply(
            gates_x, self.recurrent.to(dtype), self.projection.to(dtype), state.h, state.c,
            list(batch_sizes), self.clips, cells,
        )  # fmt: skip
        return output, State(h, c)
