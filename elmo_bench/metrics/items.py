"""Per-example results (`Items`): the counts of each example of a split, and its cluster. Metrics computed from sums of
such counts: what they share, and F1.

Intervals are over whole clusters: the counts of their examples are summed, and the official metric is computed from the
sums.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np

P = TypeVar("P")
R = TypeVar("R")
Number = Any  # a float, or an (n,) array of floats
UNITS = ("documents", "sentences")  # what a cluster is called where clusters have names, and where they have none


@dataclass(frozen=True, eq=False)
class Items:
    """A metric's counts for each of the n examples of a split: sentences, propositions, questions, documents.

    Attributes:
        statistics: by name, (n,) numbers whose sums over the examples give the metric (`Metric.from_totals`).
        rows: (n,) integers, the row of the split (from 0) that each example belongs to.
        clusters: (n,) integers; examples of one cluster are not independent of each other (questions about one
            article). Clusters are numbered from 0 in the order of their first examples.
        names: the names of the clusters, such as the articles' titles; empty if they have only numbers.

    Raises:
        ValueError: inconsistent arrays, or numbers that are not finite.
    """

    statistics: dict[str, np.ndarray]
    rows: np.ndarray
    clusters: np.ndarray
    names: tuple[str, ...] = ()

    def __post_init__(self):
        examples = len(self.rows)
        for name, values in {**self.statistics, "rows": self.rows, "clusters": self.clusters}.items():
            if values.shape != (examples,):
                raise ValueError(f"{name} of shape {values.shape} for {examples} examples")
            if values.dtype.kind not in ("iuf" if name in self.statistics else "iu"):
                raise ValueError(f"{name} holds {values.dtype}")
            if not np.isfinite(values).all():
                raise ValueError(f"{name} holds a number that is not finite")
        number, first = np.unique(self.clusters, return_index=True)
        if not np.array_equal(number, np.arange(len(number))) or (np.diff(first) < 0).any():
            raise ValueError("clusters must be numbered from 0 in the order of their first examples")
        if self.names and len(self.names) != len(number):
            raise ValueError(f"{len(self.names)} names of {len(number)} clusters")

    def __len__(self) -> int:
        return len(self.rows)

    def totals(self) -> dict[str, float]:
        """The sum of each statistic, correctly rounded and so independent of the examples' order."""
        return {
            name: math.fsum(values.tolist()) if values.dtype.kind == "f" else float(values.sum(dtype=np.int64))
            for name, values in self.statistics.items()
        }

    def in_row_order(self, order: np.ndarray) -> Items:
        """The examples sorted by row; the i-th counted row is row order[i] of the split.

        Args:
            order: (rows,) integers, a permutation.
        """
        rows = order[self.rows]
        by_row = np.argsort(rows, kind="stable")
        distinct, first, inverse = np.unique(self.clusters[by_row], return_index=True, return_inverse=True)
        old = np.argsort(first)  # the clusters in the order of their first examples
        place = np.empty_like(old)
        place[old] = np.arange(len(old))
        return Items(
            {name: values[by_row] for name, values in self.statistics.items()},
            smallest(rows[by_row]),
            smallest(place[inverse]),
            tuple(self.names[i] for i in distinct[old]) if self.names else (),
        )


def smallest(values: Any) -> np.ndarray:
    """(n,) numbers in the smallest sufficient integer type; float64 if some are not integers."""
    x = np.asarray(values)
    if x.dtype.kind == "f" and not (np.isfinite(x).all() and (x == np.rint(x)).all() and (abs(x) < 2**53).all()):
        return x.astype(np.float64)
    low, high = (int(x.min()), int(x.max())) if len(x) else (0, 0)
    return x.astype(np.min_scalar_type(high if low >= 0 else min(low, -high - 1)))


# Metrics.


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
