"""The costly part of scoring span pairs: weighted elementwise products of each vector with the vectors before it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from elmo_bench.nn.devices import on_device
from elmo_bench.nn.kernels import Kernels

BLOCK = 4  # targets in one product on a CPU; more would not fit the cache
DEVICE_BLOCK = 64  # elsewhere; fewer would be too many small operations


def pairs(
    n: int, max_antecedents: int, first: int = 0, last: int | None = None, device: Any = None
) -> tuple[Tensor, Tensor]:
    """Targets and antecedents, both (P,), of targets from `first` to before `last`.

    Each target i is paired with the nearest `max_antecedents` spans before it, the farthest first.
    """
    targets = np.arange(first, n if last is None else last)
    counts = np.minimum(targets, max_antecedents)
    target, ends = np.repeat(targets, counts), np.cumsum(counts)
    antecedent = target - np.repeat(ends, counts) + np.arange(len(target))
    return on_device(target, device), on_device(antecedent, device)


class PairProduct(torch.autograd.Function):
    """a[i] + b[j] + sum_d g_i[d] g_j[d] w[:, d] of all `pairs(n, max_antecedents, first, last)`.

    a, b (n, H), g (n, D) and w (H, D) -> (P, H). The elementwise products of all P pairs are never held at once: they
    are computed for one block of targets at a time, and again in the backward pass, for which only g and w are kept.
    The compiled functions multiply g_i into the weight instead, a few columns at a time.
    """

    @staticmethod
    def forward(
        ctx: Any,
        a: Tensor,
        b: Tensor,
        g: Tensor,
        w: Tensor,
        max_antecedents: int,
        first: int,
        last: int,
        kernels: Kernels | None = None,
    ) -> Tensor:
        g, w = g.contiguous(), w.contiguous()
        ctx.save_for_backward(g, w)
        ctx.range, ctx.kernels = (max_antecedents, first, last), kernels
        if kernels is not None:
            y = g.new_empty(sum(min(i, max_antecedents) for i in range(first, last)), len(w))
            kernels.call("pairs_ahead", g, w, a.contiguous(), b.contiguous(), *w.shape[::-1], *ctx.range, y)
            return y
        parts = []
        for targets, antecedents, places in _blocks(max_antecedents, first, last, g.device):
            products = g[targets].unsqueeze(1) * g[antecedents]  # (n, R, D)
            block = torch.matmul(products, w.t()).add_(a[targets].unsqueeze(1)).add_(b[antecedents])  # (n, R, H)
            parts.append(block.flatten(0, 1).index_select(0, places))
        return torch.cat(parts) if parts else g.new_zeros(0, len(w))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (g, w), (max_antecedents, first, last), done = ctx.saved_tensors, ctx.range, 0
        to_a, to_b = (g.new_zeros(len(g), len(w)) for _ in range(2))
        to_g, to_w = torch.zeros_like(g), torch.zeros_like(w)
        if ctx.kernels is not None:
            given = g, w, gradients[0].contiguous(), *w.shape[::-1], *ctx.range
            ctx.kernels.call("pairs_back", *given, to_a, to_b, to_g, to_w)
            return to_a, to_b, to_g, to_w, None, None, None, None
        for targets, antecedents, places in _blocks(max_antecedents, first, last, g.device):
            n, r = targets.stop - targets.start, antecedents.stop - antecedents.start
            part = gradients[0][done : done + len(places)]
            done += len(places)
            block = g.new_zeros(n * r, len(w)).index_copy_(0, places, part)  # (n R, H)
            by_pair = block.view(n, r, -1)
            to_a[targets] += by_pair.sum(1)
            to_b[antecedents] += by_pair.sum(0)
            products = g[targets].unsqueeze(1) * g[antecedents]  # (n, R, D)
            to_w.addmm_(block.t(), products.flatten(0, 1))
            to_products = (block @ w).view_as(products)
            to_g[targets] += torch.mul(to_products, g[antecedents], out=products).sum(1)
            to_g[antecedents] += to_products.mul_(g[targets].unsqueeze(1)).sum(0)
        return to_a, to_b, to_g, to_w, None, None, None, None


def _blocks(max_antecedents: int, first: int, last: int, device: Any) -> Iterator[tuple[slice, slice, Tensor]]:
    """Targets (n), the antecedents of any of them (R), and which of all n R pairs count: (P,) indices."""
    size = BLOCK if device.type == "cpu" else DEVICE_BLOCK
    for start in range(first, last, size):
        end = min(start + size, last)
        lowest = max(start - max_antecedents, 0)
        i, j = np.arange(start, end)[:, None], np.arange(lowest, end)
        places = np.flatnonzero((j < i) & (j >= i - max_antecedents))  # on the CPU: a GPU need not be waited for
        yield slice(start, end), slice(lowest, end), on_device(places, device)
