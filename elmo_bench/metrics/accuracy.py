"""Accuracy for classification tasks: of predictions, and of two files with one label per line."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from elmo_bench.metrics.items import AdditiveMetric, Number, ratio
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage.files import open_text

NO_GOLD = "-"  # as SNLI marks pairs on which the annotators did not agree


class Accuracy(AdditiveMetric):
    """The share of rows whose prediction equals the gold label; rows without a gold label are left out.

    An example is a row with a gold label; the "label" of the others is None or "-".
    """

    statistics = ("right", "total")

    def update(self, predictions: Sequence[Any], rows: Sequence[Mapping[str, Any]]) -> None:
        """Counts one prediction for each row."""
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
    labels: Collection[str],
    own: Callable[[Path], list[str] | None] = lambda path: None,
) -> dict[str, float]:
    """Accuracy of two files with one label per line; lines whose gold label is "-" are left out.

    Labels may be in double quotes. `own` reads `gold` if it is a file of the data set, and else gives None.

    Raises:
        UserError: a file that cannot be read, an unknown label, files of different length, no gold label at all.
    """
    expected, predicted = own(Path(gold)) or _read(gold), _read(predictions)
    metric, labelled = Accuracy(), False
    for number, (right, given) in enumerate(zip(expected, predicted, strict=False), start=1):
        if right == NO_GOLD:
            continue
        _check(right, [*labels, NO_GOLD], gold, number)
        _check(given, labels, predictions, number)
        metric.update([given], [{"label": right}])
        labelled = True
    if len(expected) != len(predicted):
        raise UserError(
            f"{len(predicted)} lines where {gold} has {len(expected)}",
            predictions,
            min(len(predicted) + 1, len(expected) + 1),
        )
    if not labelled:
        raise UserError("has no gold label", gold)
    return metric.compute()


def _read(path: Path | str) -> list[str]:
    with open_text(path) as lines:
        return [line.strip().strip('"') for line in lines]


def _check(label: str, labels: Collection[str], path: Path | str, line: int) -> None:
    if label not in labels:
        what = f"unknown label {label!r}" if label else "no label"
        raise UserError(f"{what}; choose from {', '.join(labels)}", path, line)
