"""The highway LSTM by torch: for where the compiled loops do not serve, and to check them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from elmo_bench.nn.packed_linear import step_linear

GATES = 5  # i, f, o, r, j


class Packed(NamedTuple):
    """The packed order of the words of a padded batch; N words, B sentences, T steps."""

    places: Tensor  # (N,) into the padded batch, flattened (B * T)
    turned: Tensor  # (N,) the packed place of the word as far from the sentence's end; its own inverse
    sizes: list[int]  # sentences that reach each step, non-increasing

    @classmethod
    def of(cls, mask: Tensor) -> Packed:
        """For a mask (B, T), true on words, which come first."""
        lengths, rows = mask.sum(1).sort(descending=True, stable=True)  # (B,) each
        steps = torch.arange(int(lengths[0]), device=mask.device).unsqueeze(1)  # (T, 1)
        reached = steps < lengths  # (T, B)
        sizes = reached.sum(1)  # (T,)
        starts = sizes.cumsum(0) - sizes  # (T,)
        column = torch.arange(len(lengths), device=mask.device)
        mirrored = (lengths - 1 - steps).clamp(min=0)  # (T, B)
        turned = (starts[mirrored] + column)[reached]
        return cls((rows * mask.shape[1] + steps)[reached], turned, sizes.tolist())


class Steps(torch.autograd.Function):
    """One layer over packed rows, starting from zeros; for the arguments see `HighwayLSTM`.

    The products over all steps take operands of the type `half`, if it is given; those of a step are too small for it.
    """

    @staticmethod
    def forward(ctx, x, weight, bias, recurrent, mask, sizes, half=None):
        hidden = recurrent.shape[1]
        times, inputs = step_linear(recurrent, rows=sizes[0]), _product(x, weight, half, F.pad(bias, (0, hidden)))
        gates, highway = inputs.split([GATES * hidden, hidden], dim=1)  # (N, 5H), (N, H)
        cells, squashed, output = (x.new_empty(len(x), hidden) for _ in range(3))
        h = c = x.new_zeros(sizes[0], hidden)
        for step, n in zip(_steps(sizes), sizes, strict=True):
            pre = gates[step]  # (n, 5H), replaced by the gates themselves
            if step.start:
                times.add_into(pre, h[:n])
            sigmoids, j = pre.split([4 * hidden, hidden], dim=1)
            i, f, o, r = sigmoids.sigmoid_().chunk(4, dim=1)  # (n, H) each
            c = torch.mul(f, c[:n], out=cells[step]).addcmul_(i, j.tanh_())
            h = torch.lerp(highway[step], o * torch.tanh(c, out=squashed[step]), r, out=output[step])
            if mask is not None:
                h.mul_(mask[:n])
        ctx.save_for_backward(x, weight, recurrent, mask, gates, highway, cells, squashed, output)
        ctx.sizes, ctx.half = sizes, half
        return output

    @staticmethod
    @once_differentiable
    def backward(ctx, d_output):  # type: ignore[override]
        x, weight, recurrent, mask, gates, highway, cells, squashed, output = ctx.saved_tensors
        hidden, sizes = recurrent.shape[1], ctx.sizes
        steps = list(_steps(sizes))
        times = step_linear(recurrent.t(), rows=sizes[0])
        d_pre = x.new_empty(len(x), (GATES + 1) * hidden)  # (N, 6H)
        d_h = d_c = x.new_zeros(0, hidden)  # gradients from the following step
        for t in reversed(range(len(sizes))):
            step, n = steps[t], sizes[t]
            d_total = d_output[step].clone()  # (n, H)
            d_total[: len(d_h)] += d_h
            if mask is not None:
                d_total *= mask[:n]
            c_before = cells[steps[t - 1]][:n] if t else None
            d_c = _cell_backward(gates[step], highway[step], squashed[step], c_before, d_total, d_c, d_pre[step])
            if t:
                d_h = times(d_pre[step, : GATES * hidden])
        before = [output[step][:n] for step, n in zip(steps, sizes[1:], strict=False)]
        earlier = torch.cat([x.new_zeros(sizes[0], hidden), *before])  # (N, H) the h that each step read
        d_gates = d_pre[:, : GATES * hidden]
        d_recurrent = _product(d_gates.t(), earlier.t(), ctx.half)  # (5H, H)
        d_weight = _product(d_pre.t(), x.t(), ctx.half)  # (6H, D)
        d_x = _product(d_pre, weight.t(), ctx.half) if ctx.needs_input_grad[0] else None  # (N, D)
        return d_x, d_weight, d_gates.sum(0), d_recurrent, None, None, None


def _product(x: Tensor, weight: Tensor, half: torch.dtype | None, bias: Tensor | None = None) -> Tensor:
    """(N, K), (M, K) -> x W^T + b (N, M), in the type of x; the operands are rounded to `half`, if it is given."""
    if half is None:
        return step_linear(weight, bias, len(x))(x)
    product = torch.mm(x.to(half), weight.to(half).t()).to(x.dtype)
    return product if bias is None else product.add_(bias)


def _cell_backward(
    gates: Tensor, highway: Tensor, tanh_c: Tensor, c_before: Tensor | None, d_h: Tensor, d_c: Tensor, d_pre: Tensor
) -> Tensor:
    """Gradients of one step: fills d_pre (n, 6H) and returns the gradient of the cells before it (n, H).

    gates (n, 5H) are taken after their activations; d_c comes from the following step and may have fewer rows; a
    c_before of None means zeros.
    """
    hidden = highway.shape[1]
    i, f, o, r, j = gates.chunk(GATES, dim=1)  # (n, H) each
    d_i, d_f, d_o, d_r, d_j, d_highway = d_pre.chunk(GATES + 1, dim=1)
    d_hidden = d_h * r  # of o * tanh(c)
    torch.sub(d_h, d_hidden, out=d_highway)
    torch.mul(d_hidden, tanh_c, out=d_o)
    torch.mul(torch.addcmul(highway, o, tanh_c, value=-1), d_h, out=d_r).neg_()
    d_cell = torch.ops.aten.tanh_backward(d_hidden.mul_(o), tanh_c)
    d_cell[: len(d_c)] += d_c
    torch.mul(d_cell, j, out=d_i)
    torch.mul(d_cell, i, out=d_j)
    if c_before is None:
        d_f.zero_()
    else:
        torch.mul(d_cell, c_before, out=d_f)
    sigmoids = slice(0, 4 * hidden)
    torch.ops.aten.sigmoid_backward.grad_input(d_pre[:, sigmoids], gates[:, sigmoids], grad_input=d_pre[:, sigmoids])
    torch.ops.aten.tanh_backward.grad_input(d_j, j, grad_input=d_j)
    return d_cell.mul_(f)


def _steps(sizes: list[int]) -> Iterator[slice]:
    """The packed rows of each step."""
    start = 0
    for size in sizes:
        yield slice(start, start + size)
        start += size
