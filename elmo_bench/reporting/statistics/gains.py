"""Gains between two arms, with their intervals and tests, and what they mean in words."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb
from typing import NamedTuple

import numpy as np

from elmo_bench.reporting.statistics import resampling
from elmo_bench.reporting.statistics.evidence import Evidence, lacking, of_arm
from elmo_bench.reporting.statistics.groups import Group
from elmo_bench.reporting.statistics.intervals import Arm, Spread, spread

Paired = tuple[list[Evidence], list[Evidence]]  # of the treated arm and of the control
LARGE = 0.25  # of a gain: a reader should know the cluster of examples that carries more
SEEDS_AGREE = "no interval: the seeds do not differ"


class Influence(NamedTuple):
    """What a gain owes to one cluster of examples.

    Attributes:
        name: of the cluster, or its number from 1 if it has no name.
        share: of the gain that is gone without it; above 1 if the gain then has the other sign.
        without: the gain in percent points on all other clusters.
    """

    name: str
    share: float
    without: float


class Gain(NamedTuple):
    """By how much one arm is better than another, in percent points.

    Attributes:
        mean: of the treated arm minus mean of the control, over their seeds.
        spread: of this mean; None where nothing is known of it.
        seeds: their numbers in the treated arm and in the control.
        note: what the interval leaves out, in words; empty if nothing.
        clusters: how many clusters of examples are resampled, such as "316 documents"; else empty.
        influence: of the cluster on which the gain depends most.
    """

    mean: float
    spread: Spread | None
    seeds: tuple[int, int]
    note: str
    clusters: str = ""
    influence: Influence | None = None

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval."""
        return self.spread and self.spread.around(self.mean)

    @property
    def p(self) -> float | None:
        """Of no gain, from the spread of the interval; None without one, or with one seed in an arm."""
        return self.spread.p(self.mean) if self.spread and min(self.seeds) > 1 else None


def gain(treated: Group, control: Group, split: str = "test") -> Gain:
    """The gain of one arm over another in the metric by which their task selects its epoch.

    Args:
        treated, control: groups of runs of one task on the same data.
        split: "dev" or "test". Dev has chosen the epoch of every run, so its scores are a little too high in both arms.

    Raises:
        UserError: a damaged file of per-example results.
    """
    evidence = _paired(treated, control, split)
    one, other = _arms(treated, control, split, evidence)
    gained = float(one.scores.mean() - other.scores.mean())
    if evidence is None:
        return _gain(gained, one, other, lacking([*treated.records, *control.records]))
    found = _gain(gained, one, other)
    first = evidence[0][0]
    return found._replace(clusters=f"{len(first.table):,} {first.unit}", influence=_most_influential(*evidence))


def _most_influential(treated: Sequence[Evidence], control: Sequence[Evidence]) -> Influence | None:
    """The cluster with the largest share of the mean gain over seeds; None for no gain, or for a single cluster."""
    gain = float(np.mean([each.value for each in treated]) - np.mean([each.value for each in control]))
    if not gain or len(treated[0].table) < 2:
        return None
    without = np.mean([each.without for each in treated], axis=0) - np.mean([each.without for each in control], axis=0)
    shares = 1 - without / gain  # (K,)
    first = int(shares.argmax())
    names = treated[0].names
    return Influence(names[first] if names else str(first + 1), float(shares[first]), float(without[first]))


def error_reduction(treated: Group, control: Group) -> Gain | None:
    """The percentage of the control's errors on test that the treated arm does not make; None if there are none.

    It is a ratio, of which the spread is that of its linear part: with e the control's errors and r the ratio, a point
    of the treated arm adds 1/e to it, and a point of the control takes (1 - r)/e away.

    Raises:
        UserError: as `gain`.
    """
    evidence = _paired(treated, control, "test")
    one, other = _arms(treated, control, "test", evidence)
    errors = 100 - float(other.scores.mean())
    if not errors:
        return None
    share = float(one.scores.mean() - other.scores.mean()) / errors
    return _gain(100 * share, one.scaled(100 / errors), other.scaled(100 * (1 - share) / errors))


