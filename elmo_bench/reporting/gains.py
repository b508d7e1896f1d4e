"""Groups of recorded runs that differ only in their seed; and the gains of ELMo at each task and scale, over baselines
with the same other settings, with intervals and tests."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import groupby, product
from math import comb
from statistics import fmean, stdev
from types import MappingProxyType
from typing import Any

import numpy as np

from elmo_bench.configuration import pages
from elmo_bench.configuration.keys import flat
from elmo_bench.configuration.pages import Setting, in_order
from elmo_bench.records import store
from elmo_bench.records.frame import CONTEXT_FREE, UNTRAINED, fits, is_main, rows_of
from elmo_bench.records.record import Record, changes_text, without_seed
from elmo_bench.reporting.intervals import (
    Arm,
    Evidence,
    Spread,
    effective,
    missing_reason,
    of_arm,
    pool,
    spread,
    total,
)
from elmo_bench.reporting.section import Run
from elmo_bench.system.errors import UserError, as_typed

RISES, SEEN = "↑", "†"
RISING = f"N {RISES}: N of these runs had their best dev score in the last epoch; more epochs might raise the score."


@dataclass(eq=False, repr=False)
class Group:
    """Runs that differ only in their seed, sorted by seed.

    Attributes:
        name: the title of their row in tables.
        among: all groups of the task at the scale, whose seeds show how much a score varies.
        metric: the metric shown; by default the one that the first run monitors.
        first: the run with the smallest seed.
        rising: how many runs had their best dev score in the last epoch, "; 3 ↑"; empty if none had.
        seeds: the seeds, and how many of them were `rising`: "1-3, 7; 2 ↑".
        mark: shown after a score that is not evidence, as the source of layers has seen the task's data; else empty.
    """

    records: list[Record]
    name: str = ""
    among: Sequence[Group] = ()
    metric: str = ""

    def __post_init__(self):
        self.first = self.records[0]
        self.metric = self.metric or self.first.monitor
        number = sum(record.rises for record in self.records)
        self.rising = f"; {number} {RISES}" if number else ""
        self.seeds = ranges([record.seed for record in self.records]) + self.rising
        self.mark = f" {SEEN}" if self.first.has_seen else ""

    def scores(self, split: str = "test", metric: str = "") -> list[float]:
        """The score of each seed, in percent."""
        return [record.metrics[split][metric or self.metric] for record in self.records]

    def mean(self, split: str = "test", metric: str = "") -> str:
        """The mean and sample deviation of the scores, "90.00 ± 1.00"; no deviation for a single run."""
        scores = self.scores(split, metric)
        return f"{fmean(scores):.2f}" + (f" ± {stdev(scores):.2f}" if len(scores) > 1 else "")

    def mean_of(self, key: str, form: str) -> str:
        """The mean of another number over the runs that have it, in this form; empty if none has."""
        known = [value for record in self.records if (value := getattr(record, key))]
        return form.format(fmean(known)) if known else ""

    def weights(self, place: str) -> list[float]:
        """The mean over the seeds of each s_j at the selected epoch, then that of gamma."""
        chosen = [[*run.layer_weights[place][run.epoch - 1], run.gamma[place][run.epoch - 1]] for run in self.records]
        return [fmean(column) for column in zip(*chosen, strict=True)]

    def runs(self, *values: str) -> list[Run]:
        """Links to the records; each run with its value, by default the name of the group."""
        paths = (store.place(".", record.scale, record.task, record.run) for record in self.records)
        return [
            Run(record.run, f"seed {record.seed}: {value}", path.as_posix())
            for record, path, value in zip(self.records, paths, values or [self.name] * len(self.records), strict=True)
        ]


def in_groups(records: Sequence[Record], metric: str = "") -> list[Group]:
    """The groups of one task at one scale; runs with another biLM or other data are in another group.

    If groups would have the same name, their differences are added to it. Records of one group that have different
    metrics or layers are refused, because one of them must be wrong.
    """
    found = []
    for _, alike in rows_of(records).groupby(["label", "bilm"], sort=False, dropna=False):
        parts = alike.groupby(["group", "weights", "inputs"], sort=False)
        groups = [[*runs.sort_values("seed", kind="stable").record] for _, runs in parts]
        settings = differences([flat(without_seed(runs[0].settings)) for runs in groups])
        files = differences([{"biLM": runs[0].weights, "data": runs[0].data_sha256} for runs in groups])
        for runs, changed, digests in zip(groups, settings, files, strict=True):
            columns = [  # the columns that a table averages: numbers of weighted layers at each place, and metrics
                [
                    {place: len(rows[0]) for place, rows in record.layer_weights.items()},
                    *map(set, record.metrics.values()),
                ]
                for record in runs
            ]
            for other, each in zip(runs, columns, strict=True):
                if each != columns[0]:
                    raise UserError(
                        f"the records {runs[0].run} and {other.run} ({other.task}, scale {other.scale}) differ "
                        "only in their seed, but have other metrics or layers; restore or remove the wrong one"
                    )
            words = settings_text(changed)
            digests = [f"{kind} {short(each)}" for kind, each in digests.items() if short(each) not in "; ".join(words)]
            found.append(Group(runs, "; ".join([alike.label.iloc[0], *words, *digests]), found, metric))
    return found


def differences(settings: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """For each of several settings, its values of the dotted keys in which they differ; None if it lacks the key."""
    keys = sorted({key for each in settings for key in each})
    different = [key for key in keys if any(each.get(key) != settings[0].get(key) for each in settings)]
    return [{key: each.get(key) for key in different} for each in settings]


def weight(group: Group) -> tuple[bool, bool, int, str, str]:
    """Sorts groups: highest are groups on the scale's own data, then without a change, with most seeds, the newest."""
    newest = max(record.finished for record in group.records)
    return not group.first.own_data, not group.first.variant, len(group.records), newest, group.first.group


