"""The table of a sweep as the paper prints it, ours beside theirs, and its file, tables/<sweep>.<scale>.md."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from elmo_bench.configuration import pages, tables
from elmo_bench.configuration.tables import Column
from elmo_bench.records.record import Record
from elmo_bench.reporting.section import Number, Section, inert
from elmo_bench.reporting.statistics import scores as statistics
from elmo_bench.reporting.statistics.cells import Cell, Content
from elmo_bench.reporting.statistics.cells import content as content_of
from elmo_bench.reporting.statistics.gains import gain
from elmo_bench.reporting.statistics.gains import in_words as gain_in_words
from elmo_bench.reporting.statistics.groups import Group
from elmo_bench.reporting.tables import sources
from elmo_bench.reporting.tables.numbers import runs_of
from elmo_bench.reporting.tables.sources import mark, unfair, weights
from elmo_bench.sweeps.local import SweepOutcome
from elmo_bench.sweeps.request import SweepRequest
from elmo_bench.system.storage.files import write_text

Row = tuple[str, ...]
MISSING, IMPOSSIBLE = "missing", "–"


def section(content: Content) -> Section:
    """The table."""
    request, table = content.request, content.request.table
    header, rows = weights(content) if table.shows == "weights" else _scores(content)
    changed = f"All runs with {' '.join(request.changes)}." if request.changes else ""
    note = " ".join(filter(None, [table.note, content.note, changed]))
    remarks = [*unfair(content), *statistics.rising_in_words(rows), *_missing(content)]
    return Section(f"{table.title}, scale {request.scale}", note, header, rows, remarks)


def _scores(content: Content) -> tuple[Row, list[Row]]:
    """The header, and for each task the paper's row and ours."""
    table = content.request.table
    kept = (True, bool(table.rows), bool(table.paper))  # the heads of a row: task, setting, whose figures they are
    header = (*_kept(("task", "", ""), kept), *(column.title or table.split for column in content.columns))
    rows = [row for task in content.tasks for row in _of_task(content, task)]
    return header, [(*_kept(row[:3], kept), *row[3:]) for row in rows]


def _kept(row: Sequence[str], kept: tuple[bool, ...]) -> Row:
    return tuple(cell for cell, needed in zip(row, kept, strict=True) if needed)


def _of_task(content: Content, task: str) -> list[Row]:
    """The rows of a task, each with all three heads."""
    title = ", ".join(filter(None, (pages.title(task), content.metrics.get(task))))
    table = content.request.table
    theirs = dict(zip((column.title for column in table.columns), table.paper.get(task, []), strict=False))
    rows: list[Row] = []
    if theirs:
        rows.append((title, "", "the paper", *(theirs.get(column.title, "") for column in content.columns)))
    for row in dict.fromkeys(cell.row for cell in content.of(task)):
        ours = (_cell(content, task, row, column) for column in content.columns)
        rows.append((title, row, f"ours, {content.request.scale}", *ours))
    return rows


def _cell(content: Content, task: str, row: str, column: Column) -> Number:
    """Mean, deviation and number of seeds, or a gain."""
    cells = [cell for title in column.gain or [column.title] if (cell := content.cell(task, row, title))]
    groups = [cell.group for cell in cells if cell.group]
    text = _gain(content, groups, column) if column.gain else _score(content, cells[0]) if cells else ""
    return Number(text + mark(*groups), runs_of(*groups))


def _score(content: Content, cell: Cell) -> str:
    if cell.group is None:
        return IMPOSSIBLE if cell.impossible else MISSING
    lacking = f"; {len(cell.missing)} missing" if cell.missing else ""
    shown = statistics.scores(cell.group.records, content.request.table.split, content.metrics[cell.task])
    return f"{shown} ({len(cell.group.records)}{lacking}{statistics.rising(cell.group.records)})"


def _gain(content: Content, groups: Sequence[Group], column: Column) -> str:
    """The gain from the first to the second: with its interval, or as the share of the error that it removes, too."""
    if len(groups) < 2:
        return IMPOSSIBLE if column.recorded else MISSING
    split = content.request.table.split
    if column.interval:
        return gain_in_words(gain(groups[1], groups[0], split))
    before, after = (statistics.score(g.records, split, content.metrics[g.first.task])[0] for g in groups)
    gained = f"{after - before:.2f}"
    return gained if before >= 100 else f"{gained} / {100 * (after - before) / (100 - before):.1f} %"


def _missing(content: Content) -> list[str]:
    """For each task what is missing, and the command that runs it."""
    found, seeds = [], len(content.request.all_seeds)
    for task in content.tasks:
        cells = content.of(task)
        lacking = sum(len(cell.missing) for cell in cells)
        total = sum(seeds for cell in cells if not cell.impossible)
        if lacking:
            found.append(f"{task}: {lacking} of {total} runs are missing: {content.request.command_for(task)}")
    return found


# The file.


def write(outcome: SweepOutcome) -> tuple[list[Section], Path]:
    """Writes the table of a sweep: the tasks asked for, and others that have runs of their own in it.

    Returns:
        The table with those that stand below it, and the path of its file.

    Raises:
        UserError: a record or a place that cannot be read or written.
    """
    request, root = outcome.plan.request, outcome.plan.config.results_root
    made = content_of(request, list(outcome.records.values()), outcome.plan.asked)
    assert made is not None  # the tasks asked for are in it
    sections, path = _sections(made), Path(root) / _name(request)
    write_text(path, markdown(sections))
    return sections, path


def of_records(records: Sequence[Record]) -> dict[str, list[Section]]:
    """The tables of every sweep at every scale where a task has runs of its own in it, by the path of their file."""
    scales = dict.fromkeys(record.scale for record in records)
    made = (content_of(SweepRequest(sweep, [], scale), records) for sweep in tables.sweeps() for scale in scales)
    return {_name(each.request): _sections(each) for each in made if each}


def _sections(made: Content) -> list[Section]:
    return [section(made), *sources.sections(made)]


def markdown(sections: Sequence[Section]) -> str:
    """The page of a table and those below it."""
    first, *others = sections
    return inert("\n\n".join([first.markdown(level=1), *(each.markdown() for each in others)]) + "\n")


def _name(request: SweepRequest) -> str:
    """Overrides on which results depend are part of a table's name."""
    parts = [request.sweep, request.scale, *(re.sub(r"[^\w.=+-]+", "_", change) for change in request.changes)]
    return f"tables/{'.'.join(parts)[:120]}.md"
