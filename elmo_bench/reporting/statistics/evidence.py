"""What is known of each cluster of examples in one run: its counts, and what it adds to the metric."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from hydra.utils import get_class

from elmo_bench.configuration import pages
from elmo_bench.metrics.items import AdditiveMetric, Items
from elmo_bench.records import items
from elmo_bench.records.record import Record
from elmo_bench.system import code

UNITS = AdditiveMetric.units
FromTotals = Callable[[Mapping[str, Any]], Mapping[str, Any]]
Percent = Callable[[np.ndarray], np.ndarray]  # (n, M) sums -> (n,) percent
STEP = 1e-3  # of a cluster's weight, in the derivative of a metric


class Evidence:
    """A run's per-example results of one split.

    Args:
        from_totals, units: of the task's metric, see `AdditiveMetric`.
        metric: which of its numbers.

    Attributes:
        table: (K, M) the sums of the M statistics over the examples of each of the K clusters.
        names: of the clusters; empty if they have none.
        unit: what the clusters are, such as "documents".
        value: the metric over all clusters, in percent.
    """

    def __init__(self, scored: Items, from_totals: FromTotals, metric: str, units: tuple[str, str] = UNITS):
        self._from_totals, self._metric, self._statistics = from_totals, metric, tuple(scored.statistics)
        self.rows, self.clusters, self.names = scored.rows, scored.clusters, scored.names
        self.unit = units[not scored.names]
        columns = [np.bincount(scored.clusters, weights=values) for values in scored.statistics.values()]
        self.table = np.stack(columns, axis=1)
        self.value = float(from_totals(scored.totals())[metric])

    def percent(self, sums: np.ndarray) -> np.ndarray:
        """(n, M) sums of the M statistics -> (n,) the metric. F1 is computed from the sums, never averaged."""
        try:
            with np.errstate(divide="raise", invalid="raise"):
                found = self._from_totals(dict(zip(self._statistics, sums.T, strict=True)))[self._metric]
            return np.broadcast_to(found, len(sums))
        except (TypeError, ValueError, ArithmeticError):  # a metric that takes numbers alone
            totals = (dict(zip(self._statistics, row, strict=True)) for row in sums.tolist())
            return np.array([self._from_totals(each)[self._metric] for each in totals])

    @cached_property
    def influences(self) -> np.ndarray:
        """(K,) what each cluster adds to the metric, in percent."""
        return influences(self.percent, self.table)

    def without(self, cluster: int) -> float:
        """The metric without one of the clusters, in percent."""
        return float(self.percent((self.table.sum(0) - self.table[cluster])[None])[0])

    def pairs_with(self, other: Evidence) -> bool:
        """Whether both are of the same examples."""
        return np.array_equal(self.rows, other.rows) and np.array_equal(self.clusters, other.clusters)


def influences(percent: Percent, table: np.ndarray) -> np.ndarray:
    """(K, M) counts of each cluster -> (K,) what each adds to a metric of their sums.

    It is the derivative by the weight of the cluster, less the mean: the infinitesimal jackknife, whose sum of squares
    is the variance of the metric over clusters (Efron 1982, "The jackknife, the bootstrap and other resampling plans").
    """
    total, step = table.sum(0), STEP * table
    slopes = (percent(total + step) - percent(total - step)) / (2 * STEP)
    return slopes - slopes.mean()


def of_arm(records: Sequence[Record], split: str, metric: str) -> list[Evidence]:
    """The evidence of each run of an arm; none if it lacks for one of them, or their examples differ."""
    known = [each for record in records if (each := of_run(record, split, metric))]
    return known if len(known) == len(records) and all(each.pairs_with(known[0]) for each in known) else []


def of_run(record: Record, split: str, metric: str) -> Evidence | None:
    """The evidence of a run; None if per-example results are missing, or of another version of the metric.

    Raises:
        UserError: the file of per-example results is damaged.
    """
    path = record.path and items.path_of(record.path)
    name = (record.config["task"].get("metric") or {}).get("_target_")
    if path is None or name is None or name != pages.written("task", record.task, "metric._target_"):
        return None  # no code is run that no page names
    if not path.is_file():
        return None
    found = _read(path, path.stat().st_mtime_ns, split, get_class(code.located(name)), metric)
    recorded = record.metrics[split][metric]
    return found if found is not None and abs(found.value - recorded) <= items.TOLERANCE else None


def lacking(records: Sequence[Record]) -> str:
    """Why `of_arm` found none for all of these runs, in words."""
    for record in records:
        path = record.path and items.path_of(record.path)
        if record.task not in pages.tasks():
            return f"per-example results need the configuration file of {record.task}: give its folder as -cd FOLDER"
        if path is not None and not path.is_file():
            return f"{path.name} with per-example results is not beside its record"
    return "no per-example results in common"


@lru_cache(maxsize=4096)
def _read(path: Path, written: int, split: str, metric_class: Any, metric: str) -> Evidence | None:
    """Remembered, because a run is compared with several others; `written` is the file's time."""
    scored = items.read(path).get(split)
    try:
        units = getattr(metric_class, "units", UNITS)
        return None if scored is None else Evidence(scored, metric_class.from_totals, metric, units)
    except KeyError:  # the counts of another version of the metric
        return None
