"""The accuracy over SNLI's pairs. Those without a gold label are left out, as always for SNLI."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from elmo_bench.metrics.accuracy import Accuracy, score_labels


class SnliMetric(Accuracy):
    """The share of pairs whose predicted label is the gold one."""

    units = ("premises", "premises")

    def cluster(self, row: Mapping[str, Any]) -> tuple[str, ...] | None:
        """The premise, which as a rule three pairs share."""
        return tuple(row.get("premise", ())) or None


def score(gold: Path | str, predictions: Path | str, data: Mapping[str, Any] | None = None) -> dict[str, float]:
    """Accuracy of two files with one label a line, "-" where there is no gold label, or that the reader reads."""
    from elmo_bench.text.source import DataSource  # a report needs no reader

    from .pairs import is_release, labels, read_pairs

    source = DataSource(data or {}, native=is_release, keys=("labels",))
    known = labels(source.data)
    return score_labels(gold, predictions, known, source, lambda path: (pair.label for pair in read_pairs(path, known)))
