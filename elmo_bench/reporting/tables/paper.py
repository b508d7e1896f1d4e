"""The table of a sweep as the paper prints it, ours beside theirs, and its file, tables/<sweep>.<scale>.md."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import compress
from pathlib import Path

from elmo_bench.configuration import pages, tables
from elmo_bench.configuration.tables import Column
from elmo_bench.records.record import Record
from elmo_bench.records.times import COMPUTING, in_time, typical
from elmo_bench.reporting.section import Number, Section, inert
from elmo_bench.reporting.statistics import scores as statistics
from elmo_bench.reporting.statistics.cells import Cell, Content
from elmo_bench.reporting.statistics.cells import content as content_of
from elmo_bench.reporting.statistics.gains import gain, p_in_words
from elmo_bench.reporting.statistics.gains import in_words as gain_in_words
from elmo_bench.reporting.statistics.groups import Group
from elmo_bench.reporting.statistics.scores import mean_weights, runs_of
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
    header = (*compress(("task", "", ""), kept), *(column.title or table.split for column in content.columns))
    rows = [row for task in content.tasks for row in _of_task(content, task)]
    return header, [(*compress(row[:3], kept), *row[3:]) for row in rows]


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


# Below the table of sources of context: the gains of each over the others, its layers' weights, and what it costs.

GAINS = ("task", "source", "over", "dev", "test", "p")
GAINS_NOTE = "In percent points, with 95 % intervals over seeds and test examples; p is of the interval on test."
WEIGHTS_NOTE = (
    "s_j and γ at the selected epoch, mean over the seeds; ▼ below an even share, ▲ above twice that. Layer 0 has no "
    "context: a biLM's is of characters, a Transformer's of embeddings."
)
COST = ("task", "source", "its parameters", "layers", "stored, bytes a token", "computing a run", "peak memory")
COST_NOTE = (
    "Means over the seeds. The first run of a task on a machine computes and stores the layers of all its words. Peak "
    "memory includes the pages of stored layers that are mapped, which the system takes back when it needs them. "
    f"{COMPUTING}"
)
MARK = "†"  # no evidence


def _below(content: Content) -> list[Section]:
    """The three tables; none for another sweep (`SweepTable.over`)."""
    request = content.request
    if not request.table.over:
        return []
    title = f"{request.table.title}, scale {request.scale}"
    header, rows = weights(content)
    costs = [_cost(cell, group) for cell, group in content.groups]
    return [
        Section(f"{title}: gains", GAINS_NOTE, GAINS, _gains(content), unfair(content)),
        Section(f"{title}: weights of the layers", WEIGHTS_NOTE, header, rows),
        Section(f"{title}: cost", COST_NOTE, COST, costs),
    ]


def unfair(content: Content) -> list[str]:
    """A line for each source that was trained on data of a task."""
    firsts = (group.first for _, group in content.groups)
    seen = dict.fromkeys((first.task, first.bilm_name) for first in firsts if first.has_seen)
    return [
        f"{MARK} {pages.title(task)}: {name} was trained on data of this task; its figures here are no evidence."
        for task, name in seen
    ]


def mark(*groups: Group) -> str:
    """What stands behind a number that is no evidence."""
    return f" {MARK}" if any(group.first.has_seen for group in groups) else ""


def _gains(content: Content) -> list[Row]:
    """Each source over each that stands before it in the sweep and that the table names."""
    found = [pair for task in content.tasks for pair in _pairs(content, task)]
    tests = [gain(more, less) for (_, more), (_, less) in found]
    return [
        (
            pages.title(cell.task),
            cell.column,
            other.column,
            gain_in_words(gain(more, less, "dev")) + mark(more, less),
            Number(gain_in_words(test) + mark(more, less), runs_of(more, less)),
            p_in_words(test.p),
        )
        for ((cell, more), (other, less)), test in zip(found, tests, strict=True)
    ]


def _pairs(content: Content, task: str) -> Iterable[tuple[tuple[Cell, Group], tuple[Cell, Group]]]:
    here = [(cell, group) for cell, group in content.groups if cell.task == task]
    for i, other in enumerate(here):
        if other[0].column in content.request.table.over:
            yield from ((each, other) for each in here[i + 1 :])


def weights(content: Content) -> tuple[Row, list[Row]]:
    """The paper's Figure 2 as a table: the header, and a row for each place where ELMo enters.

    They have the mean s_j and γ over the seeds, at the selected epoch.
    """
    layers = max(
        (len(rows[0]) for _, group in content.groups for rows in group.first.layer_weights.values()), default=0
    )
    header = ("task", "ELMo at", *(f"s_{j}" for j in range(layers)), "γ", "seeds")
    several = len({cell.column for cell in content.cells}) > 1
    return header, [row for cell in content.cells for row in _weight_rows(cell, layers, several)]


def _weight_rows(cell: Cell, layers: int, several: bool) -> list[Row]:
    name = pages.title(cell.task) + (f", {cell.column}" if several else "")
    if cell.group is None:
        return [(name, "missing", *[""] * (layers + 2))]
    rows = []
    for place in cell.group.first.layer_weights:
        *each, gamma = mean_weights(cell.group.records, place)
        even = 1 / len(each)  # the paper shades weights below 1/3, and above twice that
        marked = [f"{weight:.2f}{' ▼' if weight < even else ' ▲' if weight > 2 * even else ''}" for weight in each]
        marked += [""] * (layers - len(each))
        rows.append((name, place, *marked, f"{gamma:.2f}", f"{len(cell.group.records)}"))
    return rows


def _cost(cell: Cell, group: Group) -> Row:
    weighed = next(iter(group.first.layer_weights.values()), None)
    return (
        pages.title(cell.task),
        cell.column,
        _number(group, "parameters"),
        str(len(weighed[0])) if weighed else "",
        _number(group, "token_bytes"),
        in_time(typical(group.records)),
        statistics.mean_in_words(group.records, "peak_memory_mib", "{:,.0f} MiB"),
    )


def _number(group: Group, key: str) -> str:
    """A number of a source; empty without one, and in records that do not have it yet."""
    value = next((each.bilm[key] for each in group.records if each.bilm.get(key)), None)
    return "" if value is None else f"{value:,}"


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
    parts, path = sections(made), Path(root) / _name(request)
    write_text(path, markdown(parts))
    return parts, path


def of_records(records: Sequence[Record]) -> dict[str, list[Section]]:
    """The tables of every sweep at every scale where a task has runs of its own in it, by the path of their file."""
    scales = dict.fromkeys(record.scale for record in records)
    made = (content_of(SweepRequest(sweep, [], scale), records) for sweep in tables.sweeps() for scale in scales)
    return {_name(each.request): sections(each) for each in made if each}


def sections(made: Content) -> list[Section]:
    """The table of a sweep and those that stand below it."""
    return [section(made), *_below(made)]


def markdown(sections: Sequence[Section]) -> str:
    """The page of a table and those below it."""
    first, *others = sections
    return inert("\n\n".join([first.markdown(level=1), *(each.markdown() for each in others)]) + "\n")


def _name(request: SweepRequest) -> str:
    """Overrides on which results depend are part of a table's name."""
    parts = [request.sweep, request.scale, *(re.sub(r"[^\w.=+-]+", "_", change) for change in request.changes)]
    return f"tables/{'.'.join(parts)[:120]}.md"
