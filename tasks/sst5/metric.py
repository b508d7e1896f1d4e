"""Accuracy over five labels, 0 (very negative) to 4 (very positive)."""

from __future__ import annotations

from pathlib import Path

from elmo_bench.metrics.accuracy import Accuracy, score_labels

LABELS = ("0", "1", "2", "3", "4")


class Sst5Metric(Accuracy):
    """Of predicted labels, and rows with a "label" from 0 to 4."""


def score(gold: Path | str, predictions: Path | str) -> dict[str, float]:
    """The metric of two files with one label a line; "-" is no gold label, and the line is left out."""
    return score_labels(gold, predictions, LABELS)
