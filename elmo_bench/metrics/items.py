"""Metrics computed from sums over examples (`Items`): what they share, and F1."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

import numpy as np

from elmo_bench.metrics.examples import UNITS, Items, smallest

P = TypeVar("P")
R = TypeVar("R")
Number = Any  # a float, or an (n,) array of floats


def ratio(top: Number, bottom: Number) -> Number:
    """top / bottom, or 0 if bottom is 0; element by element for arrays."""
    if isinstance(bottom, np.ndarray):
        return np.divide(top, bottom, out=np.zeros(bottom.shape), where=bottom != 0)
    return top / bottom if bottom else 0.0


class Tally:
    """Collects examples one at a time."""

    def __init__(self, *statistics: str):
        self._values: dict[str, list[float]] = {name: [] for name in statistics}
        self._rows: list[int] = []
        self._keys: list[Hashable] = []
        self._row = -1

    def pairs(self, predictions: Sequence[P], rows: Sequence[R]) -> Iterator[tuple[P, R]]:
        """Each prediction with its row; examples added during an iteration belong to that row."""
        for pair in zip(predictions, rows, strict=True):
            self._row += 1
            yield pair

    def add(self, *values: float, cluster: Hashable = None) -> None:
        """Adds one example.

        Args:
            values: the values of the statistics, in their order.
            cluster: the key of its cluster, from `AdditiveMetric.cluster`.
        """
        for column, value in zip(self._values.values(), values, strict=True):
            column.append(value)
        self._rows.append(self._row if self._row >= 0 else len(self._rows))
        self._keys.append(cluster)

    def items(self) -> Items:
        """All examples, in the order in which they were added; one without a key is alone in its cluster."""
        statistics = {name: smallest(values) for name, values in self._values.items()}
        numbers: dict[Hashable, int] = {}
        clusters = [numbers.setdefault(object() if key is None else key, len(numbers)) for key in self._keys]
        names = tuple(key for key in numbers if isinstance(key, str))
        names = names if len(names) == len(numbers) else ()
        return Items(statistics, smallest(self._rows), smallest(clusters), names)


class AdditiveMetric(ABC):
    """Base class of metrics computed from sums over examples: `elmo_bench.task.Metric` without `update`.

    A subclass names its `statistics`, adds examples to `tally`, and computes the metric from the sums in `from_totals`.

    Attributes:
        units: the plural noun for clusters with names, and for clusters without.
    """

    statistics: ClassVar[tuple[str, ...]]
    units: ClassVar[tuple[str, str]] = UNITS

    def __init__(self):
        self.tally = Tally(*self.statistics)

    def cluster(self, row: Mapping[str, Any]) -> Hashable:
        """The key of the cluster of a row's examples, a string if it is a name; None if the row is independent."""
        return row.get("document")

    def items(self) -> Items:
        """All examples so far."""
        return self.tally.items()

    @staticmethod
    @abstractmethod
    def from_totals(totals: Mapping[str, Number]) -> dict[str, Number]:
        """The metric in percent, from the sum of each statistic; from an array of sums of many resamples, an array.

        A report is faster if arrays are accepted, as by `ratio`; otherwise it computes one resample at a time.
        """

    def compute(self) -> dict[str, float]:
        """The metric in percent."""
        return self.from_totals(self.items().totals())


class F1Metric(AdditiveMetric):
    """Precision, recall and F1 from correct (tp), wrongly predicted (fp) and missed (fn) items."""

    statistics = ("tp", "fp", "fn")

    @staticmethod
    def from_totals(totals: Mapping[str, Number]) -> dict[str, Number]:
        """f1, precision and recall in percent; each is 0 where it would divide by 0."""
        tp, fp, fn = totals["tp"], totals["fp"], totals["fn"]
        precision, recall = ratio(100 * tp, tp + fp), ratio(100 * tp, tp + fn)
        return {"f1": ratio(2 * precision * recall, precision + recall), "precision": precision, "recall": recall}
