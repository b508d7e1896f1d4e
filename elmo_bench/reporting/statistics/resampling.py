"""Resampling of clusters of examples and of seeds: the multi-bootstrap, and a permutation test of two runs.

The multi-bootstrap is that of Sellam et al. 2022 ("The MultiBERTs: BERT reproductions for robustness analysis"):
examples are paired between the arms, seeds are not. Every number here is a function of its arguments alone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

DRAWS = 2000
PERMUTATIONS = 999
BUNDLES = 200  # clusters swapped together in the permutation test, which bounds its time
BLOCK = 32  # draws computed together: few enough for their counts as floats to stay in the processor's cache


@lru_cache(maxsize=32)  # 40 MB for 10,000 clusters; a report of all tasks has about twenty numbers of them
def cluster_draws(clusters: int) -> np.ndarray:
    """(DRAWS, K) how often each draw, with replacement, of K from K clusters has each of them."""
    random = np.random.default_rng([1, clusters])
    draws = [np.bincount(random.integers(0, clusters, clusters), minlength=clusters) for _ in range(DRAWS)]
    return np.array(draws, dtype=np.uint16)


def resampled_sums(table: np.ndarray) -> np.ndarray:
    """(K, M) counts of each cluster -> (DRAWS, M) their sums over each draw of clusters."""
    draws = cluster_draws(len(table))
    return np.concatenate([draws[i : i + BLOCK].astype(np.float64) @ table for i in range(0, DRAWS, BLOCK)])


def seed_noise(scores: np.ndarray, size: int, stream: int) -> np.ndarray:
    """How far the mean over `size` seeds lies from its expectation, in each draw of seeds with replacement.

    Resampled deviations from the mean of n seeds have only (n - 1)/n of the variance of seeds; the factor
    sqrt(n/(n - 1)) makes up for it.

    Args:
        scores: (n,) percent, of each seed.
        size: the number of seeds in a draw.
        stream: a number for each arm, so that their seeds are drawn independently.

    Returns:
        (DRAWS,) percent; zeros for a single seed.
    """
    n = len(scores)
    if n == 1:
        return np.zeros(DRAWS)
    picked = np.random.default_rng([2, stream, n, size]).integers(0, n, (DRAWS, size))
    shares = (picked[:, :, None] == np.arange(n)).mean(1)  # (DRAWS, n)
    return shares @ (scores - scores.mean()) * np.sqrt(n / (n - 1))


def permutation_p(treated: np.ndarray, control: np.ndarray, metric: Callable[[np.ndarray], np.ndarray]) -> float:
    """The two-sided p of a paired permutation test of two runs: the arms change places cluster by cluster.

    Clusters on which both runs have the same counts change nothing and are left out. The others are swapped in at most
    BUNDLES bundles; swapping a bundle is as likely as not if the arms do not differ, so that the test stays exact. The
    swaps are drawn by `monte_carlo_test`: `permutation_test` of the same library takes three times as long.

    Args:
        treated, control: (K, M) counts of each cluster.
        metric: (n, M) sums -> (n,) percent.
    """
    from scipy.stats import monte_carlo_test

    differences = _bundled((treated - control)[(treated != control).any(1)])  # (B, M)
    if len(differences) < 2:  # one difference is as large in either direction
        return 1.0
    sums, random = (treated.sum(0), control.sum(0)), np.random.default_rng(3)

    def gain(swapped: np.ndarray, axis: int) -> np.ndarray:
        moved = np.tensordot(swapped, differences, (axis, 0))  # (n, M), and (M,) for the runs as they are
        gains = metric(np.atleast_2d(sums[0] - moved)) - metric(np.atleast_2d(sums[1] + moved))
        return gains.reshape(moved.shape[:-1])

    def swaps(size: tuple[int, ...]) -> np.ndarray:
        return random.integers(0, 2, size).astype(np.float64)

    as_they_are = np.zeros(len(differences))
    return float(monte_carlo_test(as_they_are, swaps, gain, vectorized=True, n_resamples=PERMUTATIONS).pvalue)


def _bundled(rows: np.ndarray) -> np.ndarray:
    """(n, M) -> (at most BUNDLES, M): the sums of every BUNDLES-th row."""
    return np.stack([rows[i::BUNDLES].sum(0) for i in range(min(BUNDLES, len(rows)))]) if len(rows) else rows
