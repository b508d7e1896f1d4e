"""The gains of ELMo at each task and scale, over baselines with the same other settings, with intervals and tests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import product
from math import comb
from typing import Any, NamedTuple

import numpy as np

from elmo_bench.configuration.tables import Setting, in_order
from elmo_bench.records.frame import CONTEXT_FREE, UNTRAINED, fits, is_main
from elmo_bench.records.record import Record, changes_of, with_changes
from elmo_bench.reporting.groups import Group, in_groups, weight, weight_of_pair
from elmo_bench.reporting.intervals import (
    Arm,
    Evidence,
    Spread,
    effective,
    interval_text,
    missing_reason,
    of_arm,
    pool,
    spread,
    total,
)
from elmo_bench.system.errors import UserError

Pair = tuple[Group, Group]  # the treated arm and the control
Paired = Sequence[Sequence[Sequence[Evidence]]]  # for each pair, the evidence of the runs of its arms
LARGE = 0.25  # of a gain: a reader should know the cluster of examples that carries more
SEEDS_AGREE = "no interval: the seeds do not differ"


class Gain(NamedTuple):
    """By how much one arm is better than another, in percent points.

    Attributes:
        mean: of the treated arm minus mean of the control, over their seeds.
        spread: of this mean; None where nothing is known of it.
        seeds: their numbers in the treated arm and in the control.
        note: what the interval leaves out; empty if nothing.
        clusters: how many clusters of examples there are, such as "316 documents, 20 effective"; else empty.
        carried: the cluster that carries a large part of the gain, "without NAME the gain is +0.95 (62 % less)"; empty
            if none does. A cluster without a name has its number from 1.
    """

    mean: float
    spread: Spread | None
    seeds: tuple[int, int]
    note: str
    clusters: str = ""
    carried: str = ""

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval."""
        return self.spread and self.spread.around(self.mean)

    @property
    def p(self) -> float | None:
        """The p of no gain, from the spread of the interval; None without one, or with one seed in an arm."""
        return self.spread.p(self.mean) if self.spread and min(self.seeds) > 1 else None

    @property
    def verdict(self) -> str:
        """How sure it is: clear or worse (the interval is above or below 0), not shown, one seed, no interval."""
        if min(self.seeds) < 2:
            return "one seed"
        if self.interval is None:
            return "no interval"
        low, high = self.interval
        return "clear" if low > 0 else "worse" if high < 0 else "not shown"

    def __str__(self) -> str:
        """ "+5.31 [+4.10, +6.52]"; without an interval only the mean."""
        ends = interval_text(self.interval, between=", ")
        return f"{self.mean:+.2f}" + (f" [{ends}]" if ends else "")


def gain(treated: Group, control: Group, split: str = "test") -> Gain:
    """The gain of one arm over another in the metric by which their task selects its epoch.

    Args:
        treated, control: groups of runs of one task on the same data.
        split: "dev" or "test". Dev has chosen the epoch of every run, so its scores are a little too high in both arms.
    """
    return over_bilms(((treated, control),), split)


@lru_cache(maxsize=4096)  # tables, findings and pictures show the same ones
def over_bilms(pairs: tuple[Pair, ...], split: str = "test") -> Gain:
    """The mean gain over several biLMs, which differ in their seed.

    The biLM is then a level of its own (Sellam et al. 2022, "The MultiBERTs"), and its runs are one value.

    Args:
        pairs: for each biLM, the arms to compare; a baseline is the same in all.
    """
    arms, doubt, known = _arms(pairs, split)
    (mean, added), found = total(arms), spread(*arms)
    treated, control = ({record.run: record for pair in pairs for record in pair[i].records} for i in (0, 1))
    seeds = len(treated), len(control)
    clusters = carried = ""
    if len(added):
        missing, clusters = "", f"{len(added):,} {known[0][0][0].unit}, {effective(added):.3g} effective"
        carried = _carried(int((added * np.sign(mean)).argmax()), mean, known)
    else:
        missing = "the examples are one cluster" if known else missing_reason([*treated.values(), *control.values()])
    if seeds == (1, 1):
        limit = f"none (one seed, {missing})" if missing else "over examples alone (one seed in each arm)"
        notes = [limit, doubt]
    elif found:
        single = "the single seed of one arm is taken to vary as the other arm's" if 1 in seeds else ""
        notes = [f"over seeds alone ({missing})" if missing else "", single, doubt]
    else:
        notes = [SEEDS_AGREE]
    return Gain(mean, found, seeds, "; ".join(filter(None, notes)), clusters, carried)


def _carried(cluster: int, gain: float, known: Paired) -> str:
    """See `Gain.carried`; `cluster` is the one on which the gain depends most."""
    means = [
        [np.mean([each.percent((each.table.sum(0) - each.table[cluster])[None]) for each in arm]) for arm in pair]
        for pair in known
    ]
    without = float(np.mean([one - other for one, other in means]))
    share = 1 - without / gain if gain else 0.0  # above 1 if the gain then has the other sign
    name = (known[0][0][0].names or range(1, cluster + 2))[cluster]
    return f"without {name} the gain is {without:+.2f} ({100 * share:.0f} % less)" if share > LARGE else ""


