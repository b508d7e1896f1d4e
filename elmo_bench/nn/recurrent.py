"""Recurrent layers over packed sentences: the steps of four cells, by compiled functions on a CPU, elsewhere by torch.

A step multiplies the state with the recurrent weights, U h, and adds the layer's products over all words, computed
before (`base`); from the sum, its cell computes the next state. The gradient of U is one product over all steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from elmo_bench.nn.kernels.library import Kernels, checked, most_threads
from elmo_bench.nn.numerics import compiled, outer

NEAR, NEAR_HALF = 1e-4, 0.1  # largest difference from torch that the check of the compiled functions accepts
SIZE = 64  # the size of a state in this check
INFINITE = float("inf")


class CellKind(NamedTuple):
    """A cell: its number in `kernels/recurrent.h`, its sizes there in multiples of the state's, and a step by torch.

    `step` takes gates = base + U h, extra, h, c (D, n, parts * H) and the bound of c; it returns h (before a
    projection) and c.
    """

    number: int
    gates: int
    others: int  # the size of `extra`: further inputs of the cell
    kept: int  # the size of the values kept for the backward pass
    step: Callable[[Tensor, Tensor, Tensor, Tensor, float], tuple[Tensor, Tensor]]


def _gru(gates: Tensor, extra: Tensor, h: Tensor, c: Tensor, clip: float) -> tuple[Tensor, Tensor]:
    """r, z = s(W x + b + U h + d), n = tanh(W x + b + r * (U h + d)), h' = n + z * (h - n) (Cho et al. 2014)."""
    (own_rz, own_n), (rz, n) = (x.split([2 * h.shape[2], h.shape[2]], dim=2) for x in (gates, extra))
    r, z = (own_rz + rz).sigmoid().chunk(2, dim=2)
    return torch.lerp(torch.addcmul(n, r, own_n).tanh(), h, z), c


def _highway(gates: Tensor, extra: Tensor, h: Tensor, c: Tensor, clip: float) -> tuple[Tensor, Tensor]:
    """c' = i * tanh(j) + f * c, h' = r * (o * tanh(c')) + (1 - r) * V x (He et al. 2017)."""
    sigmoids, j = gates.split([4 * c.shape[2], c.shape[2]], dim=2)
    i, f, o, r = sigmoids.sigmoid().chunk(4, dim=2)
    c = i * j.tanh() + f * c
    return torch.lerp(extra, o * c.tanh(), r), c


def _coupled(gates: Tensor, extra: Tensor, h: Tensor, c: Tensor, clip: float) -> tuple[Tensor, Tensor]:
    """c' = (1 - i) * c + i * tanh(j), h' = tanh(c') * o (Lee et al. 2017)."""
    i, j, o = gates.chunk(3, dim=2)
    c = torch.lerp(c, j.tanh(), i.sigmoid())
    return c.tanh() * o.sigmoid(), c


def _projected(gates: Tensor, extra: Tensor, h: Tensor, c: Tensor, clip: float) -> tuple[Tensor, Tensor]:
    """c' = f * c + i * tanh(j) within the bound; o * tanh(c') is projected. c is float32 even with 16-bit products."""
    i, j, f, o = gates.to(c.dtype).chunk(4, dim=2)
    c = torch.sigmoid(f + FORGET_BIAS) * c + torch.sigmoid(i) * torch.tanh(j)
    c = c.clamp(-clip, clip)
    return (torch.sigmoid(o) * torch.tanh(c)).to(gates.dtype), c


FORGET_BIAS = 1.0  # of the biLM's cells, added at run time, as TensorFlow's LSTMCell did for the released weights
GRU, HIGHWAY = CellKind(0, 3, 3, 4, _gru), CellKind(1, 5, 1, 6, _highway)  # gates r, z, n; i, f, o, r, j
COUPLED, PROJECTED = CellKind(2, 3, 0, 4, _coupled), CellKind(3, 4, 0, 5, _projected)  # gates i, j, o; i, j, f, o


def recurrence(
    cell: CellKind,
    base: Tensor,
    weight: Tensor,
    sizes: Sequence[int],
    h: Tensor,
    c: Tensor,
    extra: Tensor | None = None,
    mask: Tensor | None = None,
    projection: Tensor | None = None,
    clips: tuple[float, float] = (INFINITE, INFINITE),
) -> tuple[Tensor, Tensor]:
    """All steps of D directions, with gradients for every tensor except the returned cells.

    Args:
        base: (D, N, gates * H) packed rows, step after step, added to U h. Its dtype is that of the products.
        weight: U (D, gates * H, P); P is H without a projection.
        sizes: sentences of each step, never increasing, N in total.
        h, c: (D, B, P) and (D, B, H), before the first step.
        extra: (D, N, others * H), for the cells that need it.
        mask: (D, B, P), multiplies h before U does, at every step.
        projection: (D, P, H), of the cells' outputs.
        clips: bounds of c and of projected outputs.

    Returns:
        (D, N, P) h after each word, and (D, N, H) c.
    """
    extra = base.new_empty(*base.shape[:2], 0) if extra is None else extra
    half = base.dtype == torch.bfloat16
    found = kernels(half) if base.device.type == "cpu" and c.dtype == torch.float32 else None
    if found is None:
        return _by_torch(cell, base, weight, sizes, h, c, extra, mask, projection, clips)
    return _by_kernels(found, cell, base, weight, sizes, h, c, extra, mask, projection, clips)


