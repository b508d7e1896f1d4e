"""The accuracy over the five labels of sentences of the Stanford Sentiment Treebank."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from elmo_bench.metrics.accuracy import Accuracy, score_labels


class Sst5Metric(Accuracy):
    """The share of correct labels, from predicted labels and rows with a "label" from 0 to 4."""


def score(gold: Path | str, predictions: Path | str, data: Mapping[str, Any] | None = None) -> dict[str, float]:
    """The metric of two files with one label per line, as number or name; lines with "-" as gold label are left out.

    The files may also contain trees, or be tables for the reader.
    """
    from elmo_bench.text.source import DataSource  # imported here because a report needs no reader

    from .trees import labels, read_trees

    source = DataSource(data or {}, keys=("labels",))
    known = labels(source.data)
    return score_labels(gold, predictions, known, source, lambda path: (t.nodes[-1].label for _, t in read_trees(path)))
