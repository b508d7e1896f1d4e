"""The cells of a sweep's table: the runs of each row and column, found by their settings."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from elmo_bench.configuration.tables import Column, Setting, in_order
from elmo_bench.records.query import in_words, is_context_control, normal
from elmo_bench.records.record import Record
from elmo_bench.reporting.statistics.groups import Group, candidates, weight
from elmo_bench.sweeps import pages as sweeps
from elmo_bench.sweeps.request import SweepRequest

ONE_ROW = [Column(of={})]
FIRST = "table1"  # whose runs are in other tables, too


class Cell(NamedTuple):
    """The runs of one row and column for a task.

    Attributes:
        row, column: their titles.
        group: the recorded runs, of all seeds; None if there are none.
        missing: the seeds asked for that have no record.
        impossible: whether no run is asked for: the data do not fill a batch, or only what is recorded is shown.
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
        note: what the scale is, and which data are the user's.
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


def content(
    request: SweepRequest, records: Sequence[Record], asked: Mapping[str, Container[str]] = MappingProxyType({})
) -> Content | None:
    """The table of a sweep at its scale, for the tasks asked for and all others that have runs of their own in it.

    Args:
        request: the sweep.
        records: of any task and scale.
        asked: by task the groups that the sweep asks for, which alone are shown; of other tasks, those of its settings.

    Returns:
        None if there is no such task.
    """
    here = [record for record in records if record.scale == request.scale]
    axes, seeds, cells = _axes(request), request.all_seeds, list[Cell]()
    others = set() if request.has_files else {record.task for record in here}
    for task in in_order({*request.tasks, *others}):
        of_task = [
            each
            for each in here
            if each.task == task and (task not in asked or each.group in asked[task] or is_context_control(each))
        ]
        found = _cells(axes, task, request.setting(task), seeds, of_task)
        own = [each for each in found if each.group and (request.sweep == FIRST or each.group.first.variant)]
        cells += found if own or task in request.tasks else []
    shown = [record for cell in cells if cell.group for record in cell.group.records]
    own = {f"{record.task}: {', '.join(record.own_data.values())}": None for record in shown if record.own_data}
    newest = sorted(shown or here, key=lambda record: record.finished)
    metrics = {record.task: record.monitor for record in newest}
    said = [newest[-1].note] if newest else []
    said += [f"These runs have other data: {'; '.join(own)}."] if own else []
    there = {cell.column for cell in cells if cell.group}
    columns = [each for each in axes.columns if not each.recorded or there >= {*(each.gain or [each.title])}]
    return Content(request, columns, cells, metrics, " ".join(said)) if cells else None


def _cells(axes: Axes, task: str, changes: Setting, seeds: Sequence[int], records: Sequence[Record]) -> list[Cell]:
    found, whole = [], next((record for record in records if record.fraction == 1), None)
    settings = [changes | row.of | column.of for row, column in axes.pairs]
    groups = _of_one_kind([candidates(records, setting) for setting in settings])
    for (row, column), setting, group in zip(axes.pairs, settings, groups, strict=True):
        there = {record.seed for record in group.records} if group else set()
        lacking = group is None and whole is not None and not whole.fills_batch(setting.get("fraction", 1))
        impossible = column.recorded or lacking
        missing = () if impossible else tuple(seed for seed in seeds if seed not in there)
        found.append(Cell(task, row.title, column.title, group, missing, impossible))
    return found


def _of_one_kind(found: Sequence[Sequence[Group]]) -> list[Group | None]:
    """Of the groups found for each setting the one of most `weight` among those that compare with the others'.

    They have the same data, and the same files of a biLM or of word vectors that has one name.
    """
    groups = {group.first.run: group for among in found for group in among}
    kept, files = set[str](), dict[tuple, Any]()
    for group in sorted(groups.values(), key=weight, reverse=True):
        ours = _files(group.first)
        if all(files.get(kind, value) == value for kind, value in ours.items()):
            kept, files = kept | {group.first.run}, files | ours
    return [max((each for each in among if each.first.run in kept), key=weight, default=None) for among in found]


