"""Layers with a dropout mask on h, by the compiled time loops (`kernels.cpp`): the coupled and the highway LSTM.

One product computes what the input of all words gives to each direction, and one each the gradients of the input and
of the weights.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from elmo_bench.nn.packed_linear import once
from elmo_bench.nn.recurrent import Loops, side_by_side


class Layer(NamedTuple):
    """The loops of a layer, over words without padding."""

    loops: Loops
    sides: tuple[int, ...]  # directions that it has: 0 reads forward, 1 backward


def masked_loops(
    layer: Layer,
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    recurrent: Tensor,
    initial: Tensor | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """(N, D) -> (N, S H), the outputs of the S directions side by side.

    Args:
        layer: the loops.
        x: words on the CPU, float32 or, where the loops have a `half`, of 16 bits.
        weight: (S I H, D), for each direction what the input gives to its gates, and to the highway.
        bias: (S I H,).
        recurrent: (S, G H, H), from h to the gates.
        initial: (S, 2, H), cell and h before the first step; default: zeros.
        mask: (S, B, H) of dropout, the longest sentences first; default: none.
    """
    given = [each if each is None else each.contiguous() for each in (initial, mask)]
    return _MaskedLoops.apply(layer, x, weight, bias, recurrent.contiguous(), *given)  # type: ignore[return-value]


class _MaskedLoops(torch.autograd.Function):
    """`masked_loops`; all that is given is contiguous."""

    @staticmethod
    def forward(
        ctx: Any,
        layer: Layer,
        x: Tensor,
        weight: Tensor,
        bias: Tensor,
        recurrent: Tensor,
        initial: Tensor | None,
        mask: Tensor | None,
    ) -> Tensor:
        sides, size = len(layer.sides), recurrent.shape[2]
        x = x if layer.loops.half is None else x.to(layer.loops.half)
        gates = once(x, weight.t(), bias, layer.loops.half)  # (N, S I H)
        y, kept, before = gates.new_empty(len(x), sides * size), *gates.new_empty(2, sides, len(x), size)  # (N, S H)

        def run(i: int) -> None:
            inputs, states = (_part(gates, i, sides), gates.shape[1]), (kept[i], before[i])
            outputs = _part(y, i, sides), y.shape[1]
            optional = {"mask": _of(mask, i), "initial": _of(initial, i)}
            layer.loops.call("ahead", layer.sides[i], recurrent[i], None, size, *inputs, *states, *outputs, **optional)

        side_by_side(run, sides)
        ctx.save_for_backward(x, weight, recurrent, initial, mask, gates, kept, before)
        ctx.layer = layer
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, recurrent, initial, mask, gates, kept, before = ctx.saved_tensors
        layer, d_y, d = ctx.layer, gradients[0].contiguous(), torch.empty_like(gates)
        d_initial = None if initial is None else torch.zeros_like(initial)
        sides, size = len(recurrent), recurrent.shape[2]

        def run(i: int) -> None:
            inputs, states = (_part(gates, i, sides), gates.shape[1]), (kept[i], before[i])
            given, found = (_part(d_y, i, sides), d_y.shape[1]), _part(d, i, sides)
            results = found, found, _of(d_initial, i)
            optional = {"mask": _of(mask, i), "initial": _of(initial, i)}
            layer.loops.call("back", layer.sides[i], recurrent[i], size, *inputs, *states, *given, *results, **optional)

        side_by_side(run, sides)
        to_gates = [_part(d, i, sides)[:, : recurrent.shape[1]] for i in range(sides)]  # (N, G H) each
        half = layer.loops.half
        d_recurrent = torch.stack([once(each.t(), h, half=half) for each, h in zip(to_gates, before, strict=True)])
        d_x = once(d, weight, half=half) if ctx.needs_input_grad[1] else None
        return None, d_x, once(d.t(), x, half=half), d.sum(0), d_recurrent, d_initial, None


def _part(x: Tensor, i: int, sides: int) -> Tensor:
    """Of (N, S n) the columns (N, n) of a direction."""
    return x.chunk(sides, dim=1)[i]


def _of(x: Tensor | None, i: int) -> Tensor | None:
    return None if x is None else x[i]
