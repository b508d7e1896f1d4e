"""Both directions of an LSTM or a GRU over packed words, by the compiled time loops (`kernels.cpp`).

All that does not depend on the step before is one product over all words of both directions: that of the input, and in
training the gradients of the input and of each weight.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from elmo_bench.nn.kernels import Kernels
from elmo_bench.nn.packed_linear import once
from elmo_bench.nn.packing import Packing
from elmo_bench.nn.precision import half

NAMES = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")


class Cell(NamedTuple):
    """A kind of cell."""

    name: str  # of its functions
    apart: bool  # whether the recurrent product of the last gate has a bias of its own


LSTM, GRU = Cell("lstm", False), Cell("gru", True)
COUPLED, HIGHWAY = Cell("coupled", False), Cell("highway", False)


class Words(NamedTuple):
    """The N words of one or more padded batches, and the order in which each direction reads them."""

    among: Tensor  # (N,) places of the words among the P of the padded batches, flattened (B * T), one after another
    padding: Tensor  # (P - N,) the other places
    rows: list[Tensor]  # for each direction (N,) words, the backward one from the ends of the sentences
    places: list[Tensor]  # the same among the P places
    sizes: Tensor  # (steps,) sentences that reach each step, never increasing

    @classmethod
    def of(cls, *masks: Tensor) -> Words:
        """masks (B, T) bool with the words first."""
        words = cls.unpadded([length for mask in masks for length in mask.sum(1).tolist()])
        inside = torch.cat([mask.flatten() for mask in masks])  # (P,)
        among, padding = (each.nonzero().squeeze(1) for each in (inside, ~inside))
        return words._replace(among=among, padding=padding, places=[among[each] for each in words.rows])

    @classmethod
    def unpadded(cls, lengths: Sequence[int]) -> Words:
        """The words of sentences of these lengths, one after another."""
        packing = Packing(lengths)
        rows = [order for order, _ in packing.orders]
        every, none = torch.arange(sum(lengths)), torch.empty(0, dtype=torch.long)
        return cls(every, none, rows, rows, torch.tensor(packing.batch_sizes))


class Loops(NamedTuple):
    """The loops over time of both directions."""

    cell: Cell
    kernels: Kernels
    words: Words
    half: torch.dtype | None = None  # under autocast, of the products over all words; cells take float32

    def call(
        self,
        name: str,
        side: int,
        *arguments: Tensor | int | None,
        mask: Tensor | None = None,
        initial: Tensor | None = None,
    ) -> None:
        """One direction of the function `name`, "ahead" or "back"; see `kernels.cpp`."""
        words = self.words
        order = words.rows[side], words.places[side], words.sizes, len(words.sizes)
        self.kernels.call(f"{self.cell.name}_{name}", *order, mask, initial, *arguments)


def both_directions(
    cell: Cell, kernels: Kernels, batches: Sequence[tuple[Tensor, Tensor]], layers: Sequence[nn.RNNBase]
) -> list[Tensor]:
    """For each batch (B, T, D), with its mask (B, T) bool, (B, T, 2H), zeros at padding. All are computed at once.

    Args:
        cell: the kind.
        kernels: the compiled functions.
        batches: on the CPU, float32 or, under autocast, of 16 bits; masks with the words first.
        layers: of one direction each, the forward one first.
    """
    weights = [getattr(layer, f"{name}_l0").contiguous() for layer in layers for name in NAMES]
    flat = [x.flatten(0, 1) for x, _ in batches]
    x = torch.cat(flat) if len(flat) > 1 else flat[0]  # (P, D)
    words = Words.of(*(mask for _, mask in batches))
    y = loops(Loops(cell, kernels, words, half(x)), x, weights)  # (P, 2H)
    parts = y.split([mask.numel() for _, mask in batches])
    return [part.unflatten(0, mask.shape) for part, (_, mask) in zip(parts, batches, strict=True)]


def loops(order: Loops, x: Tensor, weights: Sequence[Tensor]) -> Tensor:
    """(P, D), the places of the padded batches, and the weights of both directions, by NAMES -> (P, 2H)."""
    return _Loops.apply(order, x, *weights)  # type: ignore[return-value]


class _Loops(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, loops: Loops, x: Tensor, *weights: Tensor) -> Tensor:
        words, size = x.index_select(0, loops.words.among), weights[1].shape[1]  # (N, D)
        words = words if loops.half is None else words.to(loops.half)
        new = weights[1].new_empty
        y = new(len(x), 2 * size).index_fill_(0, loops.words.padding, 0)
        kept, before = (new(2, len(words), size) for _ in range(2))
        gates = [_gates(loops, words, weight, *biases) for weight, _, *biases in (weights[:4], weights[4:])]

        def run(side: int) -> None:
            recurrent, own = weights[4 * side + 1], weights[4 * side + 3][-size:]
            states = kept[side], before[side], y[:, side * size :], 2 * size
            loops.call("ahead", side, recurrent, own, size, gates[side], gates[side].shape[1], *states)

        side_by_side(run)
        ctx.save_for_backward(words, kept, before, *gates, *weights)
        ctx.loops = loops
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (words, kept, before, *gates), weights, loops = ctx.saved_tensors[:5], ctx.saved_tensors[5:], ctx.loops
        d_y, size = gradients[0].contiguous(), weights[1].shape[1]
        d = [torch.empty_like(each) for each in gates]  # (N, G H) each
        d_products = [torch.empty_like(each) for each in gates] if loops.cell.apart else d

        def run(side: int) -> None:
            given = gates[side], gates[side].shape[1], kept[side], before[side], d_y[:, side * size :], 2 * size
            loops.call("back", side, weights[4 * side + 1], size, *given, d[side], d_products[side], None)

        side_by_side(run)
        d_x = _of_input(loops, len(d_y), d, (weights[0], weights[4])) if ctx.needs_input_grad[1] else None
        sides = zip(d, d_products, before, strict=True)
        return None, d_x, *(gradient for side in sides for gradient in _of_weights(words, *side, loops.half))


def _gates(loops: Loops, words: Tensor, weight: Tensor, bias: Tensor, own: Tensor) -> Tensor:
    """The pre-activations (N, G H) without the recurrent product."""
    size = len(own) // 3
    both = bias + (F.pad(own[:-size], (0, size)) if loops.cell.apart else own)
    return once(words, weight.t(), both, loops.half)


def _of_weights(
    words: Tensor, d: Tensor, d_product: Tensor, before: Tensor, half: torch.dtype | None
) -> tuple[Tensor, ...]:
    """The gradients of the weights of one direction, by NAMES."""
    of_input, of_state = once(d.t(), words, half=half), once(d_product.t(), before, half=half)
    return of_input, of_state, d.sum(0), d_product.sum(0)


def _of_input(loops: Loops, places: int, d: Sequence[Tensor], weights: Sequence[Tensor]) -> Tensor:
    """The gradient (P, D) of the input."""
    ahead, back = (once(one, weight, half=loops.half) for one, weight in zip(d, weights, strict=True))  # (N, D) each
    d_x = ahead.new_empty(places, ahead.shape[1]).index_fill_(0, loops.words.padding, 0)
    return d_x.index_copy_(0, loops.words.among, ahead.add_(back))


def side_by_side(run: Callable[[int], None], sides: int = 2) -> None:
    """`run(0)`, and `run(1)` if there are two, which leave Python's lock free: together if torch has threads."""
    other = _thread(os.getpid()).submit(run, 1) if sides == 2 and torch.get_num_threads() > 1 else None
    run(0)
    if other is not None:
        other.result()
    elif sides == 2:
        run(1)


@cache
def _thread(process: int) -> ThreadPoolExecutor:
    """One per process, since threads do not survive a fork."""
    return ThreadPoolExecutor(1, "direction")
