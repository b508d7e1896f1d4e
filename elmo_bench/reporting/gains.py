"""The gain of one group of runs over another, with its uncertainty."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from elmo_bench.reporting import statistics
from elmo_bench.reporting.groups import Group


class Gain(NamedTuple):
    """The difference of two groups' means, in percent points; None for what cannot be said.

    `low` and `high` bound the 95 % interval; `p_items` has a value for each seed, `p_holm` is corrected within a table,
    `smallest` is the smallest gain that the test set could have shown, `seeds` are counts: treated, control.
    """

    mean: float
    low: float | None
    high: float | None
    p_items: list[float | None]
    p_seeds: float | None
    p_holm: float | None
    smallest: float | None
    seeds: tuple[int, int]
    note: str


def gain(treated: Group, control: Group, split: str = "test") -> Gain:
    """The gain in the monitored metric, with Welch's t over seeds."""
    from scipy.stats import ttest_ind

    metric = treated.first["config"]["task"]["monitor"]
    after, before = ([record["metrics"][split][metric] for record in g.records] for g in (treated, control))
    mean = statistics.score(treated.records, split, metric)[0] - statistics.score(control.records, split, metric)[0]
    seeds = len(after), len(before)
    if min(seeds) < 2:
        return Gain(mean, None, None, [], None, None, None, seeds, "one seed: no interval")
    test: Any = ttest_ind(after, before, equal_var=False)
    low, high = test.confidence_interval(0.95)
    return Gain(mean, float(low), float(high), [], float(test.pvalue), None, None, seeds, "")


def holm(gains: Sequence[Gain]) -> list[Gain]:
    """The gains of one table with `p_holm`, the p over seeds corrected for their number."""
    known = sorted((each.p_seeds, i) for i, each in enumerate(gains) if each.p_seeds is not None)
    corrected: dict[int, float] = {}
    largest = 0.0
    for rank, (p, i) in enumerate(known):
        largest = corrected[i] = max(largest, min(1.0, p * (len(known) - rank)))
    return [each._replace(p_holm=corrected.get(i)) for i, each in enumerate(gains)]
