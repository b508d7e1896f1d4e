"""The input of one update, prepared from the streams: distinct words, targets, negatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from elmo_bench.bilm.lm import Chunk, Negatives, Words, WordTypes, log_expected


class Sample(NamedTuple):
    """Targets and negatives of one direction, as positions among the rows of the softmax that the update touches."""

    targets: Tensor  # (N,) int64
    negatives: Tensor  # (K,) int64
    log_targets: Tensor  # (N,) log expected counts
    log_negatives: Tensor  # (K,)


class UpdateInput(NamedTuple):
    """One update's input for both directions."""

    words: Words  # what they read
    ids: Tensor  # (R,) int64: vocabulary ids of all targets and negatives
    samples: list[Sample]  # one per direction; the targets are time-major, as the LSTM's packed rows

    def to(self, device: torch.device) -> UpdateInput:
        """The batch on a device, copied while a GPU computes."""
        return self.each(lambda part: part.to(device, non_blocking=True))

    def each(self, change: Callable[[Tensor], Tensor]) -> UpdateInput:
        """With every tensor changed."""
        words = Words(*(list(map(change, parts)) for parts in self.words))
        return UpdateInput(words, change(self.ids), [Sample(*map(change, sample)) for sample in self.samples])


class Batcher:
    """Makes batches of pairs of chunks.

    Args:
        types: word types of the text.
        vocabulary: number of words of the softmax.
        negatives: how many negatives are drawn.
        seed: of the draws, which depend only on it and on the update's number.
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
        drawn = self._draw(update)
        ids = torch.cat([*(chunk.targets for chunk in chunks), *(sample.ids for sample in drawn)]).unique()
        rows, samples = len(chunks[0].inputs), []
        for chunk, sample in zip(chunks, drawn, strict=True):
            targets = chunk.targets.view(-1, rows)[:, self.share].reshape(-1)  # (N,)
            expected = log_expected(targets, self.vocabulary, sample.tries)
            places, negatives = torch.searchsorted(ids, targets), torch.searchsorted(ids, sample.ids)
            samples.append(Sample(places, negatives, expected, sample.log_expected))
        return UpdateInput(self.types.distinct(*(chunk.inputs[self.share] for chunk in chunks)), ids, samples)

    def _draw(self, update: int) -> list[Negatives]:
        """A sample for each direction, or the same sample twice."""
        generator = np.random.default_rng((self.seed, update))
        one = Negatives.draw(self.negatives, self.vocabulary, generator)
        return [one, Negatives.draw(self.negatives, self.vocabulary, generator) if self.each else one]
