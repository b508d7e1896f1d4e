"""How far an estimate spreads: its 95 % interval, its p and its power, all of one standard error; honest at few seeds.

The interval of a gain is its mean ± t * s. s has a closed form: the variance of seeds, of each arm by its number of
seeds, and that of clusters of examples, for both arms together, by the infinitesimal jackknife (Jaeckel 1972): the sum
of squares of what each cluster adds to the gain. t is the quantile of Student's distribution with the degrees of
freedom that Welch and Satterthwaite give for these parts. `python -m tests.simulate` measures how often the interval
covers the truth.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from statistics import stdev
from typing import NamedTuple

import numpy as np

CONFIDENCE, POWER = 0.95, 0.8
LEVEL = 1 - CONFIDENCE  # a p below it is small
Bounds = tuple[float, float]
ABOVE_ZERO: Bounds = (0.0, float("inf"))
Part = tuple[float, float]  # of a variance, with the degrees of freedom with which it is estimated


class Spread(NamedTuple):
    """How far an estimate lies from the truth, by Student's distribution.

    The smallest of several values estimates the smallest of their truths, and the smallest of noisy values alone is
    biased. That it is above a bound is shown if it is of each value (the intersection-union test, Berger 1982); that it
    is below, if it is of one, at a level divided by their number.

    Attributes:
        error: the standard error, in the unit of the estimate.
        degrees: of freedom with which it is estimated.
        others: the other values, each with its spread, of an estimate that is the smallest of several.
    """

    error: float
    degrees: float
    others: tuple[tuple[float, Spread], ...] = ()

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
        return self.quantile((1 + CONFIDENCE) / 2) * self.error

    @property
    def least(self) -> float:
        """The true difference from a bound that the interval shows with probability POWER: by the noncentral t."""
        from scipy.special import nctdtrinc

        return float(nctdtrinc(self.degrees, 1 - POWER, self._replace(error=1.0).half)) * self.error

    def power_between(self, bounds: Bounds) -> float:
        """The probability that the interval lies between two bounds, of a true value in their middle."""
        from scipy.special import chdtri, ndtr

        estimated = np.sqrt(chdtri(self.degrees, (np.arange(1000) + 0.5) / 1000) / self.degrees)  # errors, as shares
        room = (bounds[1] - bounds[0]) / 2 - self.half * estimated
        return float(np.maximum(0, 2 * ndtr(room / self.error) - 1).mean())

    def around(self, value: float) -> tuple[float, float]:
        """The 95 % interval of an estimate."""
        every = [(value, self), *self.others]
        level = 1 - LEVEL / 2 / len(every)
        low = min(each - spread.half for each, spread in every)
        return low, min(each + spread.quantile(level) * spread.error for each, spread in every)

    def p(self, value: float, bounds: Bounds = ABOVE_ZERO) -> float:
        """The two-sided p: below 0.05 exactly where the 95 % interval lies inside the bounds, or outside them.

        With one finite bound it is the usual p of a difference from it.
        """
        every = [(value, self), *self.others]
        above = [max(spread.one_sided_p(each - bound) for each, spread in every) for bound in bounds]
        below = [len(every) * min(spread.one_sided_p(bound - each) for each, spread in every) for bound in bounds]
        return min(1.0, 2 * min(max(above[0], below[1]), min(below[0], above[1])))

    def one_sided_p(self, distance: float) -> float:
        """The one-sided p of an estimate that lies this far on the right side of a bound."""
        from scipy.special import stdtr  # Student's distribution; scipy.stats takes a millisecond for a value

        return float(stdtr(self.degrees, -distance / self.error)) if self.error else float(distance <= 0)

    def quantile(self, probability: float) -> float:
        """Of Student's distribution with these degrees of freedom."""
        from scipy.special import stdtrit

        return float(stdtrit(self.degrees, probability))


