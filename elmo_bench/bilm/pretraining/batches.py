"""What one update reads, made from the streams ahead of it: windows of the distinct words, targets, the sample."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from elmo_bench.bilm.lm import Chunk, Negatives, log_expected
from elmo_bench.bilm.pretraining.convolutions import Windows, WordTypes
from elmo_bench.bilm.pretraining.softmax import Sample


class Batch(NamedTuple):
    """One update's input, both directions."""

    windows: Windows  # of the U distinct words
    indices: tuple[Tensor, Tensor]  # (T * B,) int64 into these words, time-major
    ids: Tensor  # (R,) int64: the vocabulary's words that are targets or negatives
    samples: tuple[Sample, Sample]  # one a direction

    def to(self, device: torch.device) -> Batch:
        """On a device; itself on a CPU."""
        if device.type == "cpu":
            return self
        forward, backward = (index.to(device, non_blocking=True) for index in self.indices)
        samples = (self.samples[0].to(device), self.samples[1].to(device))
        return Batch(self.windows.to(device), (forward, backward), self.ids.to(device, non_blocking=True), samples)


class Batcher:
    """Makes batches of pairs of chunks.

    Args:
        types: of the text.
        vocabulary: words of the softmax.
        negatives: how many are drawn.
        seed: of the draws, which depend on it and on the update's number alone.
    """

    def __init__(self, types: WordTypes, vocabulary: int, negatives: int, seed: int):
        self.types, self.vocabulary, self.negatives, self.seed = types, vocabulary, negatives, seed
        self.place = np.zeros(vocabulary, dtype=np.int64)  # of a vocabulary id among the touched rows
        self.column = np.full(vocabulary, -1, dtype=np.int64)  # of a vocabulary id among the negatives

    def make(self, chunks: tuple[Chunk, Chunk], update: int) -> Batch:
        """The batch of one update; the same for the same chunks and number."""
        windows, indices = self.types.distinct(chunks[0].inputs, chunks[1].inputs)
        generator = np.random.default_rng((self.seed, update))
        drawn = Negatives.draw(self.negatives, self.vocabulary, generator)
        targets = [chunk.targets.numpy() for chunk in chunks]
        ids = np.unique(np.concatenate([*targets, drawn.ids.numpy()]))
        self.place[ids] = np.arange(len(ids))
        samples = [self._sample(target, drawn) for target in targets]
        forward, backward = (torch.from_numpy(np.ascontiguousarray(index.T).reshape(-1)) for index in indices)
        return Batch(windows, (forward, backward), torch.from_numpy(ids), (samples[0], samples[1]))

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
