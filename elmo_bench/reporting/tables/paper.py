"""The table of a sweep as the paper prints it: its rows and columns, ours beside theirs, from the records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from elmo_bench.configuration import layouts
from elmo_bench.configuration.layouts import Column
from elmo_bench.reporting.section import Number, Section
from elmo_bench.reporting.statistics import scores as statistics
from elmo_bench.reporting.statistics.cells import Cell, Content, in_words
from elmo_bench.reporting.statistics.groups import Group
from elmo_bench.reporting.tables.layers import weights
from elmo_bench.reporting.tables.numbers import runs_of
from elmo_bench.reporting.tables.sources import mark, unfair

Row = tuple[str, ...]
MISSING, BEYOND = "missing", "–"


def section(content: Content, *notes: str) -> Section:
    """The table; `notes` stand above it, after that of the layout."""
    layout = content.layout
    header, rows = weights(content) if layout.shows == "weights" else _scores(content)
    title = f"{layout.title}, scale {content.scale}"
    return Section(
        title, " ".join(filter(None, [layout.note, *notes])), header, rows, [*unfair(content), *_missing(content)]
    )


def _scores(content: Content) -> tuple[Row, list[Row]]:
    """The header, and for each task the paper's row and ours."""
    columns = [*filter(lambda column: _needed(content, column), content.layout.columns), *_others(content)]
    kept = _heads(content)
    header = (*_chosen(("task", "", ""), kept), *(column.title for column in columns))
    rows = [row for task in content.tasks for row in _of_task(content, task, columns)]
    return header, [(*_chosen(row[:3], kept), *row[3:]) for row in rows]


def _needed(content: Content, column: Column) -> bool:
    """Whether a column is shown: where any settings may be compared (`Layout.over`), only those that are."""
    return not content.layout.over or column.of in {cell.column for cell in content.groups}


def _heads(content: Content) -> tuple[bool, bool, bool]:
    """Which heads of a row are needed: the task, the setting, and whose figures they are."""
    return True, any(cell.row for cell in content.groups), bool(content.layout.paper)


def _chosen(row: Sequence[Any], kept: tuple[bool, ...]) -> tuple[Any, ...]:
    return tuple(cell for cell, needed in zip(row, kept, strict=True) if needed)


def _others(content: Content) -> list[Column]:
    """Columns for the settings to which the layout gives none."""
    given = {column.of for column in content.layout.columns}
    settings = dict.fromkeys(cell.column for cell in content.groups if cell.column not in given)
    return [Column(in_words(setting) or content.layout.split, of=setting) for setting in settings]


def _of_task(content: Content, task: str, columns: list[Column]) -> list[Row]:
    """The rows of a task, each with the three heads of `_heads`."""
    title = ", ".join(filter(None, (layouts.titles().get(task, task), content.metrics.get(task))))
    theirs = content.layout.paper.get(task, [])
    rows: list[Row] = []
    if theirs:
        rows.append((title, "", "the paper", *theirs, *[""] * (len(columns) - len(theirs))))
    for row in dict.fromkeys(cell.row for cell in content.of(task)):
        ours = (_cell(content, task, row, column) for column in columns)
        rows.append((title, in_words(row), f"ours, {content.scale}", *ours))
    return rows


def _cell(content: Content, task: str, row: str, column: Column) -> Number:
    """Mean, deviation and number of seeds, or a gain."""
    groups = [group for one in column.gain or [column.of] if (group := content.group(task, row, one))]
    cell = content.cell(task, row, column.of)
    text = _gain(content, groups) if column.gain else _score(content, cell) if cell else ""
    return Number(text + mark(*groups), runs_of(*groups))


def _score(content: Content, cell: Cell) -> str:
    if (group := content.groups[cell]) is None:
        return MISSING if cell.missing(group) else BEYOND
    shown = statistics.scores(group.records, content.layout.split, content.metrics[cell.task])
    lacking = len(cell.missing(group))
    return f"{shown} ({len(group.records)}{f'; {lacking} missing' if lacking else ''})"


def _gain(content: Content, groups: Sequence[Group]) -> str:
    """The gain from the first to the second: absolute, and as the share of the remaining error that it removes."""
    if len(groups) < 2:
        return MISSING
    split = content.layout.split
    before, after = (statistics.score(g.records, split, content.metrics[g.first.task])[0] for g in groups)
    gain = f"{after - before:.2f}"
    return gain if before >= 100 else f"{gain} / {100 * (after - before) / (100 - before):.1f} %"


def _missing(content: Content) -> list[str]:
    """For each task what is missing, and the command that runs it."""
    found = []
    for task in content.tasks:
        cells = content.of(task)
        lacking = sum(len(cell.missing(content.groups[cell])) for cell in cells)
        total = sum(len(cell.seeds) - len(cell.beyond) for cell in cells)
        if lacking:
            found.append(f"{task}: {lacking} of {total} runs are missing: {content.command(task)}")
    return found
