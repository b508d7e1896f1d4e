"""How far an estimate spreads: its 95 % interval, its p and its power, all of one standard error; honest at few seeds.

The interval of a gain is its mean ± t * s. s is the deviation of the gain over 2,000 draws of a multi-bootstrap: seeds
are drawn in each arm apart, clusters of examples for both together. With few seeds or clusters the plain one is too
narrow, because they vary less when resampled than new ones do: the deviations of n are multiplied by sqrt(n/(n - 1)),
and t is the quantile of Student's distribution with the degrees of freedom that Welch and Satterthwaite give for the
parts of the variance. With many seeds it is too wide, because it counts the noise of one seed on one example several
times: here it counts once. `tests/drill/intervals.py` measures how often the interval covers the truth.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import stdev
from typing import NamedTuple

import numpy as np

from elmo_bench.reporting.statistics import resampling
from elmo_bench.reporting.statistics.evidence import Evidence

CONFIDENCE, POWER = 0.95, 0.8
LEVEL = 1 - CONFIDENCE  # a p below it is small
Bounds = tuple[float, float]
ABOVE_ZERO: Bounds = (0.0, float("inf"))


class Spread(NamedTuple):
    """How far an estimate lies from the truth, by Student's distribution.

    Attributes:
        error: the standard error, in the unit of the estimate.
        degrees: of freedom with which it is estimated.
    """

    error: float
    degrees: float

    @classmethod
    def of_values(cls, values: Sequence[float]) -> Spread | None:
        """That of the mean of independent values; None for a single one, or where all are equal."""
        if len(values) < 2 or not (deviation := stdev(values)):
            return None
        return cls(deviation / len(values) ** 0.5, len(values) - 1)

    @classmethod
    def of_interval(cls, low: float, high: float, degrees: float) -> Spread:
        """That of a 95 % interval."""
        return cls((high - low) / 2 / cls(1.0, degrees).half, degrees)

    @property
    def half(self) -> float:
        """Half the width of the 95 % interval."""
        return self._quantile((1 + CONFIDENCE) / 2) * self.error

    @property
    def least(self) -> float:
        """The true difference from a bound that the interval shows with probability POWER."""
        return self.half + self._quantile(POWER) * self.error

    def around(self, value: float) -> tuple[float, float]:
        """The 95 % interval of an estimate."""
        return value - self.half, value + self.half

    def p(self, value: float, bounds: Bounds = ABOVE_ZERO) -> float:
        """The two-sided p: below 0.05 exactly where the 95 % interval lies inside the bounds, or outside them.

        With one finite bound it is the usual p of a difference from it.
        """
        least, most = bounds
        inside = max(self._one_sided_p(value - least), self._one_sided_p(most - value))
        outside = min(self._one_sided_p(least - value), self._one_sided_p(value - most))
        return min(1.0, 2 * min(inside, outside))

    def _one_sided_p(self, distance: float) -> float:
        """The one-sided p of an estimate that lies this far on the right side of a bound."""
        from scipy.special import stdtr  # Student's distribution; scipy.stats takes a millisecond for a value

        return float(stdtr(self.degrees, -distance / self.error)) if self.error else float(distance <= 0)

    def _quantile(self, probability: float) -> float:
        from scipy.special import stdtrit

        return float(stdtrit(self.degrees, probability))


class Arm(NamedTuple):
    """The scores of an arm's seeds.

    Attributes:
        scores: (n,) percent, on all examples.
        drawn: (n, DRAWS) percent, on each draw of clusters; (n, 1) `scores` without per-example results.
        clusters: their number; 0 without per-example results, or with a single cluster.
    """

    scores: np.ndarray
    drawn: np.ndarray
    clusters: int

    @classmethod
    def of(cls, scores: Sequence[float], evidence: Sequence[Evidence] | None) -> Arm:
        """From the recorded scores, and the evidence of each run if there is any."""
        values = np.array(scores)
        if evidence is None or len(evidence[0].table) < 2:
            return cls(values, values[:, None], 0)
        return cls(values, np.stack([each.drawn for each in evidence]), len(evidence[0].table))

    def scaled(self, factor: float) -> Arm:
        """The arm with all its scores multiplied."""
        return Arm(self.scores * factor, self.drawn * factor, self.clusters)

    @property
    def size(self) -> int:
        """The number of seeds."""
        return len(self.scores)

    @property
    def variance(self) -> float:
        """Of a seed's score, unbiased."""
        return float(self.scores.var(ddof=1))

    @property
    def noise(self) -> float:
        """The variance over draws of clusters of how far a seed's score lies from the mean over seeds, unbiased."""
        return self.growth * float((self.drawn - self.drawn.mean(0)).var(axis=1).sum() / (self.size - 1))

    @property
    def growth(self) -> float:
        """The correction for K resampled clusters, which have only (K - 1)/K of the variance of new ones."""
        return self.clusters / (self.clusters - 1) if self.clusters else 1.0


