"""What the runs of each task at each scale say of ELMo: its gain over each baseline with the same other settings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate, groupby, product
from typing import Any, NamedTuple

from elmo_bench.configuration.tables import in_order
from elmo_bench.records.query import CONTEXT_FREE, UNTRAINED, is_control, is_main
from elmo_bench.records.record import Record
from elmo_bench.records.run_names import changes_of, with_changes
from elmo_bench.reporting.statistics.gains import Gain, gain
from elmo_bench.reporting.statistics.groups import Group, in_groups, same_inputs, weight, weight_of_pair
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

    @property
    def is_main(self) -> bool:
        """Whether this is the paper's comparison."""
        return is_main(self.treated.first) and is_main(self.control.first)


class Outcome(NamedTuple):
    """The runs of one task at one scale, and the gains among them.

    Attributes:
        groups: without ELMo, then with it; in both those of the paper's comparison first.
        metric: the one that the task monitors.
    """

    records: list[Record]
    groups: list[Group]
    metric: str
    comparisons: list[Comparison]

    @property
    def task(self) -> str:
        return self.records[0].task

    @property
    def scale(self) -> str:
        return self.records[0].scale

    @property
    def note(self) -> str:
        """What the scale is."""
        return newest_record(self.records).note

    @property
    def main(self) -> Comparison | None:
        """The paper's comparison; of several that of `weight_of_pair`."""
        mains = [each for each in self.comparisons if each.is_main]
        return max(mains, key=lambda each: weight_of_pair((each.treated, each.control)), default=None)

    @property
    def arms(self) -> list[Group]:
        """The groups of the main comparison, and of the same without pre-trained word vectors: one for each arm."""
        here = [g for g in self.groups if is_main(g.first) or is_control(g.first)]
        return list(largest(here, lambda group: group.first.arm).values())


Scales = Mapping[str, Sequence[Outcome]]  # the tasks of every scale


def by_scale(records: Iterable[Record]) -> dict[str, list[Outcome]]:
    """The tasks of every scale, real data first and mini last.

    Raises:
        UserError: runs of one group have different metrics or layers: one of their records is wrong.
    """
    outcomes = map(outcome, by_place(records))
    return {scale: list(here) for scale, here in groupby(outcomes, key=lambda each: each.scale)}


def outcome(records: list[Record]) -> Outcome:
    """Of the records of one task at one scale: each arm of ELMo's beside each baseline and control of it.

    Raises:
        UserError: as `by_scale`.
    """
    groups = sorted(in_groups(records), key=row_order)
    compared, whole = [], []
    for one, other in product(groups, groups):
        if _compares(one, other):
            compared.append(Comparison(one, other, gain(one, other, split="dev"), gain(one, other)))
    for each in compared:
        free = each.treated.first.variant | CONTEXT_FREE  # its layer 0, of which there may be several groups of runs
        found = [one for one in compared if one.treated is each.treated and one.control.first.variant == free]
        best = None if each.control.first.has_elmo else max(found, key=lambda one: weight(one.control), default=None)
        whole.append(each._replace(context=best and best.test))
    return Outcome(records, groups, monitored(records), whole)


def compared(scales: Scales) -> dict[str, list[Comparison]]:
    """The paper's comparison of every task, for the scales that have any."""
    mains = {scale: [each.main for each in outcomes if each.main] for scale, outcomes in scales.items()}
    return {scale: found for scale, found in mains.items() if found}


def holm(mains: Sequence[Comparison]) -> dict[str, float]:
    """By task the p of its gain, corrected by Holm's step-down method; a gain without a p is left out."""
    known = sorted((p, each.task) for each in mains if (p := each.test.p) is not None)
    steps = accumulate(((len(known) - rank) * p for rank, (p, _) in enumerate(known)), max)
    return {task: min(1.0, p) for (_, task), p in zip(known, steps, strict=True)}


def _compares(group: Group, baseline: Group) -> bool:
    """Whether they differ in ELMo, as its task's configuration has it, and its biLM alone; or one is a control."""
    one, other = group.first, baseline.first
    if not one.has_elmo or not same_inputs(one, other):
        return False
    if not other.has_elmo:
        return {key: value for key, value in one.variant.items() if key != "bilm"} == other.variant
    controls = [one.variant | UNTRAINED, *([one.variant | CONTEXT_FREE] if one.weights == other.weights else [])]
    return one.variant != other.variant and other.variant in controls


# Records and groups in order.


def by_place(records: Iterable[Record]) -> list[list[Record]]:
    """The records of each task and scale, in the order of the report."""
    places: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        places.setdefault((record.task, record.scale), []).append(record)
    scales = [*SCALES, *sorted({scale for _, scale in places} - {*SCALES})]
    tasks = in_order({task for task, _ in places})
    return [places[task, scale] for scale in scales for task in tasks if (task, scale) in places]


def newest_record(records: Sequence[Record]) -> Record:
    """The one whose run finished last."""
    return max(records, key=lambda record: record.finished)


def monitored(records: Sequence[Record]) -> str:
    """The metric that the newest record of a task monitors. Raises `UserError` if another record lacks it."""
    metric = newest_record(records).monitor
    for record in records:
        if any(metric not in record.metrics[split] for split in ("dev", "test")):
            where = f"{record.run} ({record.task}, scale {record.scale})"
            raise UserError(f"the record {where} has no {metric}, unlike others of the task; restore or remove it")
    return metric


def row_order(group: Group) -> tuple:
    """Sorts the groups of a table: without ELMo first; the paper's comparison, the same without vectors, the others."""
    place = 0 if is_main(group.first) else 1 if is_control(group.first) else 2
    return group.first.has_elmo, place, group.first.bilm_name or "", group.name, group.first.group


def largest(groups: Iterable[Group], key: Callable[[Group], Any]) -> dict[Any, Group]:
    """Of the groups with the same key the one of most `weight`; the keys in the order of `groups`."""
    found: dict[Any, Group] = {}
    for group in groups:
        other = found.setdefault(key(group), group)
        found[key(group)] = max(other, group, key=weight)
    return found
