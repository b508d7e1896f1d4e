"""Sampled softmax with its gradients in one pass: the (N, K) logits are computed only once.

The same loss as `lm.sampled_nll` (the log-uniform sample of bilm-tf, corrected by the expected counts). The
exponentials that the backward pass needs are available when the loss is computed; so the gradients of outputs, rows and
biases are computed together with it, and only scaled in the backward pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from elmo_bench.bilm.pretraining.pointwise import EAGER, Pointwise


class Sample(NamedTuple):
    """Targets and negatives of one direction, as positions among the rows of the softmax that the update touches."""

    targets: Tensor  # (N,) int64
    negatives: Tensor  # (K,) int64
    log_targets: Tensor  # (N,) log expected counts
    log_negatives: Tensor  # (K,)
    hits: tuple[Tensor, Tensor]  # rows and columns where a negative equals the row's target

    def to(self, device: torch.device) -> Sample:
        targets, negatives, log_targets, log_negatives, row, column = (
            x.to(device, non_blocking=True) for x in (*self[:4], *self.hits)
        )
        return Sample(targets, negatives, log_targets, log_negatives, (row, column))


BLOCK = 256  # rows: with the release's samples, logits of 2 to 4 MB


class _Block(NamedTuple):
    """Rows whose logits are computed together, and the hits among them."""

    rows: slice
    hits: tuple[Tensor, Tensor]


def _blocks(n: int, sample: Sample, device: torch.device) -> Iterator[_Block]:
    """All rows at once on a GPU; on a CPU, blocks whose logits fit into its cache."""
    if device.type != "cpu":
        yield _Block(slice(0, n), sample.hits)
        return
    row, column = sample.hits
    for start in range(0, n, BLOCK):
        first, last = torch.searchsorted(row, torch.tensor([start, start + BLOCK])).tolist()
        yield _Block(slice(start, min(n, start + BLOCK)), (row[first:last] - start, column[first:last]))


class _SampledLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx, h, rows, biases, sample, pointwise):  # type: ignore[override]
        n, weight = len(h), rows[sample.negatives].to(h.dtype)  # (K, P)
        own = rows[sample.targets]  # (N, P)
        correction = biases[sample.negatives] - sample.log_negatives  # (K,)
        true = (h.float() * own).sum(-1) + biases[sample.targets] - sample.log_targets  # (N,)
        normaliser, d_h = torch.empty_like(true), torch.empty_like(own)
        d_weight, d_correction = torch.zeros_like(weight, dtype=own.dtype), torch.zeros_like(correction)
        for block in _blocks(n, sample, h.device):
            part = h[block.rows]  # (n, P)
            logits = part @ weight.t()  # (n, K)
            logits[block.hits] = float("-inf")
            e, most, total = pointwise.exponentials(logits, correction)
            normaliser[block.rows] = torch.logaddexp(most + total.log(), true[block.rows])
            scale = torch.exp(most - normaliser[block.rows]) / n  # (n,): the gradients of the logits are e times this
            torch.mul((e @ weight).float(), scale[:, None], out=d_h[block.rows])
            d_weight += e.t() @ (part.float() * scale[:, None]).to(h.dtype)  # (K, P)
            d_correction += scale.to(h.dtype) @ e  # (K,)
        d_true = (torch.exp(true - normaliser) - 1) / n  # (N,)
        d_h.addcmul_(d_true[:, None], own)
        d_rows, d_biases = torch.zeros_like(rows), torch.zeros_like(biases)
        d_rows.index_add_(0, sample.negatives, d_weight).index_add_(0, sample.targets, d_true[:, None] * h.float())
        d_biases.index_add_(0, sample.negatives, d_correction).index_add_(0, sample.targets, d_true)
        ctx.save_for_backward(d_h, d_rows, d_biases)
        ctx.dtype = h.dtype
        return (normaliser - true).mean()

    @staticmethod
    @once_differentiable
    def backward(ctx, d_loss):  # type: ignore[override]
        d_h, d_rows, d_biases = (d_loss * gradient for gradient in ctx.saved_tensors)
        return d_h.to(ctx.dtype), d_rows, d_biases, None, None


def sampled_losses(
    h: Tensor, rows: Tensor, biases: Tensor, samples: Sequence[Sample], pointwise: Pointwise = EAGER
) -> Tensor:
    """The mean of `sampled_loss` over the directions, for outputs h (D, N, P) and a sample each."""
    each = zip(h.unbind(), samples, strict=True)
    return torch.stack([sampled_loss(part, rows, biases, sample, pointwise) for part, sample in each]).mean()


def sampled_loss(h: Tensor, rows: Tensor, biases: Tensor, sample: Sample, pointwise: Pointwise = EAGER) -> Tensor:
    """Mean negative log-likelihood under sampled softmax, in nats.

    Args:
        h: (N, P) outputs of the top layer, in the type of the products.
        rows, biases: (R, P) and (R,) float32: the touched rows of the softmax.
        sample: which of them are targets and negatives.
    """
    return _SampledLoss.apply(h, rows, biases, sample, pointwise)  # type: ignore[return-value]
