"""The uncertainty of an estimate: its 95 % interval, p and power, from one standard error, also for few seeds.

The interval of a gain is its mean ± t * s. s has a closed form: the variance of seeds, for each arm divided by its
number of seeds, and the variance over clusters of examples, for both arms together, by the infinitesimal jackknife
(Jaeckel 1972): the sum of squares of each cluster's contribution to the gain. t is the quantile of Student's
distribution with the degrees of freedom of Welch and Satterthwaite for these parts. `python -m tests.simulate` measures
how often the interval covers the truth.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, NamedTuple

import numpy as np
from hydra.utils import get_class
from scipy import special  # scipy.stats takes a millisecond for a value

from elmo_bench.configuration import pages
from elmo_bench.metrics.items import UNITS, Items
from elmo_bench.records import items
from elmo_bench.records.record import Record
from elmo_bench.system import code

FromTotals = Callable[[Mapping[str, Any]], Mapping[str, Any]]
STEP = 1e-3  # the change of a cluster's weight, in the derivative of a metric


# Clusters of examples: their counts in a run, and their contributions to the metric.


class Evidence:
    """Per-example results of one split.

    Args:
        from_totals, units: from the task's metric, see `AdditiveMetric`.
        metric: the name of one of its numbers.

    Attributes:
        table: (K, M) the sums of the M statistics over the examples of each of the K clusters.
        names: the names of the clusters; empty if they have none.
        unit: the kind of clusters, such as "documents".
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
        except (TypeError, ValueError, ArithmeticError):  # a metric that accepts only numbers
            totals = (dict(zip(self._statistics, row, strict=True)) for row in sums.tolist())
            return np.array([self._from_totals(each)[self._metric] for each in totals])

    @cached_property
    def influences(self) -> np.ndarray:
        """(K,) the contribution of each cluster to the metric, in percent.

        This is the derivative with respect to the cluster's weight, minus the mean: the infinitesimal jackknife, whose
        sum of squares is the variance of the metric over clusters (Efron 1982, "The jackknife, the bootstrap and other
        resampling plans").
        """
        total, step = self.table.sum(0), STEP * self.table
        slopes = (self.percent(total + step) - self.percent(total - step)) / (2 * STEP)
        return slopes - slopes.mean()

    def pairs_with(self, other: Evidence) -> bool:
        """Whether both have the same examples."""
        return np.array_equal(self.rows, other.rows) and np.array_equal(self.clusters, other.clusters)


def of_arm(records: Sequence[Record], split: str, metric: str) -> list[Evidence]:
    """The evidence of each run of an arm; empty if one of them has none, or if their examples differ."""
    known = [each for record in records if (each := of_run(record, split, metric))]
    return known if len(known) == len(records) and all(each.pairs_with(known[0]) for each in known) else []


def of_run(record: Record, split: str, metric: str) -> Evidence | None:
    """The evidence of a run; None if its per-example results are missing or of another version of the metric."""
    path = record.path and items.path_of(record.path)
    name = (record.config["task"].get("metric") or {}).get("_target_")
    if name is None or name != pages.written("task", record.task, "metric._target_"):
        return None  # code is run only if a page names it
    if path is None or not path.is_file():
        return None
    found = _read(path, path.stat().st_mtime_ns, split, get_class(code.located(name)), metric)
    recorded = record.metrics[split][metric]
    return found if found is not None and abs(found.value - recorded) <= items.TOLERANCE else None


def missing_reason(records: Sequence[Record]) -> str:
    """The reason why `of_arm` found no evidence for all of these runs."""
    for record in records:
        path = record.path and items.path_of(record.path)
        if record.task not in pages.tasks():
            return f"per-example results need the configuration file of {record.task}: give its folder as -cd FOLDER"
        if path is not None and not path.is_file():
            return f"{path.name} with per-example results is not beside its record"
    return "no per-example results in common"


@lru_cache(maxsize=4096)  # a run is compared with several others
def _read(path: Path, modified: int, split: str, metric_class: Any, metric: str) -> Evidence | None:
    scored = items.read(path).get(split)
    try:
        units = getattr(metric_class, "units", UNITS)
        return None if scored is None else Evidence(scored, metric_class.from_totals, metric, units)
    except KeyError:  # the counts of another version of the metric
        return None


# Intervals.

CONFIDENCE, POWER = 0.95, 0.8
LEVEL = 1 - CONFIDENCE  # the level of significance
Bounds = tuple[float, float]
ABOVE_ZERO: Bounds = (0.0, float("inf"))
Part = tuple[float, float]  # a part of a variance, with the degrees of freedom of its estimate


