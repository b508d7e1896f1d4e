"""The paper's figure 2 as a table: the weights of the layers by task and place, from the records."""

from __future__ import annotations

from elmo_bench.configuration import layouts
from elmo_bench.reporting.statistics.cells import Cell, Content, in_words
from elmo_bench.reporting.statistics.groups import Group
from elmo_bench.reporting.statistics.scores import mean_weights

Row = tuple[str, ...]


def weights(content: Content) -> tuple[Row, list[Row]]:
    """The header, and a row for each place where ELMo enters: mean s_j and γ over the seeds, at the selected epoch."""
    cells = [(cell, content.groups[cell]) for task in content.tasks for cell in content.of(task)]
    layers = max(
        (len(rows[0]) for _, group in cells if group for rows in group.first.layer_weights.values()), default=0
    )
    header = ("task", "ELMo at", *(f"s_{j}" for j in range(layers)), "γ", "seeds")
    return header, [row for cell, group in cells for row in _rows(cell, group, layers)]


def _rows(cell: Cell, group: Group | None, layers: int) -> list[Row]:
    name = ", ".join(filter(None, (layouts.titles().get(cell.task, cell.task), in_words(cell.column))))
    if group is None:
        return [(name, "missing", *[""] * (layers + 2))]
    rows = []
    for place in group.first.layer_weights:
        *each, gamma = mean_weights(group.records, place)
        marked = (*(_marked(weight, 1 / len(each)) for weight in each), *[""] * (layers - len(each)))
        rows.append((name, place, *marked, f"{gamma:.2f}", f"{len(group.records)}"))
    return rows


def _marked(weight: float, even: float) -> str:
    """The paper shades weights below an even share, 1/3, and above twice that."""
    return f"{weight:.2f}" + (" ▼" if weight < even else " ▲" if weight > 2 * even else "")
