"""Accuracy over five labels, 0 (very negative) to 4 (very positive)."""

from __future__ import annotations

from pathlib import Path

from elmo_bench.metrics.accuracy import Accuracy, score_labels
from elmo_bench.system.storage.files import open_text
from elmo_bench.text.trees import read_trees

LABELS = ("0", "1", "2", "3", "4")


class Sst5Metric(Accuracy):
    """Of predicted labels, and rows with a "label" from 0 to 4."""


def score(gold: Path | str, predictions: Path | str) -> dict[str, float]:
    """The metric of two files with one label a line; "-" is no gold label, and the line is left out.

    `gold` may be a file of trees.
    """
    return score_labels(gold, predictions, LABELS, _own)


def _own(path: Path) -> list[str] | None:
    """The labels of the sentences of a file of trees; None if it is none."""
    with open_text(path) as lines:
        if not next(filter(None, map(str.strip, lines)), "").startswith("("):
            return None
    return [tree.nodes[-1].label for _, tree in read_trees(path)]