class Spread(NamedTuple):
    """The distance of an estimate from the truth, by Student's distribution.

    The smallest of several values estimates the smallest of their true values, but the smallest of noisy values is
    biased. It is shown to be above a bound if each value is (the intersection-union test, Berger 1982), and below, if
    one value is, at a level divided by their number.

    Attributes:
        error: the standard error, in the unit of the estimate.
        degrees: the degrees of freedom of its estimate.
        others: for an estimate that is the smallest of several values, the other values, each with its spread.
    """

    error: float
    degrees: float
    others: tuple[tuple[float, Spread], ...] = ()

    @classmethod
    def of_values(cls, values: Sequence[float]) -> Spread | None:
        """The spread of the mean of independent values; None for a single value, or if all are equal."""
        if len(values) < 2 or not (deviation := stdev(values)):
            return None
        return cls(deviation / len(values) ** 0.5, len(values) - 1)

    @property
    def half(self) -> float:
        """Half the width of the 95 % interval."""
        return float(special.stdtrit(self.degrees, (1 + CONFIDENCE) / 2)) * self.error

    @property
    def least(self) -> float:
        """The true difference from a bound that the interval shows with probability POWER: by the noncentral t."""
        return float(special.nctdtrinc(self.degrees, 1 - POWER, self._replace(error=1.0).half)) * self.error

    def power_between(self, bounds: Bounds) -> float:
        """The probability that the interval lies between two bounds, for a true value in their middle."""
        ratios = special.chdtri(self.degrees, (np.arange(1000) + 0.5) / 1000) / self.degrees
        room = (bounds[1] - bounds[0]) / 2 - self.half * np.sqrt(ratios)  # of estimated errors to the true one
        return float(np.maximum(0, 2 * special.ndtr(room / self.error) - 1).mean())

    def around(self, value: float) -> tuple[float, float]:
        """The 95 % interval of an estimate."""
        every = [(value, self), *self.others]
        level = 1 - LEVEL / 2 / len(every)
        ends = [each + float(special.stdtrit(spread.degrees, level)) * spread.error for each, spread in every]
        return min(each - spread.half for each, spread in every), min(ends)

    def p(self, value: float, bounds: Bounds = ABOVE_ZERO) -> float:
        """The two-sided p: below 0.05 exactly if the 95 % interval lies inside the bounds, or outside them.

        With one finite bound it is the usual p of a difference from it.
        """
        every = [(value, self), *self.others]
        above = [max(spread.one_sided_p(each - bound) for each, spread in every) for bound in bounds]
        below = [len(every) * min(spread.one_sided_p(bound - each) for each, spread in every) for bound in bounds]
        return min(1.0, 2 * min(max(above[0], below[1]), min(below[0], above[1])))

    def one_sided_p(self, distance: float) -> float:
        """The one-sided p of an estimate that lies this far on the right side of a bound."""
        return float(special.stdtr(self.degrees, -distance / self.error)) if self.error else float(distance <= 0)


def smallest(columns: Sequence[Sequence[float]]) -> tuple[float, Spread | None]:
    """The smallest of several means with its spread, from the independent values of each; None if none vary."""
    spreads = [Spread.of_values(column) for column in columns]
    known = [each or Spread(0.0, len(columns[0]) - 1) for each in spreads]
    (value, spread), *others = sorted(zip(map(fmean, columns), known, strict=True))
    return value, spread._replace(others=tuple(others)) if any(spreads) else None


class Arm(NamedTuple):
    """The scores of an arm's seeds, or of its biLMs if there are several.

    Attributes:
        scores: (n,) percent, on all examples.
        influences: (n, K) the contribution of each of the K clusters of examples to a score, in percent, see
            `Evidence.influences`; (n, 0) without per-example results, or with a single cluster.
        pooled: the variance of a score, estimated from all arms of the task, with its degrees of freedom.
    """

    scores: np.ndarray
    influences: np.ndarray
    pooled: Part | None = None

    @classmethod
    def of(cls, scores: Sequence[float], evidence: Sequence[Evidence], pooled: Part | None = None) -> Arm:
        """An arm from the scores of its seeds, with the evidence of every seed or of none."""
        added = np.zeros((len(scores), 0))
        if evidence and len(evidence[0].table) > 1:
            added = np.stack([each.influences for each in evidence])
        return cls(np.array(scores), added, pooled)

    def scaled(self, factor: float) -> Arm:
        """The arm with all its scores multiplied."""
        pooled = self.pooled and (self.pooled[0] * factor**2, self.pooled[1])
        return Arm(self.scores * factor, self.influences * factor, pooled)


def total(arms: Sequence[Arm]) -> tuple[float, np.ndarray]:
    """The sum of the means of these arms, and (K,) the contribution of each cluster to it."""
    return float(sum(arm.scores.mean() for arm in arms)), np.sum([arm.influences.mean(0) for arm in arms], axis=0)


