"""The table of a sweep as the paper prints it, ours beside theirs, and its file, tables/<sweep>.<scale>.md.

Its cells are the groups of runs of each row and column, found by their settings.
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping, Sequence
from itertools import combinations, compress, product
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from elmo_bench.configuration import pages, tables
from elmo_bench.configuration.tables import Column, Setting, in_order
from elmo_bench.records.frame import fits, in_words, is_context_control, normal
from elmo_bench.records.record import Record
from elmo_bench.records.times import COMPUTING, in_time, typical
from elmo_bench.reporting.section import Number, Section, inert
from elmo_bench.reporting.statistics import gains, groups
from elmo_bench.reporting.statistics.gains import gain
from elmo_bench.reporting.statistics.groups import Group, mean_weights, runs_of, weight
from elmo_bench.reporting.statistics.outcomes import Scales, by_scale
from elmo_bench.sweeps import request as sweeps
from elmo_bench.sweeps.plan import Plan
from elmo_bench.sweeps.request import SweepRequest
from elmo_bench.system.storage.files import write_text

Row = tuple[str, ...]
Pair = tuple[Column, Column]  # a row and a column
MISSING, IMPOSSIBLE = "missing", "–"
ONE_ROW = [Column(of={})]
FIRST = "table1"  # whose runs are in other tables, too


class Cell(NamedTuple):
    """The runs of one row and column for a task.

    Attributes:
        group: the recorded runs, of all seeds; None if there are none.
        missing: the seeds asked for that have no record.
        impossible: whether no run is asked for: the data do not fill a batch, or only what is recorded is shown.
    """

    group: Group | None
    missing: Sequence[int]
    impossible: bool


class Content(NamedTuple):
    """What a table is made of.

    Attributes:
        request: the sweep.
        columns: those that are shown.
        cells: by task, in the paper's order, in the order of rows and columns, by their titles.
        metrics: by task, the one that is shown.
        note: what the scale is, and which data are the user's.
    """

    request: SweepRequest
    columns: Sequence[Column]
    cells: Mapping[str, Mapping[tuple[str, str], Cell]]
    metrics: Mapping[str, str]
    note: str

    @property
    def groups(self) -> list[tuple[str, str, Group]]:
        """Task, column and runs of each cell that has runs."""
        every = [(task, *each) for task, cells in self.cells.items() for each in cells.items()]
        return [(task, column, cell.group) for task, (_, column), cell in every if cell.group]


def content(
    request: SweepRequest, scales: Scales, asked: Mapping[str, Container[str]] = MappingProxyType({})
) -> Content | None:
    """The table of a sweep at its scale, for the tasks asked for and all others that have runs of their own in it.

    Args:
        request: the sweep.
        scales: the runs of every task and scale.
        asked: by task the groups that the sweep asks for, which alone are shown; of other tasks, those of its settings.

    Returns:
        None if there is no such task.
    """
    here = {outcome.task: outcome for outcome in scales.get(request.scale, ())}
    axes = _axes(request)
    pairs = [pair for pair in product(*axes) if pair[1].of is not None]
    cells, seeds = {}, request.all_seeds
    for task in in_order({*request.tasks, *(() if request.has_files else here)}):
        among = here[task].groups if task in here else []
        if task in asked:
            among = [each for each in among if each.first.group in asked[task] or is_context_control(each.first)]
        found = _cells(request.setting(task), seeds, pairs, among)
        there = [each.group.first for each in found.values() if each.group]
        if task in request.tasks or any(request.sweep == FIRST or first.variant for first in there):
            cells[task] = found
    if not cells:
        return None
    shown = [(column, cell.group) for of in cells.values() for (_, column), cell in of.items() if cell.group]
    runs = [record for _, group in shown for record in group.records]
    own = dict.fromkeys(f"{run.task}: {', '.join(run.own_data.values())}" for run in runs if run.own_data)
    note = [outcome.note for outcome in here.values()][:1]
    note += [f"These runs have other data: {'; '.join(own)}."] if own else []
    there = {column for column, _ in shown}
    columns = [each for each in axes[1] if not each.recorded or there >= {*(each.gain or [each.title])}]
    metrics = {task: outcome.metric for task, outcome in here.items()}
    return Content(request, columns, cells, metrics, " ".join(note))


def _cells(
    changes: Setting, seeds: Sequence[int], pairs: Sequence[Pair], among: Sequence[Group]
) -> dict[tuple[str, str], Cell]:
    """The cells of a task: of the groups that fit each the one of most `weight` among those that compare with others'.

    They have the same data, and the same files of a biLM or of word vectors that has one name.
    """
    whole = next((each.first for each in among if each.first.fraction == 1), None)
    kept, files, found = [], {}, {}
    settings = [changes | row.of | column.of for row, column in pairs]
    fitting = [[each for each in among if fits(each.first, setting)] for setting in settings]
    for group in sorted({each for of_cell in fitting for each in of_cell}, key=weight, reverse=True):
        ours = _files(group.first)
        if all(files.get(kind, value) == value for kind, value in ours.items()):
            kept.append(group)
            files |= ours
    for (row, column), setting, of_cell in zip(pairs, settings, fitting, strict=True):
        group = next((each for each in kept if each in of_cell), None)
        lacking = group is None and whole is not None and not whole.fills_batch(setting.get("fraction", 1))
        impossible, there = column.recorded or lacking, {record.seed for record in group.records} if group else ()
        missing = [seed for seed in seeds if not impossible and seed not in there]
        found[row.title, column.title] = Cell(group, missing, impossible)
    return found


def _files(run: Record) -> dict[Any, Any]:
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


def _axes(request: SweepRequest) -> tuple[list[Column], list[Column]]:
    """The rows and columns of the page, and one for each further setting that the sweep has or was given.

    With overrides, those that have none of the sweep's runs are left out, and so are columns of ELMo whose runs became
    baselines. A gain, or the paper's own column, is shown where the columns that it compares are.
    """
    page, scale = (request.table.rows or ONE_ROW, request.table.columns), request.scale
    changes, given = {}, sweeps.settings(request.sweep, scale, request.instead)
    if request.changes and request.tasks:
        changes = request.setting(request.tasks[0])
        points = sweeps.points(request.sweep, [f"scale={scale}"], [1], request.instead)
        given = [normal(changes | sweeps.recorded_setting(each, request.tasks[0], scale), scale) for each in points]

    def made(pair: Pair, changes: Setting = changes) -> Setting:
        return normal(changes | pair[0].of | pair[1].of, scale)

    pairs = [pair for pair in product(*page) if pair[1].of is not None]
    if changes or request.instead:
        pairs = [each for each in pairs if made(each) in given and made(each).get("arm") == made(each, {}).get("arm")]
    known = [*map(made, pairs)]
    for each in given:
        if each not in known:
            known.append(each)
            own = {key: value for key, value in each.items() if key not in changes or changes[key] != value}
            pairs.append(_new(own or each, page, scale))
    shown = []
    for of_page, among in zip(page, zip(*pairs, strict=True), strict=True):
        there = {each.title: each for each in among}
        kept = [each for each in of_page if there.keys() >= {*(each.gain if each.of is None else [each.title])}]
        shown.append([*kept, *(each for each in there.values() if all(each is not one for one in of_page))])
    return shown[0], shown[1]


def _new(setting: Setting, page: tuple[Sequence[Column], Sequence[Column]], scale: str) -> Pair:
    """A row and a column for a setting that has none: the page's one that says most of it, and one for the rest."""
    rows, _ = page
    if rows is ONE_ROW:
        return ONE_ROW[0], Column(title=in_words(setting), of=setting)
    of_page = [(one, normal(one.of, scale)) for axis in page for one in axis if one.of is not None]
    fitting = [(one, of) for one, of in of_page if of.items() <= setting.items()]
    nearest, said = max(fitting, key=lambda each: len(each[1]), default=(rows[0], {}))
    rest = {key: value for key, value in setting.items() if key not in said}
    other = Column(title=in_words(rest), of=rest)
    return (nearest, other) if any(nearest is row for row in rows) else (other, nearest)