def weight_of_pair(pair: tuple[Group, Group]) -> tuple:
    """The same for the groups of a comparison, by the one with fewer seeds."""
    one, other = map(weight, pair)
    return (*min(one[:2], other[:2]), *sorted((one[2:], other[2:])))


def settings_text(settings: Mapping[str, Any], most: int = 4) -> list[str]:
    """Settings as key=value, a sha256 cut to eight digits; beyond `most` of them, only the number of the others."""
    shown = [f"{key}={short(value)}" for key, value in list(settings.items())[:most]]
    return shown + ([f"{len(settings) - most} more settings"] if len(settings) > most else [])


def short(value: Any) -> str:
    """A value as text, each sha256 cut to eight digits."""
    return re.sub(r"\b(sha256:)?([0-9a-f]{8})[0-9a-f]{56}\b", r"\2", as_typed(value))


def rising_remark(rows: Sequence[Sequence[str]]) -> list[str]:
    """An explanation of the mark ↑ for a table that has it."""
    return [RISING] if any(RISES in cell for row in rows for cell in row) else []


def paper_scores(record: Record, metric: str = "") -> tuple[float | None, float | None]:
    """The paper's figures for the baseline and +ELMo."""
    given = (record.paper.get(arm) for arm in ("baseline", "elmo"))
    before, after = (each.get(metric or record.monitor) if isinstance(each, dict) else each for each in given)
    return before, after


def paper_gain(record: Record) -> str:
    """The paper's gain of ELMo in the monitored metric, "+2.07"; empty without figures."""
    before, after = paper_scores(record)
    return "" if before is None or after is None else f"{round(after - before, 2):+.2f}"


def ranges(seeds: Sequence[int]) -> str:
    """[1, 2, 3, 7] -> "1-3, 7"."""
    alike = groupby(enumerate(sorted(seeds)), key=lambda pair: pair[1] - pair[0])  # in a range both grow by one
    parts = [[seed for _, seed in pairs] for _, pairs in alike]
    return ", ".join(str(part[0]) if len(part) == 1 else f"{part[0]}-{part[-1]}" for part in parts)


# Gains.

Pair = tuple[Group, Group]  # the treated arm and the control
Paired = Sequence[Sequence[Sequence[Evidence]]]  # for each pair, the evidence of the runs of its arms
LARGE = 0.25  # a share of a gain: a cluster of examples that causes more is named
SEEDS_AGREE = "no interval: the seeds do not differ"


@dataclass
class Gain:
    """The gain of one arm over another, in percentage points.

    Attributes:
        mean: the mean of the treated arm minus that of the control, over their seeds.
        spread: the spread of this mean; None if unknown.
        seeds: the numbers of seeds in the treated arm and in the control.
        note: the limits of the interval; empty without limits.
        clusters: the number of clusters of examples, such as "316 documents, 20 effective"; else empty.
        carried: the cluster that causes a large part of the gain, "without NAME the gain is +0.95 (62 % less)"; empty
            if none does. A cluster without a name has its number from 1.
        interval: the 95 % interval.
        p: the p of no gain, from the spread of the interval; None without one, or with one seed in an arm.
        verdict: clear or worse (the interval is above or below 0), not shown, one seed, no interval.
    """

    mean: float
    spread: Spread | None
    seeds: tuple[int, int]
    note: str
    clusters: str = ""
    carried: str = ""

    def __post_init__(self):
        several = min(self.seeds) > 1
        self.interval = self.spread and self.spread.around(self.mean)
        self.p = self.spread.p(self.mean) if self.spread and several else None
        if not several or self.interval is None:
            self.verdict = "no interval" if several else "one seed"
        else:
            low, high = self.interval
            self.verdict = "clear" if low > 0 else "worse" if high < 0 else "not shown"

    def __str__(self) -> str:
        """ "+5.31 [+4.10, +6.52]"; without an interval only the mean."""
        return f"{self.mean:+.2f}" + (" [{:+.2f}, {:+.2f}]".format(*self.interval) if self.interval else "")