def spread(*arms: Arm) -> Spread | None:
    """The spread of the sum of the means of these arms (a control is `scaled` by -1); None if unknown.

    It is unknown with one seed in each arm and no per-example results, and if all known values are equal: equal scores
    do not mean that others would be equal.

    The noise of single seeds on single examples is a difference both of seeds and of clusters, and is counted once
    (Owen 2007, "The pigeonhole bootstrap"). By chance few seeds may differ by less than this noise alone; then the
    variance over clusters is that of the gain.

    Of the seeds' own variance and the pooled one, the variance with the wider interval counts: a few seeds may agree by
    chance, and a test of equal variances does not notice a few noisy seeds among many others.
    """
    own = _spread(arms, [None] * len(arms))
    pooled = [arm.pooled for arm in arms]
    of_all = _spread(arms, pooled) if any(pooled) else None
    return max(filter(None, (own, of_all)), key=lambda found: found.half, default=None)


def _spread(arms: Sequence[Arm], pooled: Sequence[Part | None]) -> Spread | None:
    """The spread by the pooled variance of each arm, or else its own. A single seed gets the other arm's variance."""
    numbers, parts = [len(arm.scores) for arm in arms], list[Part]()
    variances = [  # of a seed's score, unbiased
        None if number == 1 else given or (float(arm.scores.var(ddof=1)), number - 1)
        for arm, number, given in zip(arms, numbers, pooled, strict=True)
    ]
    if several := [each for each in variances if each]:
        varying = zip((each or several[0] for each in variances), numbers, strict=True)
        parts = [(variance / number, degrees) for (variance, degrees), number in varying]
        if len(several) < len(arms) or all(pooled):  # one estimate for several arms is one part
            parts = [(sum(variance for variance, _ in parts), parts[0][1])]
    added = total(arms)[1]
    if len(added):
        growth = len(added) / (len(added) - 1)  # the mean of K values is estimated, too
        noises = {  # the variance of a seed's distance from the mean over seeds due to its clusters, unbiased
            i: float(((arm.influences - arm.influences.mean(0)) ** 2).sum() / (numbers[i] - 1))
            for i, arm in enumerate(arms)
            if numbers[i] > 1
        }
        most = max(noises.values(), default=0.0)
        noise = growth * sum(noises.get(i, most) / number for i, number in enumerate(numbers))
        over_clusters = growth * float((added**2).sum()) - min(noise, sum(variance for variance, _ in parts))
        # The effective number of the squares of K normal values with equal variances is K/3.
        parts.append((max(0.0, over_clusters), float(np.clip(3 * effective(added) - 1, 1, len(added) - 1))))
    if not (squares := sum(variance**2 / degrees for variance, degrees in parts)):
        return None
    variance = sum(variance for variance, _ in parts)
    return Spread(variance**0.5, variance**2 / squares)


def effective(added: np.ndarray) -> float:
    """The effective number of clusters: the equivalent number of equal weight; 1 if one has all the variance."""
    squares = added**2
    return float(squares.sum() ** 2 / (squares**2).sum()) if squares.any() else 0.0


def interval_text(interval: tuple[float, float] | None, form: str = "{:+.2f}", between: str = " to ") -> str:
    """The ends of an interval, "+2.67 to +7.96"; empty without one."""
    return between.join(map(form.format, interval or ()))


@lru_cache(maxsize=256)  # the gains of a task have the same
def pool(samples: tuple[tuple[float, ...], ...]) -> tuple[Part | None, str]:
    """The common variance of the seeds of several arms, if they have one; and the reason to doubt an interval.

    From the scores of the seeds of each arm, by the tests of Bartlett (equal variances) and of Shapiro and Wilk.
    """
    from scipy.stats import bartlett, shapiro

    several = [np.array(sample, dtype=float) for sample in samples if len(sample) > 1 and np.ptp(sample)]
    if len(several) < 2:
        return None, ""
    deviations = [(sample - sample.mean()) * (len(sample) / (len(sample) - 1)) ** 0.5 for sample in several]
    unequal, normal = float(bartlett(*several).pvalue), float(shapiro(np.concatenate(deviations)).pvalue)
    if unequal < LEVEL:
        return None, "do not trust the interval: the seeds of the task's arms vary unequally"
    degrees = sum(len(sample) - 1 for sample in several)
    variance = sum(float(sample.var()) * len(sample) for sample in several) / degrees
    doubt = "do not trust the interval: the scores of seeds are not normal, as of two regimes"
    return (variance, degrees), doubt if normal < LEVEL else ""