Part = tuple[float, int]  # of the variance of a gain, with the degrees of freedom with which it is estimated


def spread(treated: Arm, control: Arm) -> Spread | None:
    """That of the gain, in percent points; None where nothing is known of it.

    So it is with one seed in each arm and no per-example results, and where nothing that is known differs: equal scores
    do not say that others would be equal.
    """
    parts = _parts(treated, control)
    if not (known := sum(variance**2 / degrees for variance, degrees in parts)):
        return None
    degrees = sum(variance for variance, _ in parts) ** 2 / known
    return Spread(float(draws(treated, control).std(ddof=1)), degrees)


def draws(treated: Arm, control: Arm) -> np.ndarray:
    """(DRAWS,) the gain on each draw of seeds and clusters of examples, less its mean.

    Seeds are drawn in each arm apart, clusters for both together.
    """
    one = treated.scores if treated.size > 1 else control.scores  # a single seed says nothing, so the other arm's
    other = control.scores if control.size > 1 else treated.scores
    seeds = resampling.seed_noise(one, treated.size, 0) - resampling.seed_noise(other, control.size, 1)
    return seeds + _items_share(treated, control) ** 0.5 * _over_items(treated, control)


def _parts(treated: Arm, control: Arm) -> list[Part]:
    """The parts of the variance of a gain: seeds of either arm, and examples; none where nothing is known of it."""
    parts = _seed_parts(treated, control)
    if treated.clusters:
        variance = _items_share(treated, control) * float(_over_items(treated, control).var(ddof=1))
        parts.append((variance, treated.clusters - 1))
    return parts


def _seed_parts(treated: Arm, control: Arm) -> list[Part]:
    """Those of the seeds; none with a single seed in each arm."""
    if treated.size > 1 and control.size > 1:
        return [(arm.variance / arm.size, arm.size - 1) for arm in (treated, control)]
    many = max(treated, control, key=lambda arm: arm.size)
    return [(many.variance * (1 / many.size + 1), many.size - 1)] if many.size > 1 else []


def _over_items(treated: Arm, control: Arm) -> np.ndarray:
    """(DRAWS,) or (1,) the mean gain of the seeds on each draw of clusters, less its mean."""
    gains = treated.drawn.mean(0) - control.drawn.mean(0)
    return treated.growth**0.5 * (gains - gains.mean())


def _items_share(treated: Arm, control: Arm) -> float:
    """How much of the variance over draws of clusters is new, from 0 to 1.

    The rest is the noise of single seeds on single examples: seeds differ from each other by it too, so adding both
    variances would count it twice (Owen 2007, "The pigeonhole bootstrap"). By chance few seeds may differ by less than
    this noise alone; then the variance over examples is that of the gain.
    """
    whole = float(_over_items(treated, control).var())
    if not whole:
        return 0.0
    known = [arm.noise for arm in (treated, control) if arm.size > 1]
    own = sum((arm.noise if arm.size > 1 else max(known, default=0.0)) / arm.size for arm in (treated, control))
    return max(0.0, 1 - min(own, sum(variance for variance, _ in _seed_parts(treated, control))) / whole)