def error_reduction(pairs: tuple[Pair, ...]) -> Gain | None:
    """The percentage of the control's errors on test that the treated arm does not make; None if there are none.

    It is a ratio, whose spread is that of its linear part: with e the control's errors and r the ratio, a point of the
    treated arm adds 1/e to it, and a point of the control takes (1 - r)/e away.

    Args:
        pairs: as of `over_bilms`; the control is one baseline.
    """
    gained = over_bilms(pairs)
    (one, other), *_ = _arms(pairs, "test")
    errors = 100 + float(other.scores.mean())
    if not errors:
        return None
    share = gained.mean / errors
    found = spread(one.scaled(100 / errors), other.scaled(100 * (1 - share) / errors))
    return gained._replace(mean=100 * share, spread=found, carried="")


def of_models(treated: Group, control: Group) -> list[float | None]:
    """For each seed of the treated arm the p of its gain over the control's run of the same seed.

    It is over clusters of test examples, so it is about these two models and not the arms. None without such a run.
    """
    others = {record.seed: Group([record]) for record in control.records}
    pairs = [(Group([one]), others.get(one.seed)) for one in treated.records]
    found = [gain(one, other) if other else None for one, other in pairs]
    return [each and each.spread and each.spread.p(each.mean) for each in found]


def _arms(pairs: Sequence[Pair], split: str) -> tuple[list[Arm], str, Paired]:
    """The arms of a gain.

    Returns:
        arms whose means add up to the gain, the control's with the other sign; the variance of their seeds is that of
        all arms with the same inputs. What puts the interval in doubt. The evidence of each pair, empty unless all runs
        have it for the same examples.
    """
    alike = {(each.first.fraction, each.first.inputs) for each in pairs[0]}
    among = (each for each in pairs[0][0].among if (each.first.fraction, each.first.inputs) in alike)
    pooled, doubt = pool(tuple(tuple(each.scores(split)) for each in among))
    known = [[of_arm(each.records, split, each.metric or each.first.monitor) for each in pair] for pair in pairs]
    if not all(one and other and one[0].pairs_with(other[0]) for one, other in known):
        known = []
    found = [
        [
            Arm.of(each.scores(split), evidence, pooled).scaled(sign)
            for each, evidence, sign in zip(pair, of_pair, (1, -1), strict=True)
        ]
        for pair, of_pair in zip(pairs, known or [((), ())] * len(pairs), strict=True)
    ]
    arms = found[0]
    if len(found) > 1 and all(control is pairs[0][1] for _, control in pairs):
        arms = [_over_bilms([[one] for one, _ in found]), found[0][1]]
    elif len(found) > 1:
        arms = [_over_bilms(found)]
    return arms, doubt, known


def _over_bilms(arms: Sequence[Sequence[Arm]]) -> Arm:
    """An arm with one score for each biLM: the `total` of its arms."""
    scores, influences = zip(*map(total, arms), strict=True)
    return Arm(np.array(scores), np.stack(influences))


READING = (
    "[low, high] after a gain is its 95 % interval, over seeds and clusters of examples: documents or articles, if the "
    "data have them; effective: how many of equal weight would tell as much. It is of one biLM. p is below "
    "0.05 exactly when the interval excludes 0. power: the true gain that such runs show four times out of five. "
    "Dev has chosen the epochs, so that its scores are a little high. Nothing is averaged over tasks."
)


def p_text(p: float | None, unknown: str = "") -> str:
    """ "0.013", "<0.001"."""
    return unknown if p is None else f"{p:.3f}" if p >= 0.001 else "<0.001"


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


# The gains of a task.

SCALES = ("paper", "open", "mini")


class Comparison(NamedTuple):
    """An arm with ELMo, a baseline or a control, and the gain on either split.

    Attributes:
        context: of a gain over a baseline, what the arm has over its own layer 0, which has no context, on test; None
            without such runs.
    """

    treated: Group
    control: Group
    dev: Gain
    test: Gain
    context: Gain | None = None

    @property
    def task(self) -> str:
        return self.treated.first.task

    @property
    def changes(self) -> str:
        """The biLM, word vectors and data that are not the scale's."""
        return changes_of(self.treated.first)

    @property
    def title(self) -> str:
        """The task, and these changes."""
        return with_changes(self.task, self.changes)


