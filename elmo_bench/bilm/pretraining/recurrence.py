"""One direction of one LSTM layer over rows with the same number of steps, as in training.

Computes the same as `lstm.ProjectedLSTM`, whose parameters it uses; sequences of equal length need no packing, so that
results are written directly into arrays of all steps, and the gradients of both gate matrices are one product.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from elmo_bench.bilm.lstm import ProjectedLSTM, State
from elmo_bench.bilm.pretraining.pointwise import EAGER, Pointwise


class _Recurrence(torch.autograd.Function):
    """The layer with gradients. The state before the first step is treated as a constant (truncated BPTT)."""

    @staticmethod
    def forward(ctx, x, weight, bias, recurrent, projection, state, clips, pointwise):  # type: ignore[override]
        cell_clip, proj_clip = clips
        steps, (rows, dim) = len(x) // len(state.h), state.c.shape
        gates = (x @ weight.t()).view(steps, rows, 4 * dim)  # (T, B, 4C)
        hs = x.new_empty(steps + 1, rows, len(projection))  # (T + 1, B, P): the state before each step
        cs, hidden = state.c.new_empty(steps + 1, rows, dim), x.new_empty(steps, rows, dim)
        hs[0], cs[0] = state.h, state.c
        across, down = recurrent.t(), projection.t()
        for gate, h, h_next, c, c_next, out in zip(gates, hs, hs[1:], cs, cs[1:], hidden, strict=False):
            gate.addmm_(h, across)  # (B, 4C)
            pointwise.cell_forward(gate, bias, c, c_next, out, cell_clip)
            torch.mm(out, down, out=h_next).clamp_(-proj_clip, proj_clip)
        ctx.save_for_backward(x, weight, bias, recurrent, projection, hs)
        ctx.kept = gates, cs, hidden, clips, pointwise
        last = hs[-1].clone(), cs[-1].clone()
        ctx.mark_non_differentiable(*last)
        return hs[1:].flatten(0, 1), *last

    @staticmethod
    @once_differentiable
    def backward(ctx, d_output, _h, _c):  # type: ignore[override]
        x, weight, bias, recurrent, projection, hs = ctx.saved_tensors
        gates, cs, hidden, (cell_clip, proj_clip), pointwise = ctx.kept
        del ctx.kept  # the gates are overwritten: only one backward pass is possible
        d_projected = d_output.reshape(hs[1:].shape).clone()  # (T, B, P): the steps below add into it
        inside = (hs[1:].abs() < proj_clip).to(d_projected.dtype)  # (T, B, P)
        d_c, following = torch.zeros_like(cs[0]), None
        parts = (gates, d_projected, inside, cs[:-1], cs[1:])
        steps = zip(*(reversed(part.unbind()) for part in parts), strict=True)
        for gate, d_h, kept, before, c in steps:
            if following is not None:
                d_h.addmm_(following, recurrent)
            d_hidden = d_h.mul_(kept) @ projection  # (B, C)
            d_c = pointwise.cell_backward(gate, bias, before, c, d_hidden, d_c, cell_clip)
            following = gate
        d_pre = gates.flatten(0, 1)  # (N, 4C)
        read = torch.cat([x, hs[:-1].flatten(0, 1)], dim=1)  # (N, I + P)
        d_input, d_recurrent = (d_pre.t() @ read).split([x.shape[1], hs.shape[2]], dim=1)  # (4C, I), (4C, P)
        d_projection = d_projected.flatten(0, 1).t() @ hidden.flatten(0, 1)  # (P, C)
        return d_pre @ weight, d_input, column_sums(d_pre).float(), d_recurrent, d_projection, None, None, None


def column_sums(x: Tensor) -> Tensor:
    """(N, K) -> (K,) by a product, the fastest way for bfloat16 on a CPU."""
    return x.new_ones(len(x)) @ x


def run(layer: ProjectedLSTM, x: Tensor, state: State, pointwise: Pointwise = EAGER) -> tuple[Tensor, State]:
    """Runs a layer over (T * B, I) time-major input whose dtype is that of the products.

    Returns:
        (T * B, P) outputs and the state after the last step; gradients flow to everything except the state.
    """
    dtype = x.dtype
    output, h, c = _Recurrence.apply(
        x, layer.input.to(dtype), layer.bias, layer.recurrent.to(dtype), layer.projection.to(dtype),
        state, layer.clips, pointwise,
    )  # fmt: skip
    return output, State(h, c)
