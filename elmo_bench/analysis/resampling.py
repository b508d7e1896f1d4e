"""Intervals by resampling sentences: the percentile bootstrap (Efron and Tibshirani 1993)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

CHUNK = 100  # resamples at once


def interval(
    counts: np.ndarray, statistic: Callable[[np.ndarray], np.ndarray], draws: int, seed: int = 1
) -> tuple[float, float]:
    """The 95 % interval of a statistic of sums over sentences.

    Args:
        counts: (S, C), what each sentence adds to each sum.
        statistic: of sums (D, C), one number a row: (D,).
        draws: resamples of S sentences.
        seed: of the resampling; the same seed draws the same sentences for any counts of S rows.
    """
    chance = np.random.default_rng(seed)
    number = len(counts)
    values = []
    for done in range(0, draws, CHUNK):
        size = min(CHUNK, draws - done)
        times = chance.multinomial(number, np.full(number, 1 / number), size=size)  # (size, S)
        values.append(statistic(times @ counts))
    low, high = np.percentile(np.concatenate(values), [2.5, 97.5])
    return float(low), float(high)


def best(what: str, scores: Sequence[float]) -> str:
    """The layer with the highest score, in a sentence."""
    return f"Layer {max(range(len(scores)), key=lambda j: scores[j])} scores highest at {what}."


def verdict(what: str, difference: float, low: float, high: float, upper: int, paper: str) -> str:
    """Whether a layer is better than layer 1, in a sentence.

    Args:
        what: the layers are compared at.
        difference: the score of layer `upper` minus that of layer 1.
        low, high: its 95 % interval.
        upper: the number of the other layer.
        paper: what the paper found, as "layer 2".
    """
    numbers = f"layer {upper} minus layer 1: {difference:+.2f} points, 95 % interval {low:+.2f} to {high:+.2f}"
    if low <= 0 <= high:
        return f"No layer is shown to be better at {what} ({numbers}); in the paper {paper} is."
    better = f"layer {upper if difference > 0 else 1}"
    agrees = "as in the paper" if better == paper else f"unlike in the paper, where {paper} is"
    return f"{better.capitalize()} is better at {what}, {agrees} ({numbers})."
