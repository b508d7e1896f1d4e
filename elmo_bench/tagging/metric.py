"""Span precision, recall and F1 by the rules of conlleval, the official scorer of CoNLL-2003."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from elmo_bench.metrics.items import F1Metric
from elmo_bench.system.errors import UserError
from elmo_bench.text.columns import REMOVE, Block, comments_named, read_blocks, side_by_side
from elmo_bench.text.tags import normal

if TYPE_CHECKING:  # `score` does not need torch
    from elmo_bench.task import Row


class SpanMetric(F1Metric):
    """A predicted span is correct if its type, first and last word are; counted over all sentences and types.

    Gold and predicted tags may be of different schemes, and malformed: both are read as by conlleval. An example
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


def score_spans(gold: Path | str, predictions: Path | str) -> dict[str, float]:
    """The metric of two CoNLL column files: word first, tag last, an empty line between sentences.

    Raises:
        UserError: the files cannot be read, contain different sentences or words, or tags of an unknown scheme.
    """
    metric = SpanMetric()
    with comments_named(REMOVE):
        for expected, predicted in side_by_side(gold, predictions, partial(read_blocks, minimum=2)):
            metric.update([_tags(predicted)], [{"tags": _tags(expected)}])
    return metric.compute()


def _tags(block: Block) -> list[str]:
    clean = []
    for tag, line in zip(block.column(-1), block.lines, strict=True):
        try:
            clean.append(normal(tag))
        except ValueError as error:
            raise UserError(str(error), block.path, line) from None
    return clean
