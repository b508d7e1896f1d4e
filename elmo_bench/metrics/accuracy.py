"""Accuracy for classification tasks: of predictions, and of two files with one label per line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elmo_bench.metrics.items import AdditiveMetric, Number, ratio
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage.files import ending, open_text

if TYPE_CHECKING:  # not imported at run time: a report needs no reader
    from elmo_bench.text.labels import Labels
    from elmo_bench.text.source import DataSource


class Accuracy(AdditiveMetric):
    """The share of rows whose prediction equals the gold label; rows without a gold label are left out.

    An example is a row with a gold label; the "label" of the others is None or "-".
    """

    statistics = ("right", "total")

    def update(self, predictions: Sequence[Any], rows: Sequence[Mapping[str, Any]]) -> None:
        """Counts one prediction for each row."""
        from elmo_bench.text.labels import NO_GOLD

        for predicted, row in self.tally.pairs(predictions, rows):
            gold = row["label"]
            if gold not in (None, NO_GOLD):
                self.tally.add(predicted == gold, 1, cluster=self.cluster(row))

    @staticmethod
    def from_totals(totals: Mapping[str, Number]) -> dict[str, Number]:
        """`accuracy` in percent; 0 if no row has a gold label."""
        return {"accuracy": ratio(100 * totals["right"], totals["total"])}


def score_labels(
    gold: Path | str,
    predictions: Path | str,
    labels: Labels,
    source: DataSource,
    own: Callable[[Path], Iterable[str]],
) -> dict[str, float]:
    """Accuracy of two files: one label per line, optionally in double quotes; tables of `source` with a column label;
    or the data set's own format, whose labels `own` reads. Lines whose gold label is "-" are left out.
    """
    from elmo_bench.text.labels import NO_GOLD, warn_disjoint
    from elmo_bench.text.source import TABLES

    def read(path: Path) -> Iterable[str]:
        if ending(path) != ".parquet":
            with open_text(path) as lines:
                listed = [line.strip().strip('"') for line in lines]
            first = next(filter(None, listed), "")
            if labels.find(first) or not (ending(path) in TABLES or re.search("[\t,{[(]", first)):
                return listed[:-1] if listed[-1:] == [""] else listed
        opened = source.open(path)
        if isinstance(opened, Path):
            return own(opened)
        opened.require("label")
        return labels.of_table(opened)

    expected, predicted = ([*read(Path(path))] for path in (gold, predictions))
    metric, seen = Accuracy(), (set(), set())
    for number, pair in enumerate(zip(expected, predicted, strict=False), start=1):
        found = [labels.find(label) for label in pair]
        if found[0] == NO_GOLD:
            continue
        for label, raw, path, each in zip(found, pair, (gold, predictions), seen, strict=True):
            if label in (None, NO_GOLD):
                raise UserError(labels.unknown(raw), path, number)
            each.add(label)
        metric.update(found[1:], [{"label": found[0]}])
    if len(expected) != len(predicted):
        line = min(len(predicted), len(expected)) + 1
        raise UserError(f"{len(predicted)} lines where {gold} has {len(expected)}", predictions, line)
    if not seen[0]:
        raise UserError("has no gold label", gold)
    warn_disjoint(*seen, predictions)
    return metric.compute()