class Outcome:
    """The runs of one task at one scale, as groups, and the gains among them.

    Attributes:
        groups: without ELMo, then with it; in both those of the paper's comparison first.
        metric: the one that the task monitors.
        note: a description of the scale.
    """

    def __init__(self, records: Sequence[Record]):
        newest = max(records, key=lambda record: record.finished)
        self.task, self.scale, self.note, self.metric = newest.task, newest.scale, newest.note, newest.monitor

        def order(group: Group) -> tuple:
            """Without ELMo first; the paper's comparison, the same without vectors, the others."""
            first = group.first
            place = [is_main(first), is_main(first, random=True), True].index(True)
            return first.has_elmo, place, first.bilm_name or "", group.name, first.group

        for record in records:
            if any(self.metric not in record.metrics[split] for split in ("dev", "test")):
                where = f"{record.run} ({self.task}, scale {self.scale})"
                problem = f"the record {where} has no {self.metric}, unlike others of the task"
                raise UserError(f"{problem}; restore or remove it")
        self.records, self.groups = records, sorted(in_groups(records, self.metric), key=order)

    def pair(self, more: Setting, less: Setting) -> Pair | None:
        """The runs of two settings on the same data; of several such pairs the first by `weight_of_pair`.

        They also have the same biLM and the same files of word vectors, unless these are compared.
        """
        named = {key.partition(".")[0] for key in (*more, *less)}
        whose = slice(1) if "vectors" in named else slice(None)  # the data alone, or the files of vectors, too
        sides = ([group for group in self.groups if fits(group.first, setting)] for setting in (more, less))
        pairs = [
            (one, other)
            for one, other in product(*sides)
            if one.first.inputs[whose] == other.first.inputs[whose]
            and ("bilm" in named or len({one.first.weights, other.first.weights} - {None}) < 2)
        ]
        return max(pairs, key=weight_of_pair, default=None)

    def pairs(self, more: Setting, less: Setting) -> tuple[Pair, ...]:
        """The `pair`, then the corresponding pair for each other seed of its biLM."""
        seeds = sorted({r.variant["bilm.seed"] for r in self.records if "bilm.seed" in r.variant})
        changes = [{}, *({"bilm.seed": seed} for seed in seeds)]
        found = [self.pair(more | change, less | change) for change in changes]
        return tuple(pair for pair in found if pair and found[0] and pair[0].first.inputs == found[0][0].first.inputs)

    @cached_property
    def comparisons(self) -> list[Comparison]:
        """Each arm with ELMo beside each baseline and control of it."""
        pairs, found = [each for each in product(self.groups, repeat=2) if _compares(*each)], []
        for one, other in pairs:
            free = one.first.variant | CONTEXT_FREE  # its layer 0, of which there may be several groups of runs
            frees = [each for arm, each in pairs if arm is one and each.first.variant == free]
            best = None if other.first.has_elmo else max(frees, key=weight, default=None)
            context = best and gain(one, best)
            found.append(Comparison(one, other, gain(one, other, "dev"), gain(one, other), context))
        return found

    @cached_property
    def main(self) -> Comparison | None:
        """The paper's comparison; of several the first by `weight_of_pair`."""
        mains = [each for each in self.comparisons if is_main(each.treated.first) and is_main(each.control.first)]
        return max(mains, key=lambda each: weight_of_pair((each.treated, each.control)), default=None)

    @property
    def arms(self) -> list[Group]:
        """The groups of the main comparison, and of the same without pre-trained word vectors: one for each arm."""
        here = [g for g in self.groups if is_main(g.first) or is_main(g.first, random=True)]
        return list(largest(here, lambda group: group.first.arm).values())


Scales = Mapping[str, Sequence[Outcome]]  # the tasks of every scale


def by_scale(records: Iterable[Record]) -> dict[str, list[Outcome]]:
    """The tasks of every scale, real data first and mini last."""
    found: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        found.setdefault((record.scale, record.task), []).append(record)
    tasks = in_order({task for _, task in found})
    scales = scale_order({scale for scale, _ in found})
    return {scale: [Outcome(found[scale, task]) for task in tasks if (scale, task) in found] for scale in scales}


def scale_order(scales: Iterable[str]) -> list[str]:
    """The scales in the order in which they are shown."""
    return sorted(scales, key=lambda scale: ([*SCALES, scale].index(scale), scale))


def compared(scales: Scales) -> dict[str, list[Comparison]]:
    """The paper's comparison of every task, for the scales that have any."""
    mains = {scale: [each.main for each in outcomes if each.main] for scale, outcomes in scales.items()}
    return {scale: found for scale, found in mains.items() if found}


def holm(mains: Sequence[Comparison]) -> dict[str, float]:
    """By task the p of its gain, corrected by Holm's step-down method; a gain without a p is left out."""
    known = sorted((p, each.task) for each in mains if (p := each.test.p) is not None)
    found, least = {}, 0.0
    for i, (p, task) in enumerate(known):
        found[task] = least = min(1.0, max(least, (len(known) - i) * p))
    return found


def _compares(group: Group, baseline: Group) -> bool:
    """Whether the two differ only in ELMo (as its task's configuration has it) and its biLM, or one is a control."""
    one, other = group.first, baseline.first
    if not one.has_elmo or one.inputs != other.inputs:
        return False
    if not other.has_elmo:
        return {key: each for key, each in one.variant.items() if key != "bilm"} == other.variant
    controls = [one.variant | UNTRAINED, *([one.variant | CONTEXT_FREE] if one.weights == other.weights else [])]
    return one.variant != other.variant and other.variant in controls


def largest(groups: Sequence[Group], key: Callable[[Group], Any]) -> dict[Any, Group]:
    """For each key the group of most `weight`; the keys in the order of `groups`."""
    return {key(one): max((each for each in groups if key(each) == key(one)), key=weight) for one in groups}
