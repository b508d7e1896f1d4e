"""The table of a sweep as in the paper, our scores beside the paper's; its file is tables/<sweep>.<scale>.md.

Its cells are the groups of runs of each row and column, found by their settings.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import combinations, compress, groupby, product
from statistics import fmean
from typing import Any, NamedTuple

from elmo_bench.configuration import pages
from elmo_bench.configuration.pages import Column, Setting, in_order
from elmo_bench.records.frame import fits, in_words, normal
from elmo_bench.records.record import Record
from elmo_bench.records.times import COMPUTING, in_time, on_one_processor, typical
from elmo_bench.reporting.gains import SEEN, Group, Scales, gain, p_text, rising_remark, weight
from elmo_bench.reporting.section import Number, Section
from elmo_bench.sweeps import request as sweeps
from elmo_bench.sweeps.request import SweepRequest

Row = tuple[str, ...]
Pair = tuple[Column, Column]  # a row and a column
MISSING, IMPOSSIBLE = "missing", "–"
ONE_ROW = [Column(of={})]
PLAIN = ("table1", "figure2")  # a task may need no runs for them but those with its own configuration
DRAWN = ("figure1", "figure2")  # also drawn, by `charts.pictures`


class Cell(NamedTuple):
    """The runs of one row and column for a task.

    Attributes:
        row, column: their titles.
        group: the recorded runs, of all seeds; None if there are none.
        missing: the requested seeds without a record.
        impossible: whether no run is requested: the data do not fill a batch, or only recorded runs are shown.
    """

    task: str
    row: str
    column: str
    group: Group | None
    missing: Sequence[int]
    impossible: bool


class Content(NamedTuple):
    """The content of a table.

    Attributes:
        columns: the columns shown.
        cells: by task, in the paper's order, then by row and column.
        metrics: by task, the metric that is shown.
        note: a description of the scale, and which data are the user's.
        groups: the cells that have runs.
        name: the path of its file below the folder of results; overrides on which results depend are part of it.
    """

    request: SweepRequest
    columns: Sequence[Column]
    cells: Sequence[Cell]
    metrics: Mapping[str, str]
    note: str
    groups: Sequence[tuple[Cell, Group]]
    name: str


def content(request: SweepRequest, scales: Scales) -> Content | None:
    """The table of a sweep at its scale, for the requested tasks and all others that have their own runs in it.

    None if there is no such task.
    """
    here = {outcome.task: outcome for outcome in scales.get(request.scale, ())}
    axes, seeds, cells = _axes(request), request.all_seeds, []
    for task in in_order({*request.tasks, *(() if request.has_files else here)}):
        found = _cells(task, request.setting(task), seeds, axes, here[task].groups if task in here else [])
        own = (request.sweep in PLAIN or cell.group.first.variant for cell in found if cell.group)
        if task in request.tasks or any(own):
            cells += found
    if not cells:
        return None
    groups = [(cell, cell.group) for cell in cells if cell.group]
    own = dict.fromkeys(f"{run.task}: {', '.join(run.own_data.values())}"
                        for _, group in groups for run in group.records if run.own_data)  # fmt: skip
    note = [outcome.note for outcome in here.values()][:1]
    note += [f"These runs have other data: {'; '.join(own)}."] if own else []
    there = {cell.column for cell, _ in groups}
    columns = [each for each in axes[1] if not each.recorded or there >= {*(each.gain or [each.title])}]
    metrics = {task: outcome.metric for task, outcome in here.items()}
    parts = [request.sweep, request.scale, *(re.sub(r"[^\w.=+-]+", "_", change) for change in request.changes)]
    name = f"tables/{'.'.join(parts)[:120]}.md"
    return Content(request, columns, cells, metrics, " ".join(note), groups, name)


def _cells(
    task: str, changes: Setting, seeds: Sequence[int], axes: Sequence[Sequence[Column]], among: Sequence[Group]
) -> list[Cell]:
    """The cells of a task: for each, among the groups that fit it and are comparable with other cells, the first
    by `weight`.

    Groups are comparable if they have the same data, and the same files for a biLM or word vectors of the same name.
    """
    full = next((each.first for each in among if each.first.fraction == 1), None)
    pairs = [(row, column, changes | row.of | column.of) for row, column in product(*axes) if column.of is not None]
    fitting = [[each for each in among if fits(each.first, setting)] for *_, setting in pairs]
    kept, files = [], {}
    for group in sorted({each for found in fitting for each in found}, key=weight, reverse=True):
        ours = _files(group.first)
        if all(files.get(kind, value) == value for kind, value in ours.items()):
            kept.append(group)
            files |= ours
    cells = []
    for (row, column, setting), found in zip(pairs, fitting, strict=True):
        group = next((each for each in kept if each in found), None)
        too_few = group is None and full is not None and not full.fills_batch(setting.get("fraction", 1))
        impossible, there = column.recorded or too_few, {record.seed for record in group.records} if group else ()
        missing = [seed for seed in seeds if not impossible and seed not in there]
        cells.append(Cell(task, row.title, column.title, group, missing, impossible))
    return cells


def _files(run: Record) -> dict[Any, Any]:
    """The digests of a run's files. The keys contain the names of the files and all changes of the variant that concern
    them: files with equal keys must be the same in compared runs."""
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


def _axes(request: SweepRequest) -> tuple[list[Column], list[Column]]:
    """The rows and columns of the page, and one for each further setting of the sweep or the overrides.

    With overrides, rows and columns without runs of the sweep are left out, and so are columns of ELMo whose runs
    became baselines. A gain, or the paper's own column, is shown if the columns that it compares are.
    """
    listed, scale = (request.table.rows or ONE_ROW, request.table.columns), request.scale
    points = sweeps.points(request.sweep, [f"scale={scale}"], [1], request.instead)
    changes, made = {}, map(sweeps.setting, points)
    if request.changes and request.tasks:
        changes = request.setting(request.tasks[0])
        made = (changes | request.setting(request.tasks[0], each) for each in points)
    given = [normal(each, scale) for each in made]
    pairs, known = list[Pair](), list[Setting]()
    for row, column in product(*listed):
        if column.of is not None:
            setting, of_page = (normal(each | row.of | column.of, scale) for each in (changes, {}))
            if not (changes or request.instead) or (setting in given and setting.get("arm") == of_page.get("arm")):
                pairs.append((row, column))
                known.append(setting)
    for each in given:
        if each not in known:
            known.append(each)
            own = {key: value for key, value in each.items() if key not in changes or changes[key] != value}
            pairs.append(_new(own or each, listed, scale))
    shown = []
    for of_page, among in zip(listed, zip(*pairs, strict=True), strict=True):
        there = {each.title: each for each in among}
        kept = [each for each in of_page if there.keys() >= {*(each.gain if each.of is None else [each.title])}]
        shown.append([*kept, *(each for each in there.values() if all(each is not one for one in of_page))])
    return shown[0], shown[1]


def _new(setting: Setting, listed: tuple[Sequence[Column], Sequence[Column]], scale: str) -> Pair:
    """A row and a column for a setting without them: the page's with most of its keys, and one for the other keys."""
    rows, _ = listed
    if rows is ONE_ROW:
        return ONE_ROW[0], Column(title=in_words(setting), of=setting)
    known = [(one, normal(one.of, scale)) for axis in listed for one in axis if one.of is not None]
    fitting = [(one, covered) for one, covered in known if covered.items() <= setting.items()]
    nearest, covered = max(fitting, key=lambda each: len(each[1]), default=(rows[0], {}))
    remaining = {key: value for key, value in setting.items() if key not in covered}
    other = Column(title=in_words(remaining), of=remaining)
    return (nearest, other) if any(nearest is row for row in rows) else (other, nearest)