# The table.


def sections(made: Content) -> list[Section]:
    """The table of a sweep and those that stand below it."""
    request, table = made.request, made.request.table
    title = f"{table.title}, scale {request.scale}"
    weighted, seen, seeds = weights(made), unfair(made), request.all_seeds
    header, rows = weighted if table.shows == "weights" else _scores(made)
    changed = f"All runs with {' '.join(request.changes)}." if request.changes else ""
    remarks = [*seen, *groups.rising_in_words(rows)]
    for task, cells in made.cells.items():
        total = len(seeds) * sum(not cell.impossible for cell in cells.values())
        if lacking := sum(len(cell.missing) for cell in cells.values()):
            remarks.append(f"{task}: {lacking} of {total} runs are missing: {request.command(task)}")
    found = [Section(title, " ".join(filter(None, [table.note, made.note, changed])), header, rows, remarks)]
    if table.over:  # of sources of context: the gains of each over others, the weights of its layers, its cost
        found += [
            Section(f"{title}: gains", GAINS_NOTE, GAINS, _gains(made), seen),
            Section(f"{title}: weights of the layers", WEIGHTS_NOTE, *weighted),
            Section(f"{title}: cost", COST_NOTE, COST, [_cost(*each) for each in made.groups]),
        ]
    return found


def _scores(content: Content) -> tuple[Row, list[Row]]:
    """The header, and for each task the paper's row and ours."""
    request, table, rows = content.request, content.request.table, []
    for task, cells in content.cells.items():
        title = ", ".join(filter(None, (pages.title(task), content.metrics.get(task))))
        if theirs := table.paper.get(task):
            figures = dict(zip((column.title for column in table.columns), theirs, strict=False))
            rows.append((title, "", "the paper", *(figures.get(column.title, "") for column in content.columns)))
        for row in dict.fromkeys(row for row, _ in cells):
            ours = (_number(content, task, row, column) for column in content.columns)
            rows.append((title, row, f"ours, {request.scale}", *ours))
    kept = (True, bool(table.rows), bool(table.paper))  # the heads of a row: task, setting, whose figures they are
    header = (*compress(("task", "", ""), kept), *(column.title or table.split for column in content.columns))
    return header, [(*compress(row[:3], kept), *row[3:]) for row in rows]


