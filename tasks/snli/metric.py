"""Accuracy; pairs without a gold label are left out, as always for SNLI."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from elmo_bench.metrics.accuracy import Accuracy, score_labels

LABELS = ("entailment", "neutral", "contradiction")  # in the order of the hub's numbers


class SnliMetric(Accuracy):
    """The share of pairs whose predicted label is the gold one."""

    units = ("premises", "premises")

    def cluster(self, row: Mapping[str, Any]) -> tuple[str, ...] | None:
        """The premise, which as a rule three pairs share."""
        return tuple(row.get("premise", ())) or None


def score(gold: Path | str, predictions: Path | str) -> dict[str, float]:
    """Accuracy of two files with one label a line, "-" where there is no gold label.

    Raises:
        UserError: the files cannot be read, differ in length, or hold other labels.
    """
    return score_labels(gold, predictions, LABELS)