# The table.


def sections(content: Content) -> list[Section]:
    """The table of a sweep and the tables below it."""
    request, table = content.request, content.request.table
    title = f"{table.title}, scale {request.scale}"
    seen = dict.fromkeys((cell.task, group.first.bilm_name) for cell, group in content.groups if group.first.has_seen)
    unfair = [
        f"{SEEN} {pages.title(task)}: {name} was trained on data of this task; its figures here are no evidence."
        for task, name in seen
    ]
    seeds = len(request.all_seeds)
    header, rows = weights(content) if table.shows == "weights" else _scores(content)
    changed = f"All runs with {' '.join(request.changes)}." if request.changes else ""
    remarks = [*unfair, *rising_remark(rows)]
    for task in dict.fromkeys(cell.task for cell in content.cells):
        cells = [cell for cell in content.cells if cell.task == task]
        total = seeds * sum(not cell.impossible for cell in cells)
        if missing := sum(len(cell.missing) for cell in cells):
            remarks.append(f"{task}: {missing} of {total} runs are missing: {request.command(task)}")
    found = [Section(title, " ".join(filter(None, [table.note, content.note, changed])), header, rows, remarks)]
    return [*found, *(_of_sources(content, title, unfair) if table.over else [])]


def _scores(content: Content) -> tuple[Row, list[Row]]:
    """The header, and for each task the paper's row and ours."""
    request, table, rows = content.request, content.request.table, []
    by_row: dict[Row, dict[str, Cell]] = {}
    for cell in content.cells:
        by_row.setdefault((cell.task, cell.row), {})[cell.column] = cell
    for task, row in by_row:
        title = ", ".join(filter(None, (pages.title(task), content.metrics.get(task))))
        if (theirs := table.paper.get(task)) and title not in {known for known, *_ in rows}:
            figures = dict(zip((column.title for column in table.columns), theirs, strict=False))
            rows.append((title, "", "the paper", *(figures.get(column.title, "") for column in content.columns)))
        ours = (_number(content, by_row[task, row], column) for column in content.columns)
        rows.append((title, row, f"ours, {request.scale}", *ours))
    kept = (True, bool(table.rows), bool(table.paper))  # the heads of a row: task, setting, and ours or the paper's
    header = (*compress(("task", "", ""), kept), *(column.title or table.split for column in content.columns))
    return header, [(*compress(row[:3], kept), *row[3:]) for row in rows]


