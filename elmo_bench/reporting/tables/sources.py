"""Below the table of sources of context: the gains of each over the others, its layers' weights, and what it costs."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import fmean

from elmo_bench.configuration import pages
from elmo_bench.records.times import COMPUTING, in_time, typical
from elmo_bench.reporting.section import Number, Section
from elmo_bench.reporting.statistics.cells import Cell, Content
from elmo_bench.reporting.statistics.gains import gain, p_in_words
from elmo_bench.reporting.statistics.gains import in_words as gain_in_words
from elmo_bench.reporting.statistics.groups import Group
from elmo_bench.reporting.statistics.scores import mean_weights
from elmo_bench.reporting.tables.numbers import runs_of

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
Row = tuple[str, ...]


def sections(content: Content) -> list[Section]:
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
    return header, [row for cell in content.cells for row in _rows(cell, layers, several)]


def _rows(cell: Cell, layers: int, several: bool) -> list[Row]:
    name = pages.title(cell.task) + (f", {cell.column}" if several else "")
    if cell.group is None:
        return [(name, "missing", *[""] * (layers + 2))]
    rows = []
    for place in cell.group.first.layer_weights:
        *each, gamma = mean_weights(cell.group.records, place)
        marked = (*(_marked(weight, 1 / len(each)) for weight in each), *[""] * (layers - len(each)))
        rows.append((name, place, *marked, f"{gamma:.2f}", f"{len(cell.group.records)}"))
    return rows


def _marked(weight: float, even: float) -> str:
    """The paper shades weights below an even share, 1/3, and above twice that."""
    return f"{weight:.2f}" + (" ▼" if weight < even else " ▲" if weight > 2 * even else "")


def _cost(cell: Cell, group: Group) -> Row:
    weighed = next(iter(group.first.layer_weights.values()), None)
    peaks = [record.peak_memory_mib for record in group.records if record.peak_memory_mib]
    return (
        pages.title(cell.task),
        cell.column,
        _number(group, "parameters"),
        str(len(weighed[0])) if weighed else "",
        _number(group, "token_bytes"),
        in_time(typical(group.records)),
        f"{fmean(peaks):,.0f} MiB" if peaks else "",
    )


def _number(group: Group, key: str) -> str:
    """A number of a source; empty without one, and in records that do not have it yet."""
    value = next((each.bilm[key] for each in group.records if each.bilm.get(key)), None)
    return "" if value is None else f"{value:,}"
