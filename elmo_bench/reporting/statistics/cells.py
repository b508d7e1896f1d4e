"""The cells of a sweep's table: which runs belong to each, and what their records say."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from elmo_bench.configuration import layouts
from elmo_bench.configuration.layouts import Layout
from elmo_bench.records.record import Record
from elmo_bench.records.run_names import TITLES
from elmo_bench.reporting.statistics.groups import Group, in_groups
from elmo_bench.sweeps.plan import Point
from elmo_bench.sweeps.together import Outcome


class Cell(NamedTuple):
    """The runs of one setting of a sweep, which differ in their seed.

    Attributes:
        task: its name.
        row, column: the values of the sweep's keys that make them, as in "arm=elmo".
        group: the name of the group of these runs; None if they could not be composed.
        seeds: those asked for.
        beyond: those of them with which there cannot be a run.
    """

    task: str
    row: str
    column: str
    group: str | None
    seeds: tuple[int, ...]
    beyond: tuple[int, ...] = ()

    def runs(self, records: Iterable[Record]) -> Group | None:
        """The recorded runs, of all seeds; with another biLM or data, those with most seeds, then the newest."""
        found = in_groups(each for each in records if (each.task, each.group) == (self.task, self.group))
        return max(found, key=_weight, default=None)

    def missing(self, group: Group | None) -> list[int]:
        """The seeds asked for that have no record."""
        there = {record.seed for record in group.records} if group else set()
        return [seed for seed in self.seeds if seed not in {*there, *self.beyond}]

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> Cell:
        """From the JSON of an earlier table."""
        seeds, beyond = tuple(plain["seeds"]), tuple(plain["beyond"])
        return cls(plain["task"], plain["row"], plain["column"], plain["group"], seeds, beyond)


class Content(NamedTuple):
    """What a table is made of.

    Attributes:
        layout: its columns, and the paper's figures.
        scale: of all its runs.
        groups: the recorded runs of each cell, None if there are none.
        metrics: by task, the one that is shown.
        command: what runs the missing runs of a task.
    """

    layout: Layout
    scale: str
    groups: Mapping[Cell, Group | None]
    metrics: Mapping[str, str]
    command: Callable[[str], str]

    @property
    def tasks(self) -> list[str]:
        """In the paper's order."""
        return layouts.in_order({cell.task for cell in self.groups})

    def of(self, task: str) -> list[Cell]:
        """The cells of a task."""
        return [cell for cell in self.groups if cell.task == task]

    def cell(self, task: str, row: str, column: str | None) -> Cell | None:
        """The cell of a setting, if the sweep has it for the task."""
        return next((cell for cell in self.of(task) if (cell.row, cell.column) == (row, column)), None)

    def group(self, task: str, row: str, column: str | None) -> Group | None:
        """The recorded runs of a setting, if there are any."""
        cell = self.cell(task, row, column)
        return self.groups[cell] if cell else None


def in_words(setting: str) -> str:
    """A setting of a sweep as the head of a row or column: the name of an arm, or key=value."""
    values = [value.removeprefix("arm=") for value in setting.split()]
    return ", ".join(TITLES.get(value, value) for value in values)


def _weight(group: Group) -> tuple[int, str]:
    return len(group.records), max(record.finished for record in group.records)


def cells(outcome: Outcome) -> list[Cell]:
    """The cells of all tasks asked for, in the order of the sweep."""
    layout, found = outcome.plan.asked.layout, dict[tuple[str, str, str], list[Point]]()
    for task in outcome.plan.asked.tasks:
        points = [point for point in outcome.plan.points if point.task == task]
        for point in points:
            found.setdefault((task, *_place(point, points, layout)), []).append(point)
    return [_cell(outcome, place, points) for place, points in found.items()]


def _cell(outcome: Outcome, place: tuple[str, str, str], points: Sequence[Point]) -> Cell:
    composed = [outcome.plan.composed[point] for point in points if point in outcome.plan.composed]
    seeds = tuple(dict.fromkeys(point.seed for point in points))
    beyond = tuple(point.seed for point in points if point in outcome.beyond)
    return Cell(*place, composed[0].group if composed else None, seeds, beyond)


def _place(point: Point, points: Sequence[Point], layout: Layout) -> tuple[str, str]:
    """The row and the column of a point among all of its task."""
    told = _told(points, layout)
    rows = layout.rows or told[:-1]
    values = [value for value in point.setting if _key(value) in told]
    row, column = ([value for value in values if (_key(value) in rows) is one] for one in (True, False))
    return " ".join(row), " ".join(column)


def _told(points: Sequence[Point], layout: Layout) -> list[str]:
    """The keys of the sweep that differ from point to point, or that the layout names."""
    named = [one for column in layout.columns for one in (column.of or "", *column.gain)]
    keys = {_key(value) for one in named for value in one.split()} | {*layout.rows}
    values = list(dict.fromkeys(value for point in points for value in point.setting))
    several = {key for key in map(_key, values) if sum(_key(value) == key for value in values) > 1}
    return list(dict.fromkeys(key for key in map(_key, values) if key in several | keys))


def _key(value: str) -> str:
    return value.partition("=")[0]