def _number(content: Content, task: str, row: str, column: Column) -> Number:
    """Mean, deviation and number of seeds; or a gain: with its interval, or with the share of the error removed."""
    cells = [cell for title in column.gain or [column.title] if (cell := content.cells[task].get((row, title)))]
    split, found = content.request.table.split, [cell.group for cell in cells if cell.group]
    if not cells and not column.gain:
        text = ""
    elif len(found) < (2 if column.gain else 1):
        text = IMPOSSIBLE if (column.recorded if column.gain else cells[0].impossible) else MISSING
    elif not column.gain:
        lacking = f"; {len(cells[0].missing)} missing" if cells[0].missing else ""
        runs = found[0].records
        shown = groups.scores(runs, split, content.metrics[task])
        text = f"{shown} ({len(runs)}{lacking}{groups.rising(runs)})"
    elif column.interval:
        text = gains.in_words(gain(found[1], found[0], split))
    else:
        before, after = (groups.score(each.records, split, content.metrics[task])[0] for each in found)
        share = "" if before >= 100 else f" / {100 * (after - before) / (100 - before):.1f} %"
        text = f"{after - before:.2f}{share}"
    return Number(text + mark(*found), runs_of(*found))


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


def unfair(content: Content) -> list[str]:
    """A line for each source that was trained on data of a task."""
    firsts = [group.first for *_, group in content.groups]
    seen = dict.fromkeys((first.task, first.bilm_name) for first in firsts if first.has_seen)
    return [
        f"{MARK} {pages.title(task)}: {name} was trained on data of this task; its figures here are no evidence."
        for task, name in seen
    ]