def _files(run: Record) -> dict[tuple, Any]:
    """The digests of a run's files, by what its variant says of them: where it says the same, they compare."""
    found = [
        ("data", ("scale", "task.data", "task.reader"), run.data_sha256),
        (run.vectors, ("vectors",), run.vector_files),
        (run.bilm_name, ("bilm",), run.weights),
    ]
    return {
        (name, keys, *(f"{key}={value}" for key, value in run.variant.items() if key.startswith(keys))): digest
        for name, keys, digest in found
        if digest
    }


class Axes(NamedTuple):
    """The rows and columns that are shown."""

    rows: Sequence[Column]
    columns: Sequence[Column]

    @property
    def pairs(self) -> list[tuple[Column, Column]]:
        """Every row with every column that has runs."""
        return [(row, column) for row in self.rows for column in self.columns if column.of is not None]


def _axes(request: SweepRequest) -> Axes:
    """The rows and columns of the page, and one for each further setting that the sweep has or was given.

    With overrides, those that have none of the sweep's runs are left out, and so are columns of ELMo whose runs became
    baselines.
    """
    page = Axes(request.table.rows or ONE_ROW, request.table.columns)
    changes, given = _given(request)
    scale, pairs = request.scale, page.pairs
    if changes or request.instead:
        pairs = [pair for pair in pairs if _is_among(given, changes, pair, scale)]
    known = [normal(changes | row.of | column.of, scale) for row, column in pairs]
    for each in given:
        if each not in known:
            known.append(each)
            own = {key: value for key, value in each.items() if key not in changes or changes[key] != value}
            pairs.append(_new(own or each, page, scale))
    return Axes(*(_shown(of_page, among) for of_page, among in zip(page, zip(*pairs, strict=True), strict=True)))


def _given(request: SweepRequest) -> tuple[Setting, list[Setting]]:
    """What the overrides change in all runs of the first task, and the whole settings of its runs."""
    task, scale = next(iter(request.tasks), None), request.scale
    if task is None or not request.changes:
        return {}, sweeps.settings(request.sweep, scale, request.instead)
    changes, points = request.setting(task), sweeps.points(request.sweep, [f"scale={scale}"], [1], request.instead)
    return changes, [normal(changes | sweeps.made(each, task, scale), scale) for each in points]


def _is_among(given: Sequence[Setting], changes: Setting, pair: tuple[Column, Column], scale: str) -> bool:
    """Whether runs of a row and column are given, and are still of the arm that the page says."""
    row, column = pair
    made, before = (normal(first | row.of | column.of, scale) for first in (changes, {}))
    return made in given and made.get("arm") == before.get("arm")


def _new(setting: Setting, page: Axes, scale: str) -> tuple[Column, Column]:
    """A row and a column for a setting that has none: the page's one that says most of it, and one for the rest."""
    if list(page.rows) == ONE_ROW:
        return ONE_ROW[0], Column(title=in_words(setting), of=setting)
    of_page = [(one, normal(one.of, scale)) for axis in page for one in axis if one.of is not None]
    fitting = [(one, of) for one, of in of_page if of.items() <= setting.items()]
    nearest, said = max(fitting, key=lambda each: len(each[1]), default=(page.rows[0], {}))
    rest = {key: value for key, value in setting.items() if key not in said}
    other = Column(title=in_words(rest), of=rest)
    return (nearest, other) if any(nearest is row for row in page.rows) else (other, nearest)


def _shown(of_page: Sequence[Column], among: Sequence[Column]) -> list[Column]:
    """What the page has of these, in its order, then the others; and gains between them, and the paper's own."""
    titles = {each.title for each in among}
    kept = [each for each in of_page if (each.title in titles if each.of is not None else titles >= {*each.gain})]
    new = {each.title: each for each in among if not any(each is one for one in of_page)}
    return kept + list(new.values())
