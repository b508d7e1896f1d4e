"""One update: its loss, and the optimisers of the dense parameters and of the softmax, whose gradients are sparse."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from elmo_bench.bilm.lm import BidirectionalLM, Chunk, Negatives, Words, WordTypes, log_expected, sampled_nll
from elmo_bench.bilm.lstm import State
from elmo_bench.bilm.pretraining.recipe import Recipe


class Sample(NamedTuple):
    """Targets and negatives of one direction, as positions among the rows of the softmax that the update touches."""

    targets: Tensor  # (N,) int64
    negatives: Tensor  # (K,) int64
    log_targets: Tensor  # (N,) log expected counts
    log_negatives: Tensor  # (K,)


class UpdateInput(NamedTuple):
    """One update's input for both directions."""

    words: Words  # inputs
    ids: Tensor  # (R,) int64: vocabulary ids of all targets and negatives
    samples: list[Sample]  # one per direction; the targets are time-major, as the LSTM's packed rows

    def to(self, device: torch.device) -> UpdateInput:
        """The batch on a device, copied while the GPU computes."""
        return self.each(lambda part: part.to(device, non_blocking=True))

    def each(self, change: Callable[[Tensor], Tensor]) -> UpdateInput:
        """A copy with every tensor changed."""
        words = Words(*(list(map(change, parts)) for parts in self.words))
        return UpdateInput(words, change(self.ids), [Sample(*map(change, sample)) for sample in self.samples])


class Batcher:
    """Makes batches of pairs of chunks.

    Args:
        types: word types of the text.
        vocabulary: number of words of the softmax.
        negatives: how many negatives are drawn.
        seed: the seed of the draws, which depend only on it and on the update's number.
        each: draws a sample for each direction instead of one for both.
        share: the rows of a chunk to put into the batch; `UpdateInput.ids` nevertheless covers all rows.
    """

    def __init__(
        self,
        types: WordTypes,
        vocabulary: int,
        negatives: int,
        seed: int,
        each: bool = False,
        share: slice = slice(None),
    ):
        self.types, self.vocabulary, self.negatives, self.seed = types, vocabulary, negatives, seed
        self.each, self.share = each, share

    def make(self, chunks: tuple[Chunk, Chunk], update: int) -> UpdateInput:
        """The batch of one update, determined by the chunks and the update's number."""
        generator = np.random.default_rng((self.seed, update))
        one = Negatives.draw(self.negatives, self.vocabulary, generator)
        drawn = [one, Negatives.draw(self.negatives, self.vocabulary, generator) if self.each else one]  # by direction
        ids = torch.cat([*(chunk.targets for chunk in chunks), *(sample.ids for sample in drawn)]).unique()
        rows, samples = len(chunks[0].inputs), []
        for chunk, sample in zip(chunks, drawn, strict=True):
            targets = chunk.targets.view(-1, rows)[:, self.share].reshape(-1)  # (N,)
            expected = log_expected(targets, self.vocabulary, sample.tries)
            places, negatives = torch.searchsorted(ids, targets), torch.searchsorted(ids, sample.ids)
            samples.append(Sample(places, negatives, expected, sample.log_expected))
        return UpdateInput(self.types.distinct(*(chunk.inputs[self.share] for chunk in chunks)), ids, samples)


class Dropout:
    """Dropout whose masks depend only on a seed, so that a resumed run draws the same masks."""

    def __init__(self, p: float, seed: int, device: torch.device):
        self.p = p
        self.generator = torch.Generator(device).manual_seed(seed)

    def __call__(self, x: Tensor) -> Tensor:
        if not self.p:
            return x
        mask = torch.empty_like(x).bernoulli_(1 - self.p, generator=self.generator)
        return x * mask / (1 - self.p)


def touched(lm: BidirectionalLM, batch: UpdateInput) -> list[Tensor]:
    """The softmax's rows (R, P) and biases (R, 1) that the update reads, as leaf tensors that collect gradients."""
    tables = (lm.softmax.weight, lm.softmax_bias.weight)
    return [table.detach().index_select(0, batch.ids).requires_grad_() for table in tables]


def loss(
    lm: BidirectionalLM,
    batch: UpdateInput,
    rows: list[Tensor],
    states: State,
    drop: Callable[[Tensor], Tensor] = lambda x: x,
) -> Tensor:
    """Mean of the two directions' sampled losses in nats per token.

    Args:
        rows: from `touched`; the softmax's gradients are collected there.
        states: the states of both directions' layers, updated in place.
        drop: for `BidirectionalLM.outputs`.
    """
    weight, bias = rows[0], rows[1].squeeze(-1)
    losses = [
        sampled_nll(h, weight, bias, sample.targets, sample.log_targets, sample.negatives, sample.log_negatives)
        for h, sample in zip(lm.outputs(batch.words, states, lm.dtype, drop), batch.samples, strict=True)
    ]
    return torch.stack(losses).mean()


def optimisers(
    recipe: Recipe, dense: Sequence[nn.Parameter], tables: Sequence[Tensor]
) -> tuple[torch.optim.Optimizer, torch.optim.Optimizer]:
    """The optimisers of the dense parameters and of the softmax's tables; the learning rate is set at every update.

    Adam does not change the moments of rows without a gradient; its bias correction counts all updates.
    """
    if recipe.optimiser == "adagrad":
        dense_one, sparse_one = (
            torch.optim.Adagrad(parameters, initial_accumulator_value=recipe.accumulator)
            for parameters in (dense, tables)
        )
        return dense_one, sparse_one
    return torch.optim.Adam(dense, betas=recipe.betas, fused=True), RowAdam(tables, betas=recipe.betas)


class RowAdam(torch.optim.SparseAdam):
    """`SparseAdam` in half the time, with the same bits: it indexes rows instead of adding sparse tensors."""

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        """One update of the rows that have a gradient; `closure` is not called."""
        for group in self.param_groups:
            (first, second), rate, eps = group["betas"], group["lr"], group["eps"]
            for table in group["params"]:
                state = self.state[table]
                if not state:
                    state |= {"step": 0, "exp_avg": torch.zeros_like(table), "exp_avg_sq": torch.zeros_like(table)}
                state["step"] += 1
                ids, gradient = table.grad._indices()[0], table.grad._values()  # set by `give_rows`
                mean, square = (state[name].index_select(0, ids) for name in ("exp_avg", "exp_avg_sq"))  # (R, P)
                mean += (gradient - mean).mul_(1 - first)
                square += gradient.square().sub_(square).mul_(1 - second)
                state["exp_avg"].index_copy_(0, ids, mean)
                state["exp_avg_sq"].index_copy_(0, ids, square)
                size = rate * math.sqrt(1 - second ** state["step"]) / (1 - first ** state["step"])
                table.index_add_(0, ids, mean.div_(square.sqrt_().add_(eps)).mul_(-size))


def change(optimiser: torch.optim.Optimizer, rate: float) -> None:
    """One update with this learning rate."""
    for group in optimiser.param_groups:
        group["lr"] = rate
    optimiser.step()


def give_rows(table: Tensor, ids: Tensor, gradient: Tensor) -> None:
    """Sets a table's gradient, which is zero except in some rows.

    Args:
        ids: (R,) distinct row numbers, sorted.
        gradient: (R, P), of these rows.
    """
    # torch 2.11 would warn about the equivalent argument `check_invariants=False`
    with torch.sparse.check_sparse_tensor_invariants(enable=False):
        table.grad = torch.sparse_coo_tensor(ids[None], gradient, table.shape, is_coalesced=True)