@lru_cache(maxsize=4096)  # tables, findings and pictures show the same ones
def gain(*pairs: Pair, split: str = "test") -> Gain:
    """The gain of one arm over another in the metric by which their task selects its epoch.

    Over several biLMs, which differ in their seed, it is the mean gain. The biLM is then a level of its own (Sellam et
    al. 2022, "The MultiBERTs"), and its runs are one value.

    Args:
        pairs: for each biLM, the arms to compare, groups of runs of one task on the same data; a baseline is the same
            in all.
        split: "dev" or "test". Dev has chosen the epoch of every run, so its scores are a little too high in both arms.
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
    """See `Gain.carried`; `cluster` is the cluster on which the gain depends most."""
    means = [
        [np.mean([each.percent((each.table.sum(0) - each.table[cluster])[None]) for each in arm]) for arm in pair]
        for pair in known
    ]
    without = float(np.mean([one - other for one, other in means]))
    share = 1 - without / gain if gain else 0.0  # above 1 if the gain then has the other sign
    name = (known[0][0][0].names or range(1, cluster + 2))[cluster]
    return f"without {name} the gain is {without:+.2f} ({100 * share:.0f} % less)" if share > LARGE else ""


def error_reduction(pairs: tuple[Pair, ...]) -> Gain | None:
    """The percentage of the control's errors on test that the treated arm avoids; None if there are none.

    It is a ratio, with the spread of its linear part: with e the control's errors and r the ratio, a point of the
    treated arm adds 1/e to it, and a point of the control subtracts (1 - r)/e.

    Args:
        pairs: as for `gain`; the control is one baseline.
    """
    gained = gain(*pairs)
    (one, other), *_ = _arms(pairs, "test")
    errors = 100 + float(other.scores.mean())
    if not errors:
        return None
    share = gained.mean / errors
    found = spread(one.scaled(100 / errors), other.scaled(100 * (1 - share) / errors))
    return replace(gained, mean=100 * share, spread=found, carried="")


def of_models(treated: Group, control: Group) -> list[float | None]:
    """For each seed of the treated arm the p of its gain over the control's run of the same seed.

    It is over clusters of test examples, so it is about these two models, not the arms. None without such a run.
    """
    others = {record.seed: Group([record]) for record in control.records}
    pairs = [(Group([one]), others.get(one.seed)) for one in treated.records]
    found = [gain((one, other)) if other else None for one, other in pairs]
    return [each and each.spread and each.spread.p(each.mean) for each in found]


def _arms(pairs: Sequence[Pair], split: str) -> tuple[list[Arm], str, Paired]:
    """The arms of a gain.

    Returns:
        arms whose means add up to the gain, the control's with the other sign; the variance of their seeds is that of
        all arms with the same inputs. The reason to doubt the interval. The evidence of each pair, empty unless all
        runs have it for the same examples.
    """
    alike = {(each.first.fraction, each.first.inputs) for each in pairs[0]}
    among = (each for each in pairs[0][0].among if (each.first.fraction, each.first.inputs) in alike)
    pooled, doubt = pool(tuple(tuple(each.scores(split)) for each in among))
    known = [[of_arm(each.records, split, each.metric) for each in pair] for pair in pairs]
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
    """An arm with one score per biLM: the `total` of its arms."""
    scores, influences = zip(*map(total, arms), strict=True)
    return Arm(np.array(scores), np.stack(influences))


READING = (
    "[low, high] after a gain is its 95 % interval, over seeds and clusters of examples: documents or articles, if the "
    "data have them; effective: the equivalent number of clusters of equal weight. It is for one biLM. p is below "
    "0.05 exactly when the interval excludes 0. power: the true gain that such runs would show four times out of five. "
    "Dev scores select the epochs, so they are a little high. Nothing is averaged over tasks."
)


def p_text(p: float | None, unknown: str = "") -> str:
    """ "0.013", "<0.001"."""
    return unknown if p is None else f"{p:.3f}" if p >= 0.001 else "<0.001"


def shown_by(seeds: tuple[int, int]) -> str:
    """The findings that the numbers of seeds in two arms can and cannot show."""
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


@dataclass
class Comparison:
    """An arm with ELMo, a baseline or a control, and the gain on either split.

    Attributes:
        context: for a gain over a baseline, the arm's gain on test over its own layer 0, which has no context; None
            without such runs.
        task, changes, title: the task; the biLM, word vectors and data that are not the scale's; both together.
    """

    treated: Group
    control: Group
    dev: Gain
    test: Gain
    context: Gain | None = None

    def __post_init__(self):
        run = self.treated.first
        self.task, self.changes = run.task, changes_text(run.variant | run.own_data)
        self.title = f"{self.task} ({self.changes})" if self.changes else self.task


class Outcome:
    """The runs of one task at one scale, as groups, and the gains among them.

    Attributes:
        groups: without ELMo, then with it; in both, the paper's comparison comes first. With `asked`, only these and
            their controls; the seeds of all groups show how much a score varies.
        metric: the metric that the task monitors.
        note: a description of the scale, from the current file, or else from the newest run.
    """

    def __init__(self, records: Sequence[Record], asked: Container[str] | None = None):
        newest = max(records, key=lambda record: record.finished)
        self.task, self.scale, self.metric = newest.task, newest.scale, newest.monitor
        self.note = pages.written("scale", self.scale, "note") or newest.config["scale"]["note"]
        for record in records:
            if any(self.metric not in record.metrics[split] for split in ("dev", "test")):
                where = f"{record.run} ({self.task}, scale {self.scale})"
                problem = f"the record {where} has no {self.metric}, unlike others of the task"
                raise UserError(f"{problem}; restore or remove it")
        self.groups = in_groups(records, self.metric)
        if asked is not None:
            arms = [each for each in self.groups if each.first.group in asked]
            self.groups = [each for each in self.groups if each in arms or any(_compares(arm, each) for arm in arms)]
        self.records = [record for each in self.groups for record in each.records]
        self.groups.sort(  # without ELMo first; the paper's comparison, the same without vectors, the others
            key=lambda group: (
                group.first.has_elmo, not is_main(group.first), not is_main(group.first, random=True),
                group.first.bilm_name or "", group.name, group.first.group,
            )
        )  # fmt: skip

    def pair(self, more: Setting, less: Setting) -> Pair | None:
        """The runs of two settings on the same data; among several such pairs the first by `weight_of_pair`.

        They also have the same biLM and the same files of word vectors, unless these are compared.
        """
        named = {key.partition(".")[0] for key in (*more, *less)}
        whose = slice(1) if "vectors" in named else slice(None)  # only the data, or also the files of vectors
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
            free = one.first.variant | CONTEXT_FREE  # its layer 0, which may have several groups of runs
            frees = [each for arm, each in pairs if arm is one and each.first.variant == free]
            best = None if other.first.has_elmo else max(frees, key=weight, default=None)
            context, pair = best and gain((one, best)), (one, other)
            found.append(Comparison(*pair, gain(pair, split="dev"), gain(pair), context))
        return found

    @cached_property
    def main(self) -> Comparison | None:
        """The paper's comparison; among several the first by `weight_of_pair`."""
        mains = [each for each in self.comparisons if is_main(each.treated.first) and is_main(each.control.first)]
        return max(mains, key=lambda each: weight_of_pair((each.treated, each.control)), default=None)

    @property
    def arms(self) -> list[Group]:
        """The groups of the main comparison, and of the same without pre-trained word vectors, one per arm."""
        here = [g for g in self.groups if is_main(g.first) or is_main(g.first, random=True)]
        return list(largest(here, lambda group: group.first.arm).values())


