"""Gains between two arms, with their intervals and tests, and what they mean in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from elmo_bench.reporting.statistics import resampling
from elmo_bench.reporting.statistics.evidence import Evidence, of_arm
from elmo_bench.reporting.statistics.groups import Group
from elmo_bench.reporting.statistics.influence import Influence, most_influential
from elmo_bench.reporting.statistics.intervals import Arm, interval, smallest_shown


class Gain(NamedTuple):
    """By how much one arm is better than another, in percent points.

    Attributes:
        mean: of the treated arm minus mean of the control, over their seeds.
        low, high: the 95 % interval; None where nothing is known of the spread.
        p_items: for each seed of the treated arm, the p of a paired permutation test against the control's run of the
            same seed, over clusters of items; None where there is no such run, or no items.
        p_seeds: of Welch's t over the seeds; None with a single seed in one arm, or no spread.
        p_holm: p_seeds, or with one seed in each arm its p_items, corrected for the number of gains in a table.
        smallest: the smallest true gain that these items show (p < 0.05) four times out of five, were there no
            noise of seeds; None without items.
        seeds: their numbers in the treated arm and in the control.
        note: what the interval leaves out, in words; empty if nothing.
        clusters: how many clusters of items are resampled, such as "316 documents"; empty without items.
        influence: of the cluster on which the gain depends most.
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
    clusters: str = ""
    influence: Influence | None = None


def gain(treated: Group, control: Group, split: str = "test", *, permute: bool = True) -> Gain:
    """The gain of one arm over another in the metric by which their task selects its epoch.

    Args:
        treated, control: groups of runs of one task on the same data.
        split: "dev" or "test". Dev has chosen the epoch of every run, so its scores are a little too high in both arms.
        permute: whether to make the permutation tests, which take most of the time; else `p_items` has no p.

    Raises:
        UserError: a damaged file of items.
    """
    metric = treated.first.monitor
    scores = [[r.metrics[split][metric] for r in group.records] for group in (treated, control)]
    evidence = _paired(treated, control, split, metric)
    arms = Arm.of(scores[0], evidence and evidence[0]), Arm.of(scores[1], evidence and evidence[1])
    p_items: list[float | None] = [None] * len(treated.records)
    if evidence is not None and permute:
        p_items = _p_items(_by_seed(treated, evidence[0]), _by_seed(control, evidence[1]))
    low, high = interval(*arms)
    mean = float(arms[0].scores.mean() - arms[1].scores.mean())
    sizes = arms[0].size, arms[1].size
    found = Gain(mean, low, high, p_items, _welch(*arms), None, smallest_shown(*arms), sizes, _note(*arms))
    if evidence is None:
        return found
    first = evidence[0][0]
    return found._replace(clusters=f"{len(first.table):,} {first.unit}", influence=most_influential(*evidence))


def _by_seed(group: Group, evidence: Sequence[Evidence]) -> dict[int, Evidence]:
    return {record.seed: each for record, each in zip(group.records, evidence, strict=True)}


def _paired(treated: Group, control: Group, split: str, metric: str) -> tuple[list[Evidence], list[Evidence]] | None:
    """The evidence of both arms; None unless all runs have it, of the same items."""
    one, other = (of_arm(group.records, split, metric) for group in (treated, control))
    return None if one is None or other is None or not one[0].pairs_with(other[0]) else (one, other)


def _note(treated: Arm, control: Arm) -> str:
    single = (treated.size == 1) + (control.size == 1)
    if single == 2:
        return "over items alone (one seed in each arm)" if treated.clusters else "none (one seed, no items recorded)"
    notes = [] if treated.clusters else ["over seeds alone (no items recorded)"]
    return "; ".join([*notes, *["the single seed of one arm is taken to vary as the other arm's"] * single])


# Tests.


def _p_items(treated: dict[int, Evidence], control: dict[int, Evidence]) -> list[float | None]:
    """By seed, where both arms have it."""
    return [
        resampling.permutation_p(one.table, control[seed].table, one.metric.of) if seed in control else None
        for seed, one in treated.items()
    ]


def _welch(treated: Arm, control: Arm) -> float | None:
    from scipy.stats import ttest_ind_from_stats

    if min(treated.size, control.size) < 2 or treated.variance + control.variance == 0:
        return None
    arms = [value for arm in (treated, control) for value in (arm.scores.mean(), arm.variance**0.5, arm.size)]
    return float(ttest_ind_from_stats(*arms, equal_var=False).pvalue)


def holm(gains: Sequence[Gain]) -> list[Gain]:
    """The gains of one table with `p_holm`, by Holm's step-down method; a gain without a p is no test and has none."""
    known = {i: p for i, each in enumerate(gains) if (p := _tested(each)) is not None}
    corrected: dict[int, float] = {}
    largest = 0.0
    for rank, i in enumerate(sorted(known, key=lambda i: known[i])):
        largest = max(largest, min(1.0, (len(known) - rank) * known[i]))
        corrected[i] = largest
    return [each._replace(p_holm=corrected.get(i)) for i, each in enumerate(gains)]


def _tested(gain: Gain) -> float | None:
    """The p to be corrected: over seeds, or with one seed in each arm over its items."""
    return gain.p_items[0] if gain.seeds == (1, 1) else gain.p_seeds


# In words.

READING = (
    "[low, high] after a gain is its 95 % interval, from 2,000 draws of seeds and of clusters of items: documents or "
    "articles where the data tell them. p: items is a paired permutation test over the test items, for each seed; "
    "p: seeds is Welch's t over the seeds; p: Holm corrects the latter (with one seed, the former) for the number of "
    "gains in the table. smallest is the true gain that the test items would show four times out of five, were there "
    "no noise of seeds. Dev has chosen the epochs, so that its scores are a little high. Nothing is averaged over "
    "tasks."
)


def in_words(gain: Gain) -> str:
    """ "+5.31 [+4.10, +6.52]"; without an interval only the mean."""
    mean = f"{gain.mean:+.2f}"
    return mean if gain.low is None or gain.high is None else f"{mean} [{gain.low:+.2f}, {gain.high:+.2f}]"


def p_in_words(p: float) -> str:
    """ "0.013", "<0.001"."""
    return f"{p:.3f}" if p >= 0.001 else "<0.001"


def verdict(gain: Gain) -> str:
    """How sure a gain is: clear or worse (the interval is above or below zero), not shown, one seed, no interval."""
    if min(gain.seeds) < 2:
        return "one seed"
    if gain.low is None or gain.high is None:
        return "no interval"
    return "clear" if gain.low > 0 else "worse" if gain.high < 0 else "not shown"


def shown_by(seeds: int) -> str:
    """What a number of seeds in each arm can and cannot show."""
    if seeds == 1:
        return "One seed shows nothing about other seeds: whatever is said of it is about the items alone."
    smallest = 2.0 ** (1 - seeds)
    can = "can" if smallest < 0.05 else "cannot"
    return (
        f"{seeds} seeds: an exact sign-flip test over them cannot go below p = {smallest:.2g}, so that they {can} show "
        "a gain at p < 0.05 without an assumption; Welch's t assumes that the scores of seeds are normally distributed."
    )