def of_models(treated: Group, control: Group) -> list[float | None]:
    """For each seed of the treated arm the p of a paired permutation test against the control's run of the same seed.

    It is over clusters of test examples: of these two models, not of the arms. None where there is no such run.

    Raises:
        UserError: as `gain`.
    """
    if (evidence := _paired(treated, control, "test")) is None:
        return []
    others = {record.seed: each.table for record, each in zip(control.records, evidence[1], strict=True)}
    return [
        resampling.permutation_p(one.table, others[record.seed], one.percent) if record.seed in others else None
        for record, one in zip(treated.records, evidence[0], strict=True)
    ]


def _gain(mean: float, treated: Arm, control: Arm, why: str = "the examples are one cluster") -> Gain:
    """A gain with its interval; `why` says what is lacking where there are no clusters."""
    found, seeds = spread(treated, control), (treated.size, control.size)
    note = _note(seeds, "" if treated.clusters else why)
    return Gain(mean, found, seeds, note if found or seeds == (1, 1) else SEEDS_AGREE)


def _arms(treated: Group, control: Group, split: str, evidence: Paired | None) -> tuple[Arm, Arm]:
    metric = treated.first.monitor
    one, other = ([r.metrics[split][metric] for r in group.records] for group in (treated, control))
    return Arm.of(one, evidence and evidence[0]), Arm.of(other, evidence and evidence[1])


def _paired(treated: Group, control: Group, split: str) -> Paired | None:
    """The evidence of both arms; None unless all runs have it, of the same examples."""
    one, other = (of_arm(group.records, split, treated.first.monitor) for group in (treated, control))
    return None if one is None or other is None or not one[0].pairs_with(other[0]) else (one, other)


def _note(seeds: tuple[int, int], lacking: str) -> str:
    """What an interval leaves out; `lacking` says why it is not over examples, if it is not."""
    if seeds == (1, 1):
        return f"none (one seed, {lacking})" if lacking else "over examples alone (one seed in each arm)"
    single = "the single seed of one arm is taken to vary as the other arm's" if 1 in seeds else ""
    return "; ".join(filter(None, [f"over seeds alone ({lacking})" if lacking else "", single]))


# In words.

READING = (
    "[low, high] after a gain is its 95 % interval, from 2,000 draws of seeds and of clusters of examples: documents "
    "or articles, if the data have them. p comes from the same standard error and degrees of freedom: it is below 0.05 "
    "exactly when the interval excludes 0. power: the true gain that such runs show four times out of five. "
    "Dev has chosen the epochs, so that its scores are a little high. Nothing is averaged over tasks."
)


def in_words(gain: Gain) -> str:
    """ "+5.31 [+4.10, +6.52]"; without an interval only the mean."""
    ends = ", ".join(f"{end:+.2f}" for end in gain.interval or ())
    return f"{gain.mean:+.2f}" + (f" [{ends}]" if ends else "")


def influence_in_words(found: Influence) -> str:
    """A sentence's end: "without NAME the gain is +0.95 (62 % less)"."""
    return f"without {found.name} the gain is {found.without:+.2f} ({100 * found.share:.0f} % less)"


def p_in_words(p: float | None, unknown: str = "") -> str:
    """ "0.013", "<0.001"."""
    return unknown if p is None else f"{p:.3f}" if p >= 0.001 else "<0.001"


def verdict(gain: Gain) -> str:
    """How sure a gain is: clear or worse (the interval is above or below zero), not shown, one seed, no interval."""
    if min(gain.seeds) < 2:
        return "one seed"
    if gain.interval is None:
        return "no interval"
    low, high = gain.interval
    return "clear" if low > 0 else "worse" if high < 0 else "not shown"


def shown_by(seeds: tuple[int, int]) -> str:
    """What the numbers of seeds in two arms can and cannot show."""
    if seeds == (1, 1):
        return "One seed shows nothing about other seeds: whatever is said of it is about the examples alone."
    one, other = seeds
    least = min(1.0, 2 / comb(one + other, one))
    can = "can" if least < 0.05 else "cannot"
    numbers = f"{one} seeds in each arm" if one == other else f"{one} and {other} seeds in the arms"
    return (
        f"{numbers}: an exact permutation of them reaches p = {least:.2g} at best, so that they {can} "
        "show a gain without an assumption; the interval assumes that the scores of seeds are normally distributed."
    )
