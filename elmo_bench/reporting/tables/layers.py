"""The paper's figure 2 as a table: the weights of the layers by task and place, from the records."""

from __future__ import annotations

from elmo_bench.configuration import pages
from elmo_bench.reporting.statistics.cells import Cell, Content
from elmo_bench.reporting.statistics.scores import mean_weights

Row = tuple[str, ...]


def weights(content: Content) -> tuple[Row, list[Row]]:
    """The header, and a row for each place where ELMo enters: mean s_j and γ over the seeds, at the selected epoch."""
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
