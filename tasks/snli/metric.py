"""Accuracy; pairs without a gold label are left out, as always for SNLI."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from elmo_bench.metrics.accuracy import Accuracy, score_labels
from elmo_bench.system.storage.files import open_text

from .pairs import COLUMNS, LABELS, read_pairs


class SnliMetric(Accuracy):
    """The share of pairs whose predicted label is the gold one."""

    units = ("premises", "premises")

    def cluster(self, row: Mapping[str, Any]) -> tuple[str, ...] | None:
        """The premise, which as a rule three pairs share."""
        return tuple(row.get("premise", ())) or None


def score(gold: Path | str, predictions: Path | str) -> dict[str, float]:
    """Accuracy of two files with one label a line, "-" where there is no gold label; `gold` may be SNLI's own file.

    Raises:
        UserError: the files cannot be read, differ in length, or hold other labels.
    """
    return score_labels(gold, predictions, LABELS, _own)


def _own(path: Path) -> list[str] | None:
    """The labels of a file of SNLI's; None if it is none."""
    with open_text(path) as lines:
        if ".jsonl" not in path.suffixes and COLUMNS[0] not in next(lines, ""):
            return None
    return [pair.label for pair in read_pairs(path)]
