"""One LSTM layer of both directions side by side, over rows that all run through the same number of steps.

The same mathematics as `lstm.ProjectedLSTM`, whose parameters it uses. Sequences of one length need no packing, so that
results go straight into arrays of all steps; the directions do not depend on each other, so that each product and each
cell function of a step serves both; and the gradients of both gate matrices are one product.
"""

from __future__ import annotations

from collections.abc import Sequence

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
        two, rows, dim = state.c.shape
        steps = x.shape[1] // rows
        gates = torch.bmm(x, weight.mT).view(two, steps, rows, 4 * dim)  # (D, T, B, 4C)
        hs = x.new_empty(two, steps + 1, rows, projection.shape[1])  # (D, T + 1, B, P): the state before each step
        cs, hidden = state.c.new_empty(steps + 1, two, rows, dim), x.new_empty(two, steps, rows, dim)
        hs[:, 0], cs[0] = state.h, state.c
        across, down = recurrent.mT, projection.mT
        parts = (gates.unbind(1), hs.unbind(1), hs.unbind(1)[1:], cs.unbind(), cs.unbind()[1:], hidden.unbind(1))
        for gate, h, h_next, c, c_next, out in zip(*parts, strict=False):
            gate.baddbmm_(h, across)  # (D, B, 4C)
            pointwise.cell_forward(gate, bias, c, c_next, out, cell_clip)
            h_next.copy_(torch.bmm(out, down).clamp_(-proj_clip, proj_clip))
        ctx.save_for_backward(x, weight, bias, recurrent, projection, hs)
        ctx.kept = gates, cs, hidden, clips, pointwise
        last = hs[:, -1].clone(), cs[-1].clone()
        ctx.mark_non_differentiable(*last)
        return hs[:, 1:].flatten(1, 2), *last

    @staticmethod
    @once_differentiable
    def backward(ctx, d_output, _h, _c):  # type: ignore[override]
        x, weight, bias, recurrent, projection, hs = ctx.saved_tensors
        gates, cs, hidden, (cell_clip, proj_clip), pointwise = ctx.kept
        del ctx.kept  # the gates are overwritten: there is one backward pass
        d_projected = d_output.reshape(hs[:, 1:].shape).clone()  # (D, T, B, P): the steps below add into it
        inside = (hs[:, 1:].abs() < proj_clip).to(d_projected.dtype)  # (D, T, B, P)
        d_c, following = torch.zeros_like(cs[0]), None
        parts = (gates.unbind(1), d_projected.unbind(1), inside.unbind(1), cs.unbind()[:-1], cs.unbind()[1:])
        for gate, d_h, kept, before, c in zip(*(part[::-1] for part in parts), strict=True):
            if following is not None:
                d_h.baddbmm_(following, recurrent)
            d_hidden = torch.bmm(d_h.mul_(kept), projection)  # (D, B, C)
            d_c = pointwise.cell_backward(gate, bias, before, c, d_hidden, d_c, cell_clip)
            following = gate
        d_pre = gates.flatten(1, 2)  # (D, N, 4C)
        read = torch.cat([x, hs[:, :-1].flatten(1, 2)], dim=2)  # (D, N, I + P)
        d_input, d_recurrent = torch.bmm(d_pre.mT, read).split([x.shape[2], hs.shape[3]], dim=2)
        d_projection = torch.bmm(d_projected.flatten(1, 2).mT, hidden.flatten(1, 2))  # (D, P, C)
        d_bias = torch.stack([column_sums(part) for part in d_pre])[:, None].float()  # (D, 1, 4C)
        return torch.bmm(d_pre, weight), d_input, d_bias, d_recurrent, d_projection, None, None, None


def column_sums(x: Tensor) -> Tensor:
    """(N, K) -> (K,) by a product, the fastest way for bfloat16 on a CPU."""
    return x.new_ones(len(x)) @ x


def run(
    layers: Sequence[ProjectedLSTM], x: Tensor, states: Sequence[State], pointwise: Pointwise = EAGER
) -> tuple[Tensor, list[State]]:
    """Runs the same layer of all D directions over (D, T * B, I) time-major input, whose dtype is the products'.

    Returns:
        (D, T * B, P) outputs and the states after the last step; gradients flow to everything but the states.
    """
    names = ("input", "recurrent", "projection")
    parts = ([getattr(layer, name) for layer in layers] for name in names)
    bias = torch.stack([layer.bias for layer in layers])[:, None]  # (D, 1, 4C)
    state = State(torch.stack([state.h for state in states]), torch.stack([state.c for state in states]))
    weight, recurrent, projection = (torch.stack([each.to(x.dtype) for each in part]) for part in parts)
    output, h, c = _Recurrence.apply(x, weight, bias, recurrent, projection, state, layers[0].clips, pointwise)
    return output, [State(*pair) for pair in zip(h, c, strict=True)]
