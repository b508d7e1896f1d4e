"""Gains between two arms, with their intervals and tests, and what they mean in words."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import comb
from typing import NamedTuple

import numpy as np

from elmo_bench.reporting.statistics.evidence import Evidence, lacking, of_arm
from elmo_bench.reporting.statistics.groups import Group
from elmo_bench.reporting.statistics.intervals import Arm, Spread, effective, pool, spread, total

Pair = tuple[Group, Group]  # the treated arm and the control
Paired = Sequence[Sequence[Evidence]]  # the evidence of their runs
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
        clusters: how many clusters of examples there are, such as "316 documents, 20 effective"; else empty.
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
    return over_bilms(((treated, control),), split)


@lru_cache(maxsize=4096)  # tables, findings and pictures show the same ones
def over_bilms(pairs: tuple[Pair, ...], split: str = "test") -> Gain:
    """The same over several biLMs, which differ in their seed: the gain is the mean of theirs.

    The biLM is then a level of its own (Sellam et al. 2022, "The MultiBERTs"), and its runs are one value.

    Args:
        pairs: for each biLM, the arms to compare; a baseline is the same in all.
    """
    arms, notes, known = _arms(pairs, split)
    (mean, added), found = total(arms), spread(*arms)
    treated, control = ({record.run: record for pair in pairs for record in pair[i].records} for i in (0, 1))
    seeds = len(treated), len(control)
    if len(added):
        lack, clusters = "", f"{len(added):,} {known[0][0][0].unit}, {effective(added):.3g} effective"
        influence = _influence(int((added * np.sign(mean)).argmax()), mean, known)
    else:
        lack = "the examples are one cluster" if known else lacking([*treated.values(), *control.values()])
        clusters, influence = "", None
    notes = [_left_out(seeds, lack), *notes] if found or seeds == (1, 1) else [SEEDS_AGREE]
    return Gain(mean, found, seeds, "; ".join(filter(None, notes)), clusters, influence)


def _influence(cluster: int, gain: float, evidence: Sequence[Paired]) -> Influence | None:
    """What a gain owes to this cluster; None for no gain."""
    if not gain:
        return None
    means = [[np.mean([each.without(cluster) for each in arm]) for arm in pair] for pair in evidence]
    without = float(np.mean([one - other for one, other in means]))
    names = evidence[0][0][0].names
    return Influence(names[cluster] if names else str(cluster + 1), 1 - without / gain, without)


def error_reduction(pairs: tuple[Pair, ...]) -> Gain | None:
    """The percentage of the control's errors on test that the treated arm does not make; None if there are none.

    It is a ratio, of which the spread is that of its linear part: with e the control's errors and r the ratio, a point
    of the treated arm adds 1/e to it, and a point of the control takes (1 - r)/e away.

    Args:
        pairs: as of `over_bilms`; the control is one baseline.

    Raises:
        UserError: as `gain`.
    """
    gained = over_bilms(pairs)
    (one, other), *_ = _arms(pairs, "test")
    errors = 100 + float(other.scores.mean())
    if not errors:
        return None
    share = gained.mean / errors
    return gained._replace(
        mean=100 * share, spread=spread(one.scaled(100 / errors), other.scaled(100 * (1 - share) / errors))
    )


def of_models(treated: Group, control: Group) -> list[float | None]:
    """For each seed of the treated arm the p of its gain over the control's run of the same seed.

    It is over clusters of test examples: of these two models, not of the arms. None where there is no such run.

    Raises:
        UserError: as `gain`.
    """
    others = {record.seed: Group([record], "") for record in control.records}
    pairs = [(Group([one], ""), others.get(one.seed)) for one in treated.records]
    found = [gain(one, other) if other else None for one, other in pairs]
    return [each and each.spread and each.spread.p(each.mean) for each in found]


def _arms(pairs: Sequence[Pair], split: str) -> tuple[list[Arm], list[str], Sequence[Paired]]:
    """Arms whose means add up to the gain, the control's with the other sign; and what puts the interval in doubt.

    Last the evidence of each pair; none unless all runs have it, of the same examples. The variance of seeds is that of
    all arms with the same inputs.
    """
    metric, found = pairs[0][0].first.monitor, []

    def scores(group: Group) -> tuple[float, ...]:
        return tuple(record.metrics[split][metric] for record in group.records)

    alike = {(each.first.fraction, each.first.inputs) for each in pairs[0]}
    among = (each for each in pairs[0][0].among if (each.first.fraction, each.first.inputs) in alike)
    pooled, doubt = pool(tuple(map(scores, among)))
    known = [[of_arm(group.records, split, metric) for group in pair] for pair in pairs]
    if not all(one and other and one[0].pairs_with(other[0]) for one, other in known):
        known = []
    for i, pair in enumerate(pairs):
        arms = []
        for sign, group, j in zip((1, -1), pair, (0, 1), strict=True):
            added = np.zeros((len(group.records), 0))
            if known and len(known[0][0][0].table) > 1:
                added = np.stack([each.influences for each in known[i][j]])
            arms.append(Arm(sign * np.array(scores(group)), sign * added, pooled))
        found.append(arms)
    arms = found[0]
    if len(found) > 1 and all(control is pairs[0][1] for _, control in pairs):
        arms = [_of_bilms([[one] for one, _ in found]), found[0][1]]
    elif len(found) > 1:
        arms = [_of_bilms(found)]
    return arms, [doubt], known


def _of_bilms(arms: Sequence[Sequence[Arm]]) -> Arm:
    """An arm with one score for each biLM: the `total` of its arms."""
    scores, influences = zip(*map(total, arms), strict=True)
    return Arm(np.array(scores), np.stack(influences))


def _left_out(seeds: tuple[int, int], lacking: str) -> str:
    """What an interval leaves out; `lacking` says why it is not over examples, if it is not."""
    if seeds == (1, 1):
        return f"none (one seed, {lacking})" if lacking else "over examples alone (one seed in each arm)"
    single = "the single seed of one arm is taken to vary as the other arm's" if 1 in seeds else ""
    return "; ".join(filter(None, [f"over seeds alone ({lacking})" if lacking else "", single]))


# In words.

READING = (
    "[low, high] after a gain is its 95 % interval, over seeds and clusters of examples: documents or articles, if the "
    "data have them; effective: how many of equal weight would tell as much. It is of one biLM. p is below "
    "0.05 exactly when the interval excludes 0. power: the true gain that such runs show four times out of five. "
    "Dev has chosen the epochs, so that its scores are a little high. Nothing is averaged over tasks."
)


def in_words(gain: Gain | None) -> str:
    """ "+5.31 [+4.10, +6.52]"; without an interval only the mean, and nothing of no gain."""
    if gain is None:
        return ""
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
