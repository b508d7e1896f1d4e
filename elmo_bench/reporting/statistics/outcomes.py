"""What the runs of each task at each scale say of ELMo: its gain over each baseline with the same other settings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple

from elmo_bench.configuration.tables import Setting, in_order
from elmo_bench.records.frame import CONTEXT_FREE, UNTRAINED, fits, is_main, rows_of
from elmo_bench.records.record import Record, changes_of, with_changes
from elmo_bench.reporting.statistics.gains import Gain, Pair, gain
from elmo_bench.reporting.statistics.groups import Group, in_groups, weight, weight_of_pair
from elmo_bench.system.errors import UserError

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
        """The biLM, word vectors and data that are not the scale's, in words."""
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
        note: what the scale is.

    Raises:
        UserError: runs of one group have different metrics or layers, or one lacks the metric: a record is wrong.
    """

    def __init__(self, records: Sequence[Record]):
        newest = newest_record(records)
        self.task, self.scale, self.note, self.metric = newest.task, newest.scale, newest.note, newest.monitor
        self.records, self.groups = records, sorted(in_groups(records), key=_row_order)
        for record in records:
            if any(self.metric not in record.metrics[split] for split in ("dev", "test")):
                where = f"{record.run} ({self.task}, scale {self.scale})"
                problem = f"the record {where} has no {self.metric}, unlike others of the task"
                raise UserError(f"{problem}; restore or remove it")

    def of(self, setting: Setting) -> list[Group]:
        """The groups that have a setting and change nothing else."""
        return [group for group in self.groups if fits(group.first, setting)]

    def pair(self, more: Setting, less: Setting) -> Pair | None:
        """The runs of two settings on the same data; of several such pairs that of `weight_of_pair`.

        They also have the same biLM and the same files of word vectors, unless these are compared.
        """
        named = {key.partition(".")[0] for key in (*more, *less)}
        whose = slice(1) if "vectors" in named else slice(None)  # the data alone, or the files of vectors, too
        pairs = [
            (one, other)
            for one, other in product(self.of(more), self.of(less))
            if one.first.inputs[whose] == other.first.inputs[whose]
            and ("bilm" in named or len({one.first.weights, other.first.weights} - {None}) < 2)
        ]
        return max(pairs, key=weight_of_pair, default=None)

    def pairs(self, more: Setting, less: Setting) -> tuple[Pair, ...]:
        """The `pair`, then for each other seed of its biLM the pair of that."""
        seeds = sorted({r.variant["bilm.seed"] for r in self.records if "bilm.seed" in r.variant})
        changes = [{}, *({"bilm.seed": seed} for seed in seeds)]
        found = [self.pair(more | change, less | change) for change in changes]
        return tuple(pair for pair in found if pair and found[0] and pair[0].first.inputs == found[0][0].first.inputs)

    @cached_property
    def comparisons(self) -> list[Comparison]:
        """Each arm of ELMo's beside each baseline and control of it."""
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
        """The paper's comparison; of several that of `weight_of_pair`."""
        mains = [each for each in self.comparisons if is_main(each.treated.first) and is_main(each.control.first)]
        return max(mains, key=lambda each: weight_of_pair((each.treated, each.control)), default=None)

    @property
    def arms(self) -> list[Group]:
        """The groups of the main comparison, and of the same without pre-trained word vectors: one for each arm."""
        here = [g for g in self.groups if is_main(g.first) or is_main(g.first, random=True)]
        return list(largest(here, lambda group: group.first.arm).values())


Scales = Mapping[str, Sequence[Outcome]]  # the tasks of every scale


def by_scale(records: Iterable[Record]) -> dict[str, list[Outcome]]:
    """The tasks of every scale, real data first and mini last. Raises `UserError` as `Outcome` does."""
    runs, found = rows_of(records), dict[str, list[Outcome]]()
    scales = [*SCALES, *sorted({*runs.scale} - {*SCALES})]
    for scale, task in product(scales, in_order({*runs.task})):
        here = [*runs.record[(runs.scale == scale) & (runs.task == task)]]
        if here:
            found.setdefault(scale, []).append(Outcome(here))
    return found


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
    """Whether they differ in ELMo, as its task's configuration has it, and its biLM alone; or one is a control."""
    one, other = group.first, baseline.first
    if not one.has_elmo or one.inputs != other.inputs:
        return False
    if not other.has_elmo:
        return {key: each for key, each in one.variant.items() if key != "bilm"} == other.variant
    controls = [one.variant | UNTRAINED, *([one.variant | CONTEXT_FREE] if one.weights == other.weights else [])]
    return one.variant != other.variant and other.variant in controls


def newest_record(records: Sequence[Record]) -> Record:
    """The one whose run finished last."""
    return max(records, key=lambda record: record.finished)


def _row_order(group: Group) -> tuple:
    """Sorts the groups of a table: without ELMo first; the paper's comparison, the same without vectors, the others."""
    first = group.first
    place = [is_main(first), is_main(first, random=True), True].index(True)
    return first.has_elmo, place, first.bilm_name or "", group.name, first.group


def largest(groups: Sequence[Group], key: Callable[[Group], Any]) -> dict[Any, Group]:
    """Of the groups with the same key the one of most `weight`; the keys in the order of `groups`."""
    return {key(one): max((each for each in groups if key(each) == key(one)), key=weight) for one in groups}
