"""Accuracy over five labels, 0 (very negative) to 4 (very positive)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from elmo_bench.metrics.accuracy import Accuracy, score_labels
from elmo_bench.text.labels import Labels
from elmo_bench.text.source import DataSource
from elmo_bench.text.trees import read_trees

LABELS = ("0", "1", "2", "3", "4")
NAMES = ("very negative", "negative", "neutral", "positive", "very positive")


class Sst5Metric(Accuracy):
    """Of predicted labels, and rows with a "label" from 0 to 4."""


def labels(data: Mapping[str, Any]) -> Labels:
    """The five labels, by the names of `task.data.labels`, too."""
    return Labels(LABELS, NAMES, data.get("labels"))


def score(gold: Path | str, predictions: Path | str, data: Mapping[str, Any] | None = None) -> dict[str, float]:
    """The metric of two files with one label a line, as number or name; "-" is no gold label, and the line left out.

    The files may also be trees, or tables that the reader reads.
    """
    source = DataSource(data or {}, keys=("labels",))

    def own(path: Path) -> Iterator[str]:
        return (tree.nodes[-1].label for _, tree in read_trees(path))

    return score_labels(gold, predictions, labels(source.data), source, own)