Scales = Mapping[str, Sequence[Outcome]]  # the tasks of every scale
Asked = Mapping[str, Container[str]]  # by task the groups to show, with their controls; all if it is not named
EVERY: Asked = MappingProxyType({})


def by_scale(records: Iterable[Record], asked: Asked = EVERY) -> dict[str, list[Outcome]]:
    """The tasks of every scale, real data first and mini last."""
    found: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        found.setdefault((record.scale, record.task), []).append(record)
    tasks = in_order({task for _, task in found})
    scales = sorted({scale for scale, _ in found}, key=lambda scale: ([*SCALES, scale].index(scale), scale))
    return {
        scale: [Outcome(found[scale, task], asked.get(task)) for task in tasks if (scale, task) in found]
        for scale in scales
    }


def compared(scales: Scales) -> dict[str, list[Comparison]]:
    """The paper's comparison of every task, for all scales with such runs."""
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
    """Whether the two differ only in ELMo (with its task's configuration) and its biLM, or one is a control."""
    one, other = group.first, baseline.first
    if not one.has_elmo or one.inputs != other.inputs:
        return False
    if not other.has_elmo:
        return {key: each for key, each in one.variant.items() if key != "bilm"} == other.variant
    controls = [UNTRAINED, *([CONTEXT_FREE] if one.weights == other.weights else [])]
    return one.variant != other.variant and any(fits(other, one.variant | each) for each in controls)


def largest(groups: Sequence[Group], key: Callable[[Group], Any]) -> dict[Any, Group]:
    """For each key the group of the largest `weight`; the keys in the order of `groups`."""
    return {key(one): max((each for each in groups if key(each) == key(one)), key=weight) for one in groups}
