"""Deep alternating LSTM with highway connections (He et al. 2017, section 2.2; Zhang et al. 2016), made fast.

For input x_t and a layer's own output h_{t-1}, with s the logistic function:

    i, f, o, r = s(W x_t + U h_{t-1} + b)       gates, r that of the highway
    j = tanh(W x_t + U h_{t-1} + b)
    c_t = i * j + f * c_{t-1}
    h_t = (r * o * tanh(c_t) + (1 - r) * V x_t) * m        m: one dropout mask for all steps (Gal and Ghahramani 2016)

The first layer reads forward, the next backward, and so on. Written by hand because no library's LSTM has the highway.
Everything that does not depend on the step before is one product over all steps: W x and V x, and in training the
gradients of x, W, V and U. A step is then one product and the cell. Batches are packed: time-major rows, the longest
sentences first; step t holds only the sentences that reach it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
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


class _Layer(torch.autograd.Function):
    """One layer over packed rows, starting from zeros; for the arguments see `HighwayLSTM`."""

    @staticmethod
    def forward(ctx, x, weight, bias, recurrent, mask, sizes):
        hidden = recurrent.shape[1]
        once, times = step_linear(weight, F.pad(bias, (0, hidden)), len(x)), step_linear(recurrent, rows=sizes[0])
        gates, highway = once(x).split([GATES * hidden, hidden], dim=1)  # (N, 5H), (N, H)
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
        ctx.sizes = sizes
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
        d_recurrent = step_linear(earlier.t(), rows=GATES * hidden)(d_gates.t())  # (5H, H)
        d_weight = step_linear(x.t(), rows=len(weight))(d_pre.t())  # (6H, D)
        d_x = step_linear(weight.t(), rows=len(x))(d_pre) if ctx.needs_input_grad[0] else None  # (N, D)
        return d_x, d_weight, d_gates.sum(0), d_recurrent, None, None


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


class HighwayLSTM(nn.Module):
    """One layer, reading its packed rows from the first step to the last.

    Args:
        input_size: D.
        hidden_size: H.
    """

    def __init__(self, input_size: int, hidden_size: int):
        super().__init__()
        self.weight = nn.Parameter(torch.empty((GATES + 1) * hidden_size, input_size))  # W of i, f, o, r, j, then V
        self.bias = nn.Parameter(torch.zeros(GATES * hidden_size))
        self.recurrent = nn.Parameter(torch.empty(GATES * hidden_size, hidden_size))  # U
        for matrix in (*self.weight.data.chunk(GATES + 1), *self.recurrent.data.chunk(GATES)):
            nn.init.orthogonal_(matrix)
        self.bias.data.chunk(GATES)[1].fill_(1)  # f: cells remember at first

    def forward(self, x: Tensor, sizes: list[int], mask: Tensor | None = None) -> Tensor:
        """(N, D) packed rows, the sentences of each step -> (N, H); a mask (B, H) multiplies every output."""
        with torch.autocast(x.device.type, enabled=False):  # cells keep the precision of the weights
            return _Layer.apply(x.to(self.bias.dtype), self.weight, self.bias, self.recurrent, mask, sizes)


class AlternatingHighwayLSTM(nn.Module):
    """Layers that alternate between reading forward and backward, each sentence on its own: padding is never computed.

    Args:
        input_size: D.
        hidden_size: H, of every layer.
        n_layers: how many.
        dropout: on a layer's outputs, for its next step and for the next layer; one mask for all steps.
    """

    def __init__(self, input_size: int, hidden_size: int = 300, n_layers: int = 8, dropout: float = 0.1):
        super().__init__()
        sizes = [input_size, *[hidden_size] * (n_layers - 1)]
        self.layers = nn.ModuleList(HighwayLSTM(size, hidden_size) for size in sizes)
        self.dropout, self.output_size = dropout, hidden_size

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """(B, T, D), mask (B, T) bool with the words first, one or more each -> (B, T, H), zeros at padding."""
        packed = Packed.of(mask)
        h = x.flatten(0, 1)[packed.places]  # (N, D)
        for number, layer in enumerate(self.layers):
            h = h if number == 0 else h[packed.turned]
            h = layer(h, packed.sizes, self._kept(h, len(mask)))  # (N, H)
        if len(self.layers) % 2 == 0:
            h = h[packed.turned]
        out = h.new_zeros(mask.numel(), self.output_size)
        return out.index_copy(0, packed.places, h).unflatten(0, mask.shape)  # (B, T, H)

    def _kept(self, x: Tensor, n_sentences: int) -> Tensor | None:
        """The dropout mask (B, H) of zeros and 1 / (1 - dropout) in training, else None."""
        if not self.training or self.dropout == 0:
            return None
        return F.dropout(x.new_ones(n_sentences, self.output_size), self.dropout)
