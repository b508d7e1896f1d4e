"""The coupled LSTM of Lee et al. 2017 by torch: for where the compiled loops do not serve, and to check them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from elmo_bench.nn.devices import on_device
from elmo_bench.nn.packing import Packing

sigmoid_backward = torch.ops.aten.sigmoid_backward.grad_input
tanh_backward = torch.ops.aten.tanh_backward.grad_input


class Order(NamedTuple):
    """Where N words stand in packed rows: step after step, in each the forward direction before the backward one."""

    rows: Tensor  # (2N,) for each packed row 2 * word + direction
    places: Tensor  # (2N,) its inverse: the packed row of each word and direction
    sizes: list[int]  # sentences that reach each step, non-increasing

    @classmethod
    def of(cls, lengths: Sequence[int], device: torch.device) -> Order:
        packing = Packing(lengths)  # on the CPU: a GPU need not be waited for
        forward, backward = (words.numpy() for words, _ in packing.orders)  # (N,) each
        n = np.array(packing.batch_sizes, dtype=np.int64)
        first = np.arange(n.sum()) + np.repeat(n.cumsum() - n, n)  # (N,) rows of the forward words
        rows = np.empty(2 * len(forward), dtype=np.int64)
        rows[first], rows[first + np.repeat(n, n)] = 2 * forward, 2 * backward + 1
        packed, places = (on_device(x, device) for x in (rows, rows.argsort()))
        return cls(packed, places, packing.batch_sizes)

    def steps(self, x: Tensor) -> list[Tensor]:
        """Packed rows (2N, D) -> a view (2, n, D) for each step."""
        return [rows.view(2, -1, x.shape[1]) for rows in x.split([2 * n for n in self.sizes])]


class Steps(torch.autograd.Function):
    """All steps: products (N, 6H), recurrent (2, H, 3H), initial (2, 2, 1, H), mask (2, B, H) of h or None -> (N, 2H).

    Autograd's gradients would be several times as many operations, and a product for the weights in every step.
    """

    @staticmethod
    def forward(ctx, products, recurrent, initial, kept, order):
        hidden = recurrent.shape[1]
        gates = products.view(-1, 3 * hidden).index_select(0, order.rows)  # (2N, 3H)
        states = [gates.new_empty(len(gates), hidden) for _ in range(4)]  # (2N, H): h as read, c, tanh(c), h
        c, h = (state.expand(2, order.sizes[0], -1) for state in initial.unbind(1))  # (2, B, H)
        for pre, read, cell, squashed, output in zip(*map(order.steps, (gates, *states)), strict=True):
            n = pre.shape[1]
            _masked(h[:, :n], kept, read)
            i, j, o = pre.baddbmm_(read, recurrent).chunk(3, dim=2)
            c = torch.lerp(c[:, :n], j.tanh_(), i.sigmoid_(), out=cell)  # (2, n, H)
            h = torch.mul(torch.tanh(c, out=squashed), o.sigmoid_(), out=output)
        ctx.save_for_backward(recurrent, initial, kept, gates, *states[:3])
        ctx.order = order
        return states[3].index_select(0, order.places).view(len(products), -1)

    @staticmethod
    @once_differentiable
    def backward(ctx, d_output):  # type: ignore[override]
        recurrent, initial, kept, gates, read, cells, squashed = ctx.saved_tensors
        order, hidden = ctx.order, recurrent.shape[1]
        back, d_gates = recurrent.mT.contiguous(), torch.empty_like(gates)  # (2, 3H, H), (2N, 3H)
        d_outputs = d_output.reshape(-1, hidden).index_select(0, order.rows)  # (2N, H)
        before = [initial[:, 0].expand(2, order.sizes[0], -1), *order.steps(cells)]
        parts = zip(*map(order.steps, (d_outputs, gates, squashed, d_gates)), before, strict=False)
        d_h = d_c = gates.new_zeros(2, 0, hidden)
        for d_here, activated, tanh, d_pre, c in reversed(list(parts)):
            d_here[:, : d_h.shape[1]] += d_h
            d_c = _cell_backward(activated, c[:, : d_here.shape[1]], tanh, d_here, d_c, d_pre)
            d_h = torch.bmm(d_pre, back)  # (2, n, H)
            _masked(d_h, kept, d_h)
        d_initial = torch.stack([d_c.sum(1, keepdim=True), d_h.sum(1, keepdim=True)], dim=1)
        d_words, read = (x.index_select(0, order.places).view(-1, 2, x.shape[1]) for x in (d_gates, read))
        d_recurrent = torch.stack([read[:, side].t() @ d_words[:, side] for side in (0, 1)])  # (2, H, 3H)
        return d_words.flatten(1), d_recurrent, d_initial, None, None


def _cell_backward(gates: Tensor, before: Tensor, tanh_c: Tensor, d_h: Tensor, d_c: Tensor, d_pre: Tensor) -> Tensor:
    """Gradients of one step: fills d_pre (2, n, 3H) and returns the gradient of the cells before it (2, n, H).

    gates are taken after their activations; d_c comes from the following step and may have fewer sentences.
    """
    i, j, o = gates.chunk(3, dim=2)
    d_i, d_j, d_o = d_pre.chunk(3, dim=2)
    d_cell = torch.ops.aten.tanh_backward(d_h * o, tanh_c)
    d_cell[:, : d_c.shape[1]] += d_c
    sigmoid_backward(torch.sub(j, before, out=d_i).mul_(d_cell), i, grad_input=d_i)
    sigmoid_backward(torch.mul(d_h, tanh_c, out=d_o), o, grad_input=d_o)
    d_cell -= torch.mul(d_cell, i, out=d_j)
    tanh_backward(d_j, j, grad_input=d_j)
    return d_cell


def _masked(x: Tensor, kept: Tensor | None, out: Tensor) -> None:
    """Writes x (2, n, H), times the mask (2, B, H) if there is one, to `out`."""
    if kept is not None:
        torch.mul(x, kept[:, : x.shape[1]], out=out)
    elif out is not x:
        out.copy_(x)