class Arm(NamedTuple):
    """The scores of an arm's seeds; or of its biLMs, where there are several.

    Attributes:
        scores: (n,) percent, on all examples.
        influences: (n, K) what each of the K clusters of examples adds to a score, in percent, see
            `Evidence.influences`; (n, 0) without per-example results, or with a single cluster.
        pooled: the variance of a score as all arms of the task tell it, with its degrees of freedom.
    """

    scores: np.ndarray
    influences: np.ndarray
    pooled: Part | None = None

    def scaled(self, factor: float) -> Arm:
        """The arm with all its scores multiplied."""
        pooled = self.pooled and (self.pooled[0] * factor**2, self.pooled[1])
        return Arm(self.scores * factor, self.influences * factor, pooled)

    @property
    def size(self) -> int:
        """The number of seeds."""
        return len(self.scores)

    @property
    def variance(self) -> Part | None:
        """Of a seed's score, unbiased; None for a single seed."""
        if self.size == 1:
            return None
        return self.pooled or (float(self.scores.var(ddof=1)), self.size - 1)

    @property
    def noise(self) -> float:
        """The variance of how far a seed's score lies from the mean over seeds because of its clusters, unbiased."""
        return float(((self.influences - self.influences.mean(0)) ** 2).sum() / (self.size - 1))


def total(arms: Sequence[Arm]) -> tuple[float, np.ndarray]:
    """The sum of the means of these arms, and (K,) what each cluster adds to it."""
    return float(sum(arm.scores.mean() for arm in arms)), np.sum([arm.influences.mean(0) for arm in arms], axis=0)


def spread(*arms: Arm) -> Spread | None:
    """That of the sum of the means of these arms (a control is `scaled` by -1); None where nothing is known of it.

    So it is with one seed in each arm and no per-example results, and where nothing that is known differs: equal scores
    do not say that others would be equal.

    The noise of single seeds on single examples is a difference both of seeds and of clusters, and is counted once
    (Owen 2007, "The pigeonhole bootstrap"). By chance few seeds may differ by less than this noise alone; then the
    variance over clusters is that of the gain.

    Of the seeds' own variance and the pooled one, that with the wider interval counts: a few seeds may agree by chance,
    and a few noisy ones among many others are not noticed by a test of equal variances.
    """
    own = _spread([arm._replace(pooled=None) for arm in arms])
    of_all = _spread(arms) if any(arm.pooled for arm in arms) else None
    return max(filter(None, (own, of_all)), key=lambda found: found.half, default=None)


def _spread(arms: Sequence[Arm]) -> Spread | None:
    parts, (_, added) = _over_seeds(arms), total(arms)
    if len(added):
        growth = len(added) / (len(added) - 1)  # the mean of K values is estimated, too
        known = [arm.noise for arm in arms if arm.size > 1]
        noise = growth * sum((arm.noise if arm.size > 1 else max(known, default=0.0)) / arm.size for arm in arms)
        over_clusters = growth * float((added**2).sum()) - min(noise, sum(variance for variance, _ in parts))
        # The squares of K normal values of one variance have K/3 effective ones.
        parts.append((max(0.0, over_clusters), float(np.clip(3 * effective(added) - 1, 1, len(added) - 1))))
    if not (known := sum(variance**2 / degrees for variance, degrees in parts)):
        return None
    variance = sum(variance for variance, _ in parts)
    return Spread(variance**0.5, variance**2 / known)


def effective(added: np.ndarray) -> float:
    """How many clusters of equal weight would tell as much: 1 if one makes the whole variance, at most K."""
    squares = added**2
    return float(squares.sum() ** 2 / (squares**2).sum()) if squares.any() else 0.0


def _over_seeds(arms: Sequence[Arm]) -> list[Part]:
    """The parts of the variance that are the seeds'; none with a single seed in each arm.

    A single seed is taken to vary as those of the other arm. What one estimate says of several arms is one part.
    """
    known = [arm.variance for arm in arms if arm.variance]
    if not known:
        return []
    parts = [(variance / arm.size, degrees) for arm in arms for variance, degrees in [arm.variance or known[0]]]
    one = len(known) < len(arms) or all(arm.pooled for arm in arms)
    return [(sum(variance for variance, _ in parts), parts[0][1])] if one else parts


@lru_cache(maxsize=256)  # the gains of a task have the same
def pool(samples: tuple[tuple[float, ...], ...]) -> tuple[Part | None, str]:
    """The one variance of seeds of several arms, if they have one; and why an interval is in doubt, in words.

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
