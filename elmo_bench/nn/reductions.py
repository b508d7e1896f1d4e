"""The largest of rows that belong together, and weighted sums of words."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from elmo_bench.nn.kernels import Kernels


def largest(x: Tensor, lengths: Tensor, kernels: Kernels | None = None) -> Tensor:
    """(M, F) and the (U,) lengths of its parts, on a CPU -> (U, F) the largest of each; equal ones share its gradient.

    `kernels` are the compiled functions.
    """
    return _Largest.apply(x, lengths, kernels)  # type: ignore[return-value]


def weighted(own: Tensor, words: Tensor, weights: Tensor, kernels: Kernels | None = None) -> Tensor:
    """Sums of the words (N, V) whose numbers are given, (P, K) int64, times their weights (P, K): (P, V).

    `kernels` are the compiled functions, on a CPU: a word of weight 0 costs them nothing in the gradient.
    """
    if kernels is None:
        return nn.functional.embedding_bag(words, own, per_sample_weights=weights, mode="sum")
    sums = nn.functional.embedding_bag(words, own.detach(), per_sample_weights=weights, mode="sum")
    return _OfWords.apply(sums, own, words, weights.detach(), kernels)  # type: ignore[return-value]


class _Largest(torch.autograd.Function):
    """By hand because torch 2.13 leaves negative gradients of `segment_reduce` whole for each of equal ones."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, lengths: Tensor, kernels: Kernels | None) -> Tensor:
        x = x.contiguous()
        if kernels is None:
            found = torch.segment_reduce(x, "max", lengths=lengths)
        else:
            found = x.new_empty(len(lengths), x.shape[1])
            kernels.call("largest_ahead", x, lengths, *found.shape, found)
        ctx.save_for_backward(x, lengths, found)
        ctx.kernels = kernels
        return found

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        x, lengths, found = ctx.saved_tensors
        if ctx.kernels is not None:
            d_x = torch.empty_like(x)
            ctx.kernels.call("largest_back", x, found, gradients[0].contiguous(), lengths, *found.shape, d_x)
            return d_x, None, None
        part = torch.arange(len(lengths)).repeat_interleave(lengths)  # (M,)
        equal = torch.eq(x, found.index_select(0, part), out=torch.empty_like(x))  # (M, F)
        share = gradients[0] / torch.segment_reduce(equal, "sum", lengths=lengths)
        return equal.mul_(share.index_select(0, part)), None, None


class _OfWords(torch.autograd.Function):
    """The sums, which have the gradients of the weights only -> the same with those of the words too.

    They are added up in the order in which torch would, which its `sort` gives: to the same bits.
    """

    @staticmethod
    def forward(ctx: Any, sums: Tensor, own: Tensor, words: Tensor, weights: Tensor, kernels: Kernels) -> Tensor:
        ctx.save_for_backward(words, weights)
        ctx.words, ctx.kernels = len(own), kernels
        return sums.view_as(sums)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        words, weights = (each.contiguous() for each in ctx.saved_tensors)
        d, order = gradients[0].contiguous(), words.flatten().sort().indices
        d_own = d.new_zeros(ctx.words, d.shape[1])
        sizes = words.numel(), words.shape[1], d.shape[1]
        ctx.kernels.call("weighted_back", d, words, weights, order, *sizes, d_own)
        return d, d_own, None, None, None