def _number(content: Content, row: Mapping[str, Cell], column: Column) -> Number:
    """Mean, deviation and number of seeds; or a gain, with its interval or with the share of the error removed."""
    cells = [row[title] for title in column.gain or [column.title] if title in row]
    split, found = content.request.table.split, [cell.group for cell in cells if cell.group]
    if not cells and not column.gain:
        text = ""
    elif len(found) < (2 if column.gain else 1):
        text = IMPOSSIBLE if (column.recorded if column.gain else cells[0].impossible) else MISSING
    elif not column.gain:
        (group,), missing = found, f"; {len(cells[0].missing)} missing" if cells[0].missing else ""
        text = f"{group.mean(split)} ({len(group.records)}{missing}{group.rising})"
    elif column.interval:
        text = str(gain((found[1], found[0]), split=split))
    else:
        before, after = (fmean(each.scores(split)) for each in found)
        share = "" if before >= 100 else f" / {100 * (after - before) / (100 - before):.1f} %"
        text = f"{after - before:.2f}{share}"
    mark = next((each.mark for each in found if each.mark), "")
    return Number(text + mark, [run for each in found for run in each.runs()])


# Below the table of sources of context: the gains of each over the others, its layers' weights, and its costs.

GAINS = ("task", "source", "over", "dev", "test", "p")
GAINS_NOTE = "In percent points, with 95 % intervals over seeds and test examples; p is of the interval on test."
WEIGHTS_NOTE = (
    "s_j and γ at the selected epoch, mean over the seeds; ▼ below an even share, ▲ above twice that. Layer 0 has no "
    "context: a biLM's is of characters, a Transformer's of embeddings."
)
COST = ("task", "source", "its parameters", "layers", "stored, bytes a token", "computing a run", "peak memory")
COST_NOTE = (
    "Means over the seeds; times of a task on one kind of processor, if all its sources have runs there. The first run "
    "of a task on a machine computes and stores the layers of all its words. Peak memory includes the pages of stored "
    f"layers that are mapped, which the system takes back when it needs them. {COMPUTING}"
)


