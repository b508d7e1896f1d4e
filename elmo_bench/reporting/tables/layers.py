"""The paper's figure 2 as a table: the weights of the layers by task and place, from the records."""

from __future__ import annotations

from statistics import fmean

from elmo_bench.configuration import layouts
from elmo_bench.reporting.statistics.cells import Cell, Content, in_words
from elmo_bench.reporting.statistics.groups import Group

Row = tuple[str, ...]
LOW, HIGH = 1 / 3, 2 / 3  # beyond these, the paper shades a weight


def weights(content: Content) -> tuple[Row, list[Row]]:
    """The header, and a row for each place where ELMo enters: mean s_j and γ over the seeds, at the selected epoch."""
    placed = [_mean(group, place) for group in content.groups.values() if group for place in _places(group)]
    layers = max((len(means) - 1 for means in placed), default=0)
    header = ("task", "ELMo at", *(f"s_{j}" for j in range(layers)), "γ", "seeds")
    cells = [cell for task in content.tasks for cell in content.of(task)]
    return header, [row for cell in cells for row in _rows(cell, content.groups[cell], layers)]


def _rows(cell: Cell, group: Group | None, layers: int) -> list[Row]:
    name = ", ".join(filter(None, (layouts.titles().get(cell.task, cell.task), in_words(cell.column))))
    if group is None:
        return [(name, "missing", *[""] * (layers + 2))]
    return [(name, place, *_cells(group, place, layers), f"{len(group.records)}") for place in _places(group)]


def _cells(group: Group, place: str, layers: int) -> Row:
    *each, gamma = _mean(group, place)
    return (*map(_marked, each), *[""] * (layers - len(each)), f"{gamma:.2f}")


def _places(group: Group) -> list[str]:
    return list(group.first["layer_weights"])


def _mean(group: Group, place: str) -> list[float]:
    """The mean weight of each layer, then the mean γ."""
    chosen = [
        [*record["layer_weights"][place][record["epoch"] - 1], record["gamma"][place][record["epoch"] - 1]]
        for record in group.records
    ]
    return [fmean(column) for column in zip(*chosen, strict=True)]


def _marked(weight: float) -> str:
    return f"{weight:.2f}" + (" ▼" if weight < LOW else " ▲" if weight > HIGH else "")
