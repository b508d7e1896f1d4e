"""The accuracy over SNLI's pairs with a gold label, as is usual for SNLI."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from elmo_bench.metrics.accuracy import Accuracy, score_labels


class SnliMetric(Accuracy):
    """The share of pairs whose predicted label is the gold label."""

    units = ("premises", "premises")

    def cluster(self, row: Mapping[str, Any]) -> tuple[str, ...] | None:
        """The premise, usually shared by three pairs."""
        return tuple(row.get("premise", ())) or None


def score(gold: Path | str, predictions: Path | str, data: Mapping[str, Any] | None = None) -> dict[str, float]:
    """Accuracy of two files with one label per line ("-": no gold label), or in a format of the reader."""
    from elmo_bench.text.source import DataSource  # imported here because a report needs no reader

    from .pairs import is_release, labels, read_pairs

    source = DataSource(data or {}, native=is_release, keys=("labels",))
    known = labels(source.data)
    return score_labels(gold, predictions, known, source, lambda path: (pair.label for pair in read_pairs(path, known)))
