"""The forward algorithm of a linear-chain conditional random field, on probabilities, and its gradients."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from elmo_bench.nn.kernels import Kernels


def exponential_steps(
    emissions: Tensor, start: Tensor, pairs: Tensor, end: Tensor, mask: Tensor, kernels: Kernels | None = None
) -> Tensor:
    """The log of the sum over all sequences of tags, (B,).

    Args:
        emissions: (B, T, K) float64; those of masked positions are finite.
        start, pairs, end: (K,), (K, K) [from, to], (K,) float64.
        mask: (B, T) bool, true on words, which come first.
        kernels: the compiled functions, on a CPU.
    """
    return _Steps.apply(emissions, start, pairs, end, mask, kernels)  # type: ignore[return-value]


class _Steps(torch.autograd.Function):
    """At every step the probabilities are scaled to sum to 1; steps past a sentence's end do not count.

    The gradients are the expected counts of the forward-backward algorithm (Rabiner 1989, sections III.A and V.A), in
    fewer operations than autograd would take.
    """

    @staticmethod
    def forward(
        ctx: Any, emissions: Tensor, start: Tensor, pairs: Tensor, end: Tensor, mask: Tensor, kernels: Kernels | None
    ) -> Tensor:
        peak = emissions.amax(2)  # (B, T)
        weights = (emissions - peak.unsqueeze(2)).exp().transpose(0, 1).contiguous()  # (T, B, K)
        moves, ending = pairs.exp(), end.exp()  # (K, K), (K,)
        alphas, totals = _ahead(start.exp(), moves, weights, kernels)
        last, sentences = mask.sum(1) - 1, torch.arange(len(mask), device=mask.device)  # (B,) each
        reached = alphas[last, sentences] @ ending  # (B,)
        ctx.save_for_backward(weights.div_(totals), moves, ending, alphas, last, sentences, reached)
        ctx.kernels = kernels
        scale = totals.squeeze(2).t().log() + peak  # (B, T)
        return torch.where(mask, scale, 0).sum(1) + reached.log()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        weights, moves, ending, alphas, last, sentences, reached = ctx.saved_tensors
        betas = torch.zeros_like(alphas)  # (T, B, K); of a sentence that ends earlier, zeros come
        betas[last, sentences] = ending * (gradients[0] / reached).unsqueeze(1)
        moved = _back(moves.t().contiguous(), weights, betas, ctx.kernels)
        d = alphas * betas  # (T, B, K) how probable each tag is, times the sentence's gradient
        d_pairs = moves * (alphas[:-1].flatten(0, 1).t() @ moved[1:].flatten(0, 1))
        return d.transpose(0, 1), d[0].sum(0), d_pairs, d[last, sentences].sum(0), None, None


def _ahead(start: Tensor, moves: Tensor, weights: Tensor, kernels: Kernels | None) -> tuple[Tensor, Tensor]:
    """The probabilities of the tags at each step (T, B, K), and what they summed up to before (T, B, 1)."""
    alphas, totals = torch.empty_like(weights), weights.new_empty(*weights.shape[:2], 1)
    if kernels is not None:
        kernels.call("chain_ahead", start, moves, weights, *weights.shape, alphas, totals)
        return alphas, totals
    torch.mul(start, weights[0], out=alphas[0])
    for step, (alpha, weight, total) in enumerate(zip(alphas, weights, totals, strict=True)):
        if step:
            torch.mm(alphas[step - 1], moves, out=alpha).mul_(weight)
        alpha.div_(torch.sum(alpha, 1, keepdim=True, out=total))
    return alphas, totals


def _back(back: Tensor, weights: Tensor, betas: Tensor, kernels: Kernels | None) -> Tensor:
    """The gradients (T, B, K) of the products with the moves, from the second step on; completes `betas`."""
    moved = torch.empty_like(betas)
    if kernels is not None:
        kernels.call("chain_back", back, weights, *weights.shape, betas, moved)
        return moved
    for step in range(len(betas) - 1, 0, -1):
        torch.mul(weights[step], betas[step], out=moved[step])
        betas[step - 1].addmm_(moved[step], back)
    return moved
