"""The paper's Table 6."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from elmo_bench.analysis import probe, tagged
from elmo_bench.analysis.resampling import Score, clusters
from elmo_bench.analysis.settings import PosConfig
from elmo_bench.analysis.study import Study
from elmo_bench.analysis.tagged import Tagged
from elmo_bench.embedding.vectors import Lookup, find
from elmo_bench.layers.cache import ActivationCache
from elmo_bench.records.studies import StudyRecord

NOTE = (
    "Accuracy in percent on {words} words of test: a linear classifier on the vectors of one layer, trained on {train} "
    "words, the epoch of best dev accuracy; the mean of {seeds} seeds, with its 95 % interval from draws of the seeds "
    "and of the {clusters} of test. {remark}{scale}"
)
NO_VECTORS = "The control {name} is left out: its files are not here (get them: {download}). "
SPLITS = ("train", "dev", "test")


def measure(study: Study[PosConfig]) -> StudyRecord:
    """The table."""
    settings = study.settings
    splits, cells = [tagged.read(Path(getattr(settings, split)), settings) for split in SPLITS], []
    for name, by_layer in _vectors(study, splits):
        scores = [[_score(settings, splits, tags, vectors) for tags in settings.tags] for vectors in by_layer]
        for tags, of_layers in zip(settings.tags, zip(*scores, strict=True), strict=True):
            cells += study.by_layer(name, tags, of_layers, name != settings.vectors)
    note = NOTE.format(
        words=sum(splits[2].lengths), train=sum(splits[0].lengths), seeds=settings.seeds, remark=_remark(study),
        clusters=clusters(splits[2].documents), scale=study.run.scale.note,
    )  # fmt: skip
    return study.record(6, "parts of speech", note, cells)


def _vectors(study: Study[PosConfig], splits: list[Tagged]) -> Iterator[tuple[str, Iterator[list[Tensor]]]]:
    """Each source of vectors, and by layer the vectors (N, W) for the words of every split."""
    if study.settings.vectors and (static := _static(study, splits)):
        yield study.settings.vectors, iter([static])
    for name, source in study.open(cached=True).items():
        if isinstance(source, ActivationCache):
            source.prepare([sentence for split in splits for sentence in split.sentences])
        layers = range(source.n_layers)
        yield name, ([probe.layer(source, split.sentences, number) for split in splits] for number in layers)


def _static(study: Study[PosConfig], splits: list[Tagged]) -> list[Tensor] | None:
    """Static word vectors, zero for words that the table lacks; None if its files are not here."""
    block, table = study.vectors or (None, None)
    if block is None or table is None:
        return None
    words = {word for split in splits for sentence in split.sentences for word in sentence}
    found = find(table, words, block.size, Lookup(block.cased, "lower"))
    zero = torch.zeros(block.size)
    return [torch.stack([found.get(w, zero) for s in split.sentences for w in s]).half() for split in splits]


def _score(settings: PosConfig, splits: list[Tagged], tags: str, vectors: list[Tensor]) -> Score:
    """The accuracy on test, with every seed."""
    numbers, known = probe.numbered([split.tags[tags] for split in splits])
    train, dev, test = map(probe.Split, vectors, numbers)
    counts = []
    for seed in range(1, settings.seeds + 1):
        answers = probe.train(train, dev, known, settings, seed)(test.x)
        right = [int(each.sum()) for each in (answers == test.y).split(splits[2].lengths)]
        counts.append(np.stack([right, splits[2].lengths], axis=1))
    return Score(np.stack(counts), splits[2].documents, lambda sums: 100 * sums[:, 0] / sums[:, 1])


def _remark(study: Study[PosConfig]) -> str:
    block, table = study.vectors or (None, None)
    return NO_VECTORS.format(name=block.name, download=block.download) if block and not table else ""
