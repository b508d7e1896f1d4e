"""Which groups of runs are compared: +ELMo with each baseline that has the same other settings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby, product
from typing import NamedTuple

from elmo_bench.experiment.store import Record
from elmo_bench.reporting import gains, tables
from elmo_bench.reporting.gains import Gain
from elmo_bench.reporting.groups import Group, arm_page, in_groups


class Comparison(NamedTuple):
    """Two groups of one task and scale, and the gain of the first over the second on test."""

    treated: Group
    control: Group
    gain: Gain

    @property
    def task(self) -> str:
        return self.treated.first["task"]

    @property
    def is_main(self) -> bool:
        """Whether these are the paper's two arms, as the task's page has them."""
        trained = self.treated.bilm != "untrained"
        return trained and [arm_page(g.first) for g in (self.treated, self.control)] == [(True, False), (False, False)]


class Place(NamedTuple):
    """The runs of one task at one scale."""

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
        """The paper's comparison; of several the one of the newest version, then with most seeds, then the newest."""
        found = [each for each in self.comparisons if each.is_main]
        return max(found, key=_rank, default=None)

    @property
    def arms(self) -> list[Group]:
        """The groups of the main comparison: baseline, +ELMo, and the same two with vectors of the biLM's text."""
        shown = max((group.version for group in self.groups), default=0)
        version = self.main.treated.version if self.main else shown
        chosen = tables.main_arms([g for g in self.groups if g.version == version and g.bilm != "untrained"])
        return [chosen[arm] for arm in sorted(chosen, key=lambda arm: (arm[1], arm[0]))]


def _rank(each: Comparison) -> tuple:
    return each.treated.version, min(each.gain.seeds), tables.newest_record(each.treated.records)["finished"]


def by_scale(records: Iterable[Record]) -> dict[str, list[Place]]:
    """The tasks of every scale, real data first and mini last; p-values are corrected within a scale (Holm).

    Raises:
        UserError: runs of one group have different metrics or layers: one of their records is wrong.
    """
    places = [_place(each) for each in tables.by_place(records)]
    return {scale: _corrected(list(here)) for scale, here in groupby(places, key=lambda place: place.scale)}


def _place(records: list[Record]) -> Place:
    groups = sorted(in_groups(records), key=tables.row_order)
    pairs = [(one, other) for one, other in product(groups, groups) if tables.compares(one, other)]
    version = max((one.version for one, _ in pairs), default=0)
    compared = [Comparison(*pair, gains.gain(*pair)) for pair in pairs if pair[0].version == version]
    return Place(records, groups, tables.monitored(records), compared)


def _corrected(places: Sequence[Place]) -> list[Place]:
    corrected = iter(gains.holm([each.gain for place in places for each in place.comparisons]))
    return [
        place._replace(comparisons=[each._replace(gain=next(corrected)) for each in place.comparisons])
        for place in places
    ]
