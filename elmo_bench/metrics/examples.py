"""Per-example results: the counts of each example of a split, whose sums give the official metric, and its cluster.

Intervals are over whole clusters: the counts of their examples are summed, and the official metric is computed from the
sums.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

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
