"""Span F1 of tagged sentences: precision, recall and F1 by the rules of conlleval, the scorer of CoNLL-2003."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elmo_bench.metrics.items import F1Metric

if TYPE_CHECKING:  # `score` does not need torch
    from elmo_bench.task import Row


class SpanMetric(F1Metric):
    """A predicted span is correct if its type, first and last word are; counted over all sentences and types.

    Gold and predicted tags may have different schemes, and may be malformed: both are read as by conlleval. An example
    is a sentence; rows with a "document" are clustered by it.
    """

    def update(self, predictions: Sequence[Sequence[str]], rows: Sequence[Row]) -> None:
        """Counts predicted tags, a list for each row, and rows with "tags"."""
        from seqeval.metrics.sequence_labeling import get_entities  # imported here because it takes seconds

        for tags, row in self.tally.pairs(predictions, rows):
            if len(tags) != len(row["tags"]):
                raise ValueError(f"{len(tags)} predicted tags for {len(row['tags'])} tokens")
            predicted, gold = set(get_entities(list(tags))), set(get_entities(list(row["tags"])))
            right = len(predicted & gold)
            self.tally.add(right, len(predicted) - right, len(gold) - right, cluster=self.cluster(row))


def score_spans(
    gold: Path | str, predictions: Path | str, data: Mapping[str, Any] | None = None, column: str = "tags"
) -> dict[str, float]:
    """The metric of two files of the same format, CoNLL columns or tables, read as in training.

    Without other keys in `data`, the word comes first and the tag last.
    """
    from elmo_bench.tagging.files import TaggedFiles  # imported here because a report needs no reader
    from elmo_bench.text.columns import side_by_side
    from elmo_bench.text.labels import warn_disjoint

    metric, files = SpanMetric(), TaggedFiles(data or {}, column)
    types: tuple[set[str], set[str]] = set(), set()
    with files.comments():
        for number, pair in enumerate(side_by_side(gold, predictions, files.file)):
            expected, predicted = (sentence.normalised(number) for sentence in pair)
            for found, tags in zip(types, (expected, predicted), strict=True):
                found.update(tag[2:] for tag in tags if tag != "O")
            metric.update([predicted], [{"tags": expected}])
    warn_disjoint(*types, predictions)
    return metric.compute()
