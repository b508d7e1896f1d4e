"""The input of one update, prepared from the streams: windows of the distinct words, targets, negatives."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from elmo_bench.bilm.lm import Chunk, Negatives, log_expected
from elmo_bench.bilm.pretraining.convolutions import Windows, WordTypes
from elmo_bench.bilm.pretraining.softmax import Sample


class Batch(NamedTuple):
    """One update's input for both directions."""

    windows: Windows  # of the U distinct words
    indices: tuple[Tensor, Tensor]  # (T * B,) int64 into these words, time-major
    ids: Tensor  # (R,) int64: vocabulary ids of all targets and negatives
    samples: tuple[Sample, Sample]  # one per direction

    def to(self, device: torch.device) -> Batch:
        """The batch on a device (itself on a CPU)."""
        if device.type == "cpu":
            return self
        forward, backward = (index.to(device, non_blocking=True) for index in self.indices)
        samples = (self.samples[0].to(device), self.samples[1].to(device))
        return Batch(self.windows.to(device), (forward, backward), self.ids.to(device, non_blocking=True), samples)


class Batcher:
    """Makes batches of pairs of chunks.

    Args:
        types: word types of the text.
        vocabulary: number of words of the softmax.
        negatives: how many negatives are drawn.
        seed: of the draws, which depend only on it and on the update's number.
        each: draws a sample for each direction instead of one for both.
        share: the rows of a chunk to put into the batch; `Batch.ids` nevertheless covers all rows.
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
        self.place = np.zeros(vocabulary, dtype=np.int64)  # position of a vocabulary id among the touched rows
        self.column = np.full(vocabulary, -1, dtype=np.int64)  # position of a vocabulary id among the negatives

    def make(self, chunks: tuple[Chunk, Chunk], update: int) -> Batch:
        """The batch of one update, determined by the chunks and the update's number."""
        drawn = self._draw(update)
        whole = [chunk.targets.numpy() for chunk in chunks]  # each (T * B,)
        ids = np.unique(np.concatenate([*whole, *(sample.ids.numpy() for sample in drawn)]))
        self.place[ids] = np.arange(len(ids))
        windows, indices = self.types.distinct(*(chunk.inputs[self.share] for chunk in chunks))
        rows = len(chunks[0].inputs)
        targets = [np.ascontiguousarray(t.reshape(-1, rows)[:, self.share]).reshape(-1) for t in whole]
        first, second = (self._sample(*pair) for pair in zip(targets, drawn, strict=True))
        forward, backward = (torch.from_numpy(np.ascontiguousarray(index.T).reshape(-1)) for index in indices)
        return Batch(windows, (forward, backward), torch.from_numpy(ids), (first, second))

    def _draw(self, update: int) -> list[Negatives]:
        """A sample for each direction, or the same sample twice."""
        generator = np.random.default_rng((self.seed, update))
        one = Negatives.draw(self.negatives, self.vocabulary, generator)
        return [one, Negatives.draw(self.negatives, self.vocabulary, generator) if self.each else one]

    def _sample(self, targets: np.ndarray, drawn: Negatives) -> Sample:
        negatives = drawn.ids.numpy()
        self.column[negatives] = np.arange(len(negatives))
        columns = self.column[targets]  # (N,)
        self.column[negatives] = -1
        rows = np.flatnonzero(columns >= 0)
        place = torch.from_numpy(self.place)
        return Sample(
            place[torch.from_numpy(targets)],
            place[drawn.ids],
            log_expected(torch.from_numpy(targets), self.vocabulary, drawn.tries),
            drawn.log_expected,
            (torch.from_numpy(rows), torch.from_numpy(columns[rows])),
        )
