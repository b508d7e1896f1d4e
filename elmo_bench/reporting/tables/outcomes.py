"""What the runs of each task at each scale say of ELMo: its gain over each baseline with the same other settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby, product
from typing import NamedTuple

from elmo_bench.records.store import Record
from elmo_bench.reporting.statistics.gains import Gain, gain, holm
from elmo_bench.reporting.statistics.groups import Group, fraction, in_groups, is_control, is_pair
from elmo_bench.reporting.tables import tables
from elmo_bench.reporting.tables.comparisons import compares


class Comparison(NamedTuple):
    """Two groups of runs, and the gain of the first over the second on test."""

    treated: Group
    control: Group
    gain: Gain

    @property
    def task(self) -> str:
        return self.treated.first["task"]

    @property
    def is_main(self) -> bool:
        """Whether this is the paper's comparison: the pair of the scale."""
        return is_pair(self.treated.first) and is_pair(self.control.first)


class Outcome(NamedTuple):
    """The runs of one task at one scale, and the gains among them."""

    records: list[Record]
    groups: list[Group]
    metric: str
    comparisons: list[Comparison]

    @property
    def task(self) -> str:
        return self.records[0]["task"]

    @property
    def scale(self) -> str:
        return self.records[0]["scale"]

    @property
    def main(self) -> Comparison | None:
        """The paper's comparison; of several the one with most seeds, then the newest."""
        return max((each for each in self.comparisons if each.is_main), key=_rank, default=None)

    @property
    def arms(self) -> list[Group]:
        """The groups of the main comparison, and of the same without pre-trained word vectors: one for each arm."""
        here = [g for g in self.groups if is_pair(g.first) or is_control(g.first)]
        return list(tables.largest(here, lambda group: group.first["arm"]).values())


Scales = Mapping[str, Sequence[Outcome]]  # the tasks of every scale


def compared(scales: Scales) -> dict[str, list[Comparison]]:
    """The paper's comparison of every task, for the scales that have any."""
    mains = {scale: [outcome.main for outcome in outcomes if outcome.main] for scale, outcomes in scales.items()}
    return {scale: found for scale, found in mains.items() if found}


def _rank(each: Comparison) -> tuple:
    return min(each.gain.seeds), tables.newest_record(each.treated.records)["finished"]


def by_scale(records: Iterable[Record]) -> dict[str, list[Outcome]]:
    """The tasks of every scale, real data first and mini last.

    Raises:
        UserError: runs of one group have different metrics or layers: one of their records is wrong.
    """
    outcomes = [_outcome(each) for each in tables.by_place(records)]
    return {scale: list(here) for scale, here in groupby(outcomes, key=lambda outcome: outcome.scale)}


def _outcome(records: list[Record]) -> Outcome:
    groups = sorted(in_groups(records), key=tables.row_order)
    whole = [group for group in groups if fraction(group.first) == 1]
    pairs = [(one, other) for one, other in product(whole, whole) if compares(one, other)]
    gains = holm([gain(*pair) for pair in pairs])
    compared = [Comparison(*pair, each) for pair, each in zip(pairs, gains, strict=True)]
    return Outcome(records, groups, tables.monitored(records), compared)
