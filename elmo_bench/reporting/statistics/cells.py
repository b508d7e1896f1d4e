"""The cells of a sweep's table: the runs of each row and column, found by their settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from elmo_bench.configuration.tables import Column, Setting, SweepTable, in_order
from elmo_bench.records.query import normal
from elmo_bench.records.record import Record
from elmo_bench.reporting.statistics.groups import Group, of_setting
from elmo_bench.sweeps import pages as sweeps
from elmo_bench.sweeps.request import SweepRequest

ONE_ROW = [Column("", {})]
FIRST = "table1"  # whose runs are in other tables, too


class Cell(NamedTuple):
    """The runs of one row and column for a task.

    Attributes:
        task: its name.
        row, column: their titles.
        group: the recorded runs, of all seeds; None if there are none.
        missing: the seeds asked for that have no record.
        impossible: whether there can be no run, for the data do not fill a batch.
    """

    task: str
    row: str
    column: str
    group: Group | None
    missing: tuple[int, ...]
    impossible: bool = False


class Content(NamedTuple):
    """What a table is made of.

    Attributes:
        request: the sweep.
        columns: those that are shown.
        cells: in the order of tasks, rows and columns.
        metrics: by task, the one that is shown.
        note: what the scale is.
    """

    request: SweepRequest
    columns: Sequence[Column]
    cells: Sequence[Cell]
    metrics: Mapping[str, str]
    note: str

    @property
    def tasks(self) -> list[str]:
        """In the paper's order."""
        return list(dict.fromkeys(cell.task for cell in self.cells))

    def of(self, task: str) -> list[Cell]:
        """The cells of a task."""
        return [cell for cell in self.cells if cell.task == task]

    def cell(self, task: str, row: str, column: str) -> Cell | None:
        """The cell of a row and column, if the column has runs."""
        return next((cell for cell in self.of(task) if (cell.row, cell.column) == (row, column)), None)

    @property
    def groups(self) -> list[tuple[Cell, Group]]:
        """The cells that have runs."""
        return [(cell, cell.group) for cell in self.cells if cell.group]


def content(request: SweepRequest, records: Sequence[Record]) -> Content | None:
    """The table of a sweep at its scale, for the tasks asked for and all others that have runs of their own in it.

    Returns:
        None if there is no such task.
    """
    here = [record for record in records if record.scale == request.scale]
    columns, seeds, cells = _columns(request), request.all_seeds, list[Cell]()
    for task in in_order({*request.tasks, *(record.task for record in here)}):
        found = _cells(request, task, columns, seeds, [record for record in here if record.task == task])
        own = [cell for cell in found if cell.group and (request.sweep == FIRST or cell.group.first.variant)]
        cells += found if own or task in request.tasks else []
    shown = [record for cell in cells if cell.group for record in cell.group.records]
    newest = sorted(shown or here, key=lambda record: record.finished)
    metrics = {record.task: record.monitor for record in newest}
    return Content(request, columns, cells, metrics, newest[-1].note if newest else "") if cells else None


def _cells(
    request: SweepRequest, task: str, columns: Sequence[Column], seeds: Sequence[int], records: Sequence[Record]
) -> list[Cell]:
    rows, changes = request.table.rows or ONE_ROW, request.setting
    found = []
    for row in rows:
        for column in (column for column in columns if column.of is not None):
            setting = row.of | column.of | changes
            group = of_setting(records, setting)
            there = {record.seed for record in group.records} if group else set()
            impossible = group is None and _impossible(setting, records)
            missing = () if impossible else tuple(seed for seed in seeds if seed not in there)
            found.append(Cell(task, row.title, column.title, group, missing, impossible))
    return found


def _impossible(setting: Setting, records: Iterable[Record]) -> bool:
    """Whether a fraction of the training data gives less than a batch."""
    whole = next((record for record in records if record.fraction == 1), None)
    return whole is not None and not whole.fills_batch(setting.get("fraction", 1))


def _columns(request: SweepRequest) -> list[Column]:
    """The columns of the page, and one for each further setting that the sweep has or was given.

    Where values of the sweep were replaced, columns that have none of them are left out.
    """
    table, scale = request.table, request.scale
    rows = [row.of for row in table.rows] or [{}]
    points = sweeps.points(request.sweep, [f"scale={scale}"], [1], request.instead)
    given = [normal(sweeps.setting(point), scale) for point in points]
    known = [normal(row | column.of, scale) for row in rows for column in table.columns if column.of is not None]
    shown = [column for column in table.columns if not request.instead or _has(column, table, given, scale)]
    others = [each for i, each in enumerate(given) if each not in known and each not in given[:i]]
    return shown + [Column(in_words(each), each) for each in others]


def _has(column: Column, table: SweepTable, given: Sequence[Setting], scale: str) -> bool:
    """Whether the sweep has a column's runs, or those of both columns of a gain."""
    settings = [column.of] if column.of is not None else [table.setting(title) for title in column.gain]
    rows = [row.of for row in table.rows] or [{}]
    return all(any(normal(row | one, scale) in given for row in rows) for one in settings)


def in_words(setting: Setting) -> str:
    """A setting as the head of a column: "+ELMo" for the task's configuration itself, else what one types."""
    if setting == {"arm": "baseline"}:
        return "baseline"
    return " ".join(f"{key}={value}" for key, value in setting.items()) or "+ELMo"
