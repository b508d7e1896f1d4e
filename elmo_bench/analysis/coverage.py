"""How often the 95 % intervals of gains cover the truth, in simulation.

Both arms are the same, so that the true gain is 0. A run has a random seed effect, an item a difficulty that all runs
share, and each pair of them some noise of its own; the counts give an F1, a ratio of sums over the items.
"""

from __future__ import annotations

import numpy as np

from elmo_bench.reporting.statistics import resampling
from elmo_bench.reporting.statistics.intervals import Arm, interval

NOISES = (0.0, 0.05, 0.2, 0.5)  # deviations of the seed effect, in logits
HARD, KIND, OWN = 1.5, 0.5, 0.5  # deviations of an item's difficulty: for all runs, for an arm, for a run; in logits
SPANS = 3  # the most gold spans of an item


def covered(seeds: int, clusters: int, trials: int, noise: float) -> float:
    """The share of trials whose interval holds 0, the true gain.

    Args:
        seeds: in each arm.
        clusters: items of the test set.
        trials: experiments, each with items and seeds of its own.
        noise: deviation of the seed effect, in logits.
    """
    random = np.random.default_rng([seeds, clusters, int(1000 * noise)])
    intervals = (interval(*arms(random, seeds, clusters, noise)) for _ in range(trials))
    return float(np.mean([low is not None and high is not None and low <= 0 <= high for low, high in intervals]))


def arms(random: np.random.Generator, seeds: int, clusters: int, noise: float) -> tuple[Arm, Arm]:
    """Two arms that do not differ, scored on the same random items."""
    spans, ease = random.integers(1, SPANS + 1, clusters), random.normal(0, HARD, clusters)
    ease = ease + random.normal(0, KIND, (2, 1, clusters)) + random.normal(0, OWN, (2, seeds, clusters))
    logits = ease + random.normal(0, noise, (2, seeds, 1))
    right = random.binomial(spans, 1 / (1 + np.exp(-logits)))  # (2, seeds, clusters)
    spurious = random.binomial(spans, 0.5 / (1 + np.exp(logits)))
    missed = spans - right
    tables = np.stack([right, spurious, missed], axis=-1).astype(float)  # (2, seeds, clusters, 3)
    return _arm(tables[0]), _arm(tables[1])


def _arm(tables: np.ndarray) -> Arm:
    """(seeds, clusters, 3) counts -> an arm with its resamples."""
    drawn = np.stack([_f1(resampling.resampled_sums(table)) for table in tables])
    return Arm(_f1(tables.sum(1)), drawn, tables.shape[1])


def _f1(sums: np.ndarray) -> np.ndarray:
    """(..., 3) true positives, false positives, false negatives -> (...,) percent."""
    tp, fp, fn = np.moveaxis(sums, -1, 0)
    return 200 * tp / np.maximum(2 * tp + fp + fn, 1)