def _by_kernels(
    kernels: Kernels, cell: CellKind, base: Tensor, weight: Tensor, sizes: Sequence[int], h: Tensor, c: Tensor,
    extra: Tensor, mask: Tensor | None, projection: Tensor | None, clips: tuple[float, float],
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """`recurrence` by the compiled functions."""
    cells, width = -c.shape[2] % kernels.step, -h.shape[2] % kernels.step  # padding of vectors, always zero
    if cells or width:
        base, extra = _filled(base, cell.gates, cells), _filled(extra, cell.others, cells)
        weight = F.pad(_filled(weight.mT, cell.gates, cells).mT, (0, width))
        h, c = F.pad(h, (0, width)), F.pad(c, (0, cells))
        mask = None if mask is None else F.pad(mask, (0, width))
        projection = None if projection is None else F.pad(projection, (0, cells, 0, width))
    given = cell, kernels, sizes, clips
    floats = (None if x is None else _plain(x) for x in (base, extra, weight, h, c, mask, projection))
    out, state = _Compiled.apply(given, *floats)  # type: ignore[misc]
    return out[..., : h.shape[2] - width].to(base.dtype), state[..., : c.shape[2] - cells]


def _plain(x: Tensor) -> Tensor:
    """Each row contiguous; rows may be parts of wider rows, or the same row."""
    return x if x.dim() == 3 and x.stride(2) == 1 else x.contiguous()


def _filled(x: Tensor, parts: int, missing: int) -> Tensor:
    """(..., parts * H), with zeros after each part."""
    if not missing or not parts:
        return x
    return F.pad(x.unflatten(-1, (parts, -1)), (0, missing)).flatten(-2)


def _by_torch(
    cell: CellKind, base: Tensor, weight: Tensor, sizes: Sequence[int], h: Tensor, c: Tensor, extra: Tensor,
    mask: Tensor | None, projection: Tensor | None, clips: tuple[float, float],
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """`recurrence` by torch's operations."""
    step, (cell_clip, clip) = compiled(cell.step, base.device), clips
    multiplied: list[Tensor] = []
    hidden: list[Tensor] = []
    base, across = _WithGradientOf.apply(base, weight, multiplied), weight.detach().mT
    if projection is not None:
        added = _WithGradientOf.apply(base.new_zeros(*base.shape[:2], h.shape[2]), projection, hidden)
        projections, down = added.split(list(sizes), dim=1), projection.detach().mT
    h, outputs, cells = h.to(base.dtype), [], []
    for t, (gates, others) in enumerate(zip(base.split(list(sizes), 1), extra.split(list(sizes), 1), strict=True)):
        n = gates.shape[1]
        if n < h.shape[1]:  # sentences have ended
            h, c, mask = h[:, :n], c[:, :n], None if mask is None else mask[:, :n]
        before = h if mask is None else h * mask
        multiplied.append(before.detach())
        h, c = step(torch.baddbmm(gates, before, across), others, h, c, cell_clip)
        if projection is not None:
            hidden.append(h.detach())
            h = torch.baddbmm(projections[t], h, down).clamp(-clip, clip)
        outputs.append(h)
        cells.append(c.detach())
    return torch.cat(outputs, dim=1), torch.cat(cells, dim=1)


class _WithGradientOf(torch.autograd.Function):
    """`base` unchanged; backward also computes the gradient of a weight whose products with some rows were added."""

    @staticmethod
    def forward(ctx: Any, base: Tensor, weight: Tensor, rows: list[Tensor]) -> Tensor:
        ctx.rows = rows  # filled in later
        return base.view_as(base)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        return gradients[0], gradients[0].mT @ torch.cat(ctx.rows, dim=1), None


# Compiled.


@cache
def kernels(half: bool = False) -> Kernels | None:
    """The compiled functions, from `library.checked`."""
    return checked(half, differences, NEAR_HALF if half else NEAR)


def differences(kernels: Kernels) -> float:
    """The largest difference of outputs and gradients from torch's, on small random input, relative to their norm."""
    most, sizes, dtype = 0.0, [3, 2, 2, 1], torch.bfloat16 if kernels.half else torch.float32
    for cell in (PROJECTED,) if kernels.half else (GRU, HIGHWAY, COUPLED, PROJECTED):
        random, gates, projected = torch.Generator().manual_seed(cell.number), cell.gates * SIZE, cell is PROJECTED
        shapes = (8, gates), (gates, SIZE), (8, cell.others * SIZE), (SIZE, SIZE), (3, SIZE), (3, SIZE), (3, SIZE)
        *leaves, h, c, mask = (torch.randn(2, *shape, generator=random).float() / 4 for shape in shapes)
        base, weight, extra, projection = leaves = [x.to(dtype).requires_grad_() for x in leaves]
        ends = extra, None if cell in (GRU, PROJECTED) else mask, projection if projected else None
        clips, ways = (INFINITE, INFINITE) if kernels.half else (0.3, 0.2), (_by_torch, partial(_by_kernels, kernels))
        found = []
        for way in ways:
            out = way(cell, base, weight, sizes, h, c, *ends, clips)[0].float()
            used = [leaf for leaf in leaves[: 4 if projected else 3] if leaf.numel()]
            found.append([out.detach(), *torch.autograd.grad(out.square().sum(), used)])
        most = max(most, *(float((x - y).norm() / x.norm()) for x, y in zip(*found, strict=True)))
    return most


ORDER = (
    "base", "extra", "h", "c", "mask", "gradient", "before", "state", "hidden", "out", "to_base", "to_extra", "to_out",
    "to_h", "to_c",
)  # fmt: skip


class _Compiled(torch.autograd.Function):
    """`recurrence` by the compiled functions, with sizes that fill vectors; kept values are float32."""

    @staticmethod
    def forward(
        ctx: Any, given: tuple, base: Tensor, extra: Tensor, weight: Tensor, h: Tensor, c: Tensor, mask: Tensor | None,
        projection: Tensor | None,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        cell, kernels = given[:2]
        ctx.given, ctx.dtype, extra, h, c = given, base.dtype, *(x.float() for x in (extra, h, c))
        h, c, mask = h.contiguous(), c.contiguous(), None if mask is None else mask.contiguous()
        (directions, words), width, size = base.shape[:2], h.shape[2], c.shape[2]
        rows = {
            "before": c.new_empty(directions, words, width),
            "state": c.new_empty(directions, words, cell.kept * size),
            "out": c.new_empty(directions, words, width),
            "hidden": None if projection is None else c.new_empty(directions, words, size),
        }
        packed = [None if x is None else [kernels.packed(one) for one in x] for x in (weight, projection)]
        _call(given, packed, {"base": base, "extra": extra, "h": h, "c": c, "mask": mask, **rows}, backward=False)
        ctx.save_for_backward(extra, weight, h, c, mask, projection, *rows.values())
        ctx.mark_non_differentiable(rows["state"])
        ctx.set_materialize_grads(False)  # zeros for the kept values would be the largest array of a step
        return rows["out"], rows["state"]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        extra, weight, h, c, mask, projection, before, state, out, hidden = ctx.saved_tensors
        kernels = ctx.given[1]
        base = before.new_empty(*before.shape[:2], weight.shape[1], dtype=ctx.dtype)
        to = {
            "to_base": base,
            "to_extra": extra.new_empty(extra.shape),
            "to_out": None if projection is None else torch.empty_like(out),
            "to_h": h.new_zeros(h.shape),
            "to_c": c.new_zeros(c.shape),
        }
        packed = [None if x is None else [kernels.packed(one.t()) for one in x] for x in (weight, projection)]
        saved = {"before": before, "state": state, "out": out, "hidden": hidden}
        given = {"base": base, "extra": extra, "h": h, "c": c, "mask": mask, "gradient": gradients[0].contiguous()}
        _call(ctx.given, packed, {**given, **saved, **to}, backward=True)
        to_weight = _product(base, before)
        to_projection = None if projection is None else _product(to["to_out"].to(ctx.dtype), hidden)
        return None, base, to["to_extra"], to_weight, to["to_h"], to["to_c"], None, to_projection


def _product(gradient: Tensor, rows: Tensor) -> Tensor:
    """(D, N, G), (D, N, P) -> (D, G, P), the gradient of a weight."""
    pairs = zip(gradient, rows.to(gradient.dtype), strict=True)
    return torch.stack([outer(one, other).contiguous() for one, other in pairs])  # `stack` is slow if transposed


def _call(given: tuple, packed: list, tensors: dict[str, Any], backward: bool) -> None:
    """The steps of each direction; the order is that of the structure in `recurrent.h`."""
    cell, kernels, sizes, clips = given
    base, extra, h, c = itemgetter("base", "extra", "h", "c")(tensors)
    starts = torch.from_numpy(np.cumsum([0, *sizes]))
    numbers = (
        cell.number, backward, len(sizes), h.shape[1], c.shape[2], h.shape[2], cell.gates, cell.others, cell.kept,
        base.stride(1), extra.stride(1),
    )  # fmt: skip
    for direction in range(len(base)):
        weights = [None if part is None else part[direction] for part in packed]
        tensor = {name: one[direction] for name, one in tensors.items() if one is not None}
        rows = [tensor[name].data_ptr() if name in tensor else 0 for name in ORDER]  # not all contiguous
        pointers = [starts, *rows[:2], weights[0], 0 if weights[1] is None else weights[1], *rows[2:]]
        kernels.call("recurrence", most_threads(), *pointers, *clips, *numbers)
