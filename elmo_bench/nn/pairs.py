"""The costly part of scoring span pairs: weighted elementwise products of each vector with the vectors before it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

BLOCK = 4  # targets in one product; more would not fit the cache


def pairs(
    n: int, max_antecedents: int, first: int = 0, last: int | None = None, device: Any = None
) -> tuple[Tensor, Tensor]:
    """Targets and antecedents, both (P,), of targets from `first` to before `last`.

    Each target i is paired with the nearest `max_antecedents` spans before it, the farthest first.
    """
    targets = torch.arange(first, n if last is None else last, device=device)  # (n,)
    counts = targets.clamp(max=max_antecedents)
    target = targets.repeat_interleave(counts)  # (P,)
    place = torch.arange(len(target), device=device) - (counts.cumsum(0) - counts).repeat_interleave(counts)
    return target, target - counts.repeat_interleave(counts) + place


class PairProduct(torch.autograd.Function):
    """sum_d g_i[d] g_j[d] w[:, d] of all `pairs(n, max_antecedents, first, last)`: (n, D) and (H, D) -> (P, H).

    The elementwise products of all P pairs are never held at once: they are computed for one block of targets at a
    time, and again in the backward pass, for which only g and w are kept.
    """

    @staticmethod
    def forward(ctx: Any, g: Tensor, w: Tensor, max_antecedents: int, first: int, last: int) -> Tensor:
        ctx.save_for_backward(g, w)
        ctx.range = max_antecedents, first, last
        blocks = []
        for targets, antecedents, inside in _blocks(max_antecedents, first, last, g.device):
            products = g[targets].unsqueeze(1) * g[antecedents]  # (n, R, D)
            blocks.append((products @ w.t())[inside])
        return torch.cat(blocks) if blocks else g.new_zeros(0, len(w))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (g, w), (max_antecedents, first, last) = ctx.saved_tensors, ctx.range
        to_g, to_w, done = torch.zeros_like(g), torch.zeros_like(w), 0
        for targets, antecedents, inside in _blocks(max_antecedents, first, last, g.device):
            size = int(inside.sum())
            block = g.new_zeros(*inside.shape, len(w))  # (n, R, H)
            block[inside] = gradients[0][done : done + size]
            done += size
            products = g[targets].unsqueeze(1) * g[antecedents]  # (n, R, D)
            to_w.addmm_(block.flatten(0, 1).t(), products.flatten(0, 1))
            to_products = block @ w  # (n, R, D)
            to_g[targets] += torch.mul(to_products, g[antecedents], out=products).sum(1)
            to_g[antecedents] += to_products.mul_(g[targets].unsqueeze(1)).sum(0)
        return to_g, to_w, None, None, None


def _blocks(max_antecedents: int, first: int, last: int, device: Any) -> Iterator[tuple[slice, slice, Tensor]]:
    """Targets, the antecedents of any of them, and which pairs of these count: (n, R) bool."""
    for start in range(first, last, BLOCK):
        end = min(start + BLOCK, last)
        lowest = max(start - max_antecedents, 0)
        i = torch.arange(start, end, device=device).unsqueeze(1)
        j = torch.arange(lowest, end, device=device)
        yield slice(start, end), slice(lowest, end), (j < i) & (j >= i - max_antecedents)