def _of_sources(content: Content, title: str, unfair: Sequence[str]) -> list[Section]:
    """The gain of each source over each earlier source in the table's `over`, its layers' weights, and its cost."""
    gains, costs = [], []
    for (over, less), (source, more) in combinations(content.groups, 2):
        if over.task == source.task and over.column in content.request.table.over:
            dev, test = (f"{gain((more, less), split=split)}{more.mark or less.mark}" for split in ("dev", "test"))
            runs, p = [*more.runs(), *less.runs()], p_text(gain((more, less)).p)
            gains.append((pages.title(source.task), source.column, over.column, dev, Number(test, runs), p))
    for _, of_task in groupby(content.groups, key=lambda each: each[0].task):
        cells, groups = zip(*of_task, strict=True)
        _, timed = on_one_processor(*(group.records for group in groups))
        for cell, group, records in zip(cells, groups, timed, strict=True):
            layers = next((str(len(each[0])) for each in group.first.layer_weights.values()), "")
            known = {key: f"{value:,}" for record in group.records for key, value in record.bilm.items()
                     if value and key in ("parameters", "token_bytes")}  # fmt: skip
            sizes = known.get("parameters", ""), layers, known.get("token_bytes", "")
            time, memory = in_time(typical(records)), group.mean_of("peak_memory_mib", "{:,.0f} MiB")
            costs.append((pages.title(cell.task), cell.column, *sizes, time, memory))
    return [
        Section(f"{title}: gains", GAINS_NOTE, GAINS, gains, unfair),
        Section(f"{title}: weights of the layers", WEIGHTS_NOTE, *weights(content)),
        Section(f"{title}: cost", COST_NOTE, COST, costs),
    ]


def weights(content: Content) -> tuple[Row, list[Row]]:
    """The paper's Figure 2 as a table: the header, and a row for each place where ELMo enters.

    They have the mean s_j and γ over the seeds, at the selected epoch.
    """
    places = [place for _, group in content.groups for place in group.first.layer_weights.values()]
    layers, found = max((len(place[0]) for place in places), default=0), []
    several = len({cell.column for cell in content.cells}) > 1
    for cell in content.cells:
        name = pages.title(cell.task) + (f", {cell.column}" if several else "")
        if cell.group is None:
            found.append((name, MISSING, *[""] * (layers + 2)))
            continue
        for place in cell.group.first.layer_weights:
            *each, gamma = cell.group.weights(place)
            even = 1 / len(each)  # the paper shades weights below 1/3, and above twice that
            marked = [f"{weight:.2f}{' ▼' if weight < even else ' ▲' if weight > 2 * even else ''}" for weight in each]
            marked += [""] * (layers - len(each))
            found.append((name, place, *marked, f"{gamma:.2f}", f"{len(cell.group.records)}"))
    return ("task", "ELMo at", *(f"s_{j}" for j in range(layers)), "γ", "seeds"), found


def of_scales(scales: Scales) -> dict[str, Content]:
    """Every sweep at every scale in which a task has its own runs, by the path of the file of its table."""
    found = (content(SweepRequest(sweep, [], scale), scales) for sweep in pages.sweeps() for scale in sorted(scales))
    return {each.name: each for each in found if each}