def mark(*found: Group) -> str:
    """What stands behind a number that is no evidence."""
    return f" {MARK}" if any(group.first.has_seen for group in found) else ""


def _gains(content: Content) -> list[Row]:
    """Each source over each that stands before it in the sweep and that the table names."""
    return [
        (
            pages.title(task),
            source,
            over,
            gains.in_words(gain(more, less, "dev")) + mark(more, less),
            Number(gains.in_words(gain(more, less)) + mark(more, less), runs_of(more, less)),
            gains.p_in_words(gain(more, less).p),
        )
        for (task, over, less), (of, source, more) in combinations(content.groups, 2)
        if task == of and over in content.request.table.over
    ]


def weights(content: Content) -> tuple[Row, list[Row]]:
    """The paper's Figure 2 as a table: the header, and a row for each place where ELMo enters.

    They have the mean s_j and γ over the seeds, at the selected epoch.
    """
    depths = [len(rows[0]) for *_, group in content.groups for rows in group.first.layer_weights.values()]
    layers, found = max(depths, default=0), []
    every = [(task, column, cell) for task, cells in content.cells.items() for (_, column), cell in cells.items()]
    several = len({column for _, column, _ in every}) > 1
    for task, column, cell in every:
        name = pages.title(task) + (f", {column}" if several else "")
        if cell.group is None:
            found.append((name, "missing", *[""] * (layers + 2)))
            continue
        for place in cell.group.first.layer_weights:
            *each, gamma = mean_weights(cell.group.records, place)
            even = 1 / len(each)  # the paper shades weights below 1/3, and above twice that
            marked = [f"{weight:.2f}{' ▼' if weight < even else ' ▲' if weight > 2 * even else ''}" for weight in each]
            marked += [""] * (layers - len(each))
            found.append((name, place, *marked, f"{gamma:.2f}", f"{len(cell.group.records)}"))
    return ("task", "ELMo at", *(f"s_{j}" for j in range(layers)), "γ", "seeds"), found


def _cost(task: str, source: str, group: Group) -> Row:
    weighed = next(iter(group.first.layer_weights.values()), None)
    known = {key: value for record in group.records for key, value in record.bilm.items() if value}
    sizes = [f"{known[key]:,}" if key in known else "" for key in ("parameters", "token_bytes")]
    return (
        pages.title(task),
        source,
        sizes[0],
        str(len(weighed[0])) if weighed else "",
        sizes[1],
        in_time(typical(group.records)),
        groups.mean_in_words(group.records, "peak_memory_mib", "{:,.0f} MiB"),
    )


# The file.


def write(plan: Plan) -> tuple[str, Content]:
    """Writes the table of a sweep: the tasks asked for, and others that have runs of their own in it.

    Returns:
        The path of its file below the folder of results, and what it is made of.

    Raises:
        UserError: a record or a place that cannot be read or written.
    """
    request, root = plan.request, plan.config.results_root
    made = content(request, by_scale(plan.records.values()), plan.asked)
    assert made is not None  # the tasks asked for are in it
    write_text(Path(root) / _name(request), markdown(sections(made)))
    return _name(request), made


def of_scales(scales: Scales) -> dict[str, Content]:
    """Every sweep at every scale where a task has runs of its own in it, by the path of the file of its table."""
    made = (content(SweepRequest(sweep, [], scale), scales) for sweep in tables.sweeps() for scale in sorted(scales))
    return {_name(each.request): each for each in made if each}


def markdown(sections: Sequence[Section]) -> str:
    """The page of a table and those below it."""
    first, *others = sections
    return inert("\n\n".join([first.markdown(level=1), *(each.markdown() for each in others)]) + "\n")


def _name(request: SweepRequest) -> str:
    """Overrides on which results depend are part of a table's name."""
    parts = [request.sweep, request.scale, *(re.sub(r"[^\w.=+-]+", "_", change) for change in request.changes)]
    return f"tables/{'.'.join(parts)[:120]}.md"
