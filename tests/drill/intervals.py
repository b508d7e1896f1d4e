"""Intervals in simulation: how often they cover the truth, and how often they show what is not there.

Each experiment has new seeds and new clusters of examples, scored by F1, and a true gain that is known. An area is a
number of seeds in each arm, of clusters and a true gain; its only trial is many experiments.
"""

import random
from functools import partial
from itertools import product
from typing import NamedTuple

import numpy as np

from elmo_bench.reporting.statistics import resampling
from elmo_bench.reporting.statistics.findings import SHOWN, verdict
from elmo_bench.reporting.statistics.intervals import ABOVE_ZERO, LEVEL, Arm, spread
from tests.drill.trial import FAULT, RESULT, Answer, Area

BASE, SPURIOUS = 0.6, 0.2  # the baseline's shares of spans found and of spans that are none
ITEMS = {10: 60, 200: 10}  # in a cluster on average, by the number of clusters


class Rates(NamedTuple):
    """Percentages of experiments, except `least`: the mean gain that `Spread.least` promises to show in 80 %."""

    covered: float
    shown: float
    rejected: float  # p below 0.05
    least: float

    def __str__(self) -> str:
        names = ("covered", "shown", "p < 0.05")
        return ", ".join([*(f"{name} {rate:.1f} %" for name, rate in zip(names, self[:3], strict=True)),
                          f"power {self.least:.2f}"])  # fmt: skip


def rates(draw: np.random.Generator, seeds: int, clusters: int, gain: float, experiments: int) -> Rates:
    """What the rule says in experiments with a true gain in points of F1."""
    said = []
    for _ in range(experiments):
        treated, control = arms(draw, seeds, clusters, gain)
        value, found = float(treated.scores.mean() - control.scores.mean()), spread(treated, control)
        assert found is not None
        low, high = found.around(value)
        shown = verdict(low, high, ABOVE_ZERO) == SHOWN
        said.append((low <= gain <= high, shown, found.p(value) < LEVEL, found.least / 100))
    return Rates(*(100 * np.mean(said, axis=0)).tolist())


def arms(draw: np.random.Generator, seeds: int, clusters: int, gain: float) -> list[Arm]:
    """The arm that gains and the baseline, on the same clusters.

    What share of its spans is found varies with the cluster (for all runs, for an arm, for a run) and with the seed.
    """
    f1 = 2 * BASE / (BASE + SPURIOUS + 1) + gain / 100
    found = np.array([f1 * (1 + SPURIOUS) / (2 - f1), BASE])[:, None, None]  # the shares that have these F1
    spans = draw.integers(ITEMS[clusters] // 2, ITEMS[clusters] * 3 // 2 + 1, clusters)  # (K,)
    ease = draw.uniform(-0.15, 0.15, clusters) + draw.normal(0, 0.05, (2, 1, clusters))
    noise = draw.normal(0, 0.03, (2, seeds, clusters)) + draw.normal(0, 0.01, (2, seeds, 1))
    right = draw.binomial(spans, np.clip(found + ease + noise, 0, 1))  # (2, seeds, K)
    answers = right + draw.binomial(spans, SPURIOUS, right.shape)
    table = np.concatenate([right.reshape(-1, clusters), answers.reshape(-1, clusters), spans[None]]).T.astype(float)
    scores, drawn = _f1(table.sum(0)[None])[:, 0], _f1(resampling.resampled_sums(table))
    return [Arm(scores[i : i + seeds], drawn[i : i + seeds], clusters) for i in (0, seeds)]


def _f1(sums: np.ndarray) -> np.ndarray:
    """(n, 2 R + 1) spans found and answered of each of R runs, and all spans -> (R, n) percent."""
    runs = sums.shape[1] // 2
    return (200 * sums[:, :runs] / (sums[:, runs:-1] + sums[:, -1:])).T


def trial(draw: random.Random, seeds: int, clusters: int, gain: float, experiments: int = 2000) -> Answer:
    """A fault where the intervals cover much less than 95 %, or p is small too often."""
    found = rates(np.random.default_rng(draw.getrandbits(64)), seeds, clusters, gain, experiments)
    sound = found.covered > 92 and (gain or (found.shown < 4 and found.rejected < 7))
    return (RESULT if sound else FAULT), str(found)


AREAS = [
    Area(f"intervals:{seeds}x{clusters}+{gain}", 1, partial(trial, seeds=seeds, clusters=clusters, gain=gain), 3600)
    for seeds, clusters, gain in product((3, 5), ITEMS, (0, 3))
]
