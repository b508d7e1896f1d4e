"""The pictures of the pages: the model, the way of the data, and the packages. Drawn as the report's charts are."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from graphlib import TopologicalSorter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elmo_bench.reporting.charts.svg import COLOURS, FAINT, GREEN, INK, Chart, drawn
from elmo_bench.system.places import ROOT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLUE, ORANGE, GREY = COLOURS["elmo"], COLOURS["baseline"], FAINT
Box = tuple[float, float, float, float, str, str]  # x and y of the centre, width, height, text, colour

MODEL: dict[str, Any] = {
    "boxes": [
        (1.6, 0.35, 2.9, 0.5, "a sentence, word by word", GREY),
        (1.6, 1.15, 2.9, 0.6, "characters of each word\nCNN, highway, projection", BLUE),
        (1.6, 2.15, 2.9, 0.6, "LSTM forward | LSTM backward", BLUE),
        (1.6, 3.15, 2.9, 0.6, "LSTM forward | LSTM backward", BLUE),
        (5.15, 2.15, 2.1, 1.0, "ELMo\n$\\gamma\\,(s_0 h_0 + s_1 h_1 + s_2 h_2)$", ORANGE),
        (5.15, 0.35, 2.1, 0.5, "word vector x", GREY),
        (7.55, 1.15, 1.7, 0.6, "[x ; ELMo]", ORANGE),
        (7.55, 2.15, 1.7, 0.6, "model of the task", GREEN),
        (7.55, 3.15, 1.7, 0.6, "answer, loss", GREEN),
    ],
    "arrows": [
        ((1.6, 0.6), (1.6, 0.85), ""), ((1.6, 1.45), (1.6, 1.85), ""), ((1.6, 2.45), (1.6, 2.85), ""),
        ((3.05, 1.15), (4.1, 1.85), "layer 0"), ((3.05, 2.15), (4.1, 2.15), "layer 1"),
        ((3.05, 3.15), (4.1, 2.45), "layer 2"),
        ((6.2, 1.9), (6.7, 1.3), ""), ((6.2, 0.4), (6.7, 0.95), ""), ((7.55, 1.45), (7.55, 1.85), ""),
        ((7.55, 2.45), (7.55, 2.85), ""), ((6.2, 2.35), (6.7, 2.2), ""),
    ],
    "words": [(1.6, 3.75, "biLM, trained on plain text, then frozen"), (7.55, 3.75, "trained on the task"),
              (5.15, 1.42, "γ and $s_j$ are learned with the task")],
}  # fmt: skip
DATA: dict[str, Any] = {
    "boxes": [
        (1.25, 2.9, 2.2, 0.7, "data files: make data\nor the mini generator", GREY),
        (1.25, 1.7, 2.2, 0.7, "biLM\nmodels/", BLUE),
        (1.25, 0.5, 2.2, 0.7, "settings\nconf/", GREY),
        (4.2, 2.9, 1.9, 0.7, "reader\nrows, batches", GREEN),
        (4.2, 1.7, 1.9, 0.7, "stored layers\n.cache/activations/", BLUE),
        (4.2, 0.5, 1.9, 0.7, "run: train\nbest epoch on dev", ORANGE),
        (7.0, 0.5, 2.0, 0.7, "record, one a run\nresults/own/runs/", ORANGE),
        (7.0, 1.7, 2.0, 0.7, "tables, intervals,\nfindings", GREEN),
        (7.0, 2.9, 2.0, 0.7, "report, README, W&B\nresults/own/", GREEN),
    ],
    "arrows": [
        ((2.35, 2.9), (3.25, 2.9), ""), ((2.35, 1.7), (3.25, 1.7), ""), ((2.35, 0.5), (3.25, 0.5), ""),
        ((4.2, 2.55), (4.2, 2.05), ""), ((4.2, 1.35), (4.2, 0.85), ""), ((5.15, 0.5), (6.0, 0.5), ""),
        ((7.0, 0.85), (7.0, 1.35), ""), ((7.0, 2.05), (7.0, 2.55), ""),
    ],
    "words": [(5.6, 2.3, "computed once for every\nsentence, then read")],
}  # fmt: skip


def files() -> dict[Path, str]:
    """Each picture by its file."""
    charts = (
        Chart(
            "model", "The model",
            "The characters of each word go through a convolution and two bidirectional LSTM layers. The weighted "
            "sum of the three layers is ELMo, which stands beside the word vector in the model of the task.",
            (8.6, 4.0), MODEL, _draw,
        ),
        Chart(
            "data", "The data",
            "Data files, a biLM and settings make a run. The layers of the biLM are computed once and stored. A run "
            "leaves a record, and all tables and the report are made of records.",
            (8.2, 3.4), DATA, _draw,
        ),
        Chart(
            "packages", "The packages",
            "The packages of elmo_bench: each stands above those that it imports, from commands at the top to system "
            "at the bottom.",
            (7.8, 8.4), _packages(), _draw,
        ),
    )  # fmt: skip
    folder = ROOT / "docs" / "figures"
    return {folder / f"{chart.name}.svg": drawn(chart, page=False) for chart in charts}


def imported() -> dict[str, set[str]]:
    """The packages of elmo_bench with those that each imports, wherever in the source the import stands."""
    folder = ROOT / "elmo_bench"
    found: dict[str, set[str]] = {"task": set()} | {path.parent.name: set() for path in folder.glob("*/__init__.py")}
    for path in folder.rglob("*.py"):
        package = path.relative_to(folder).with_suffix("").parts[0]
        if package in found:
            names = {name.split(".")[1] for name in _names(path.read_text("utf-8")) if name.startswith("elmo_bench.")}
            found[package] |= names & found.keys() - {package}
    return found


def _names(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def _packages() -> dict[str, Any]:
    """Each package below all that import it; an arrow is left out where another way leads to the same package."""
    graph = imported()
    order = list(TopologicalSorter(graph).static_order())
    below: dict[str, set[str]] = {}  # all that a package needs
    for name in order:
        below[name] = graph[name].union(*(below[other] for other in graph[name]))
    row: dict[str, int] = {}  # from the top
    for name in reversed(order):
        row[name] = 1 + max((row[one] for one in graph if name in graph[one]), default=-1)
    place = {}
    for at in range(max(row.values()) + 1):
        names = sorted(name for name in row if row[name] == at)
        for i, name in enumerate(names):
            place[name] = (3.9 + 1.5 * (i - (len(names) - 1) / 2), 8.0 - 0.7 * at)
    arrows = [
        ((place[one][0], place[one][1] - 0.17), (place[other][0], place[other][1] + 0.17), "")
        for one in sorted(graph)
        for other in sorted(graph[one])
        if not any(other in below[between] for between in graph[one])
    ]
    return {
        "boxes": [(*place[name], 1.2, 0.34, name, BLUE) for name in sorted(place)],
        "arrows": arrows,
        "words": [],
        "line": 0.5,
    }


def _draw(figure: Figure, data: Mapping[str, Any]) -> None:
    """Boxes, arrows between them and words, in inches."""
    width, height = figure.get_size_inches()
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, width), ylim=(0, height))
    axes.set_axis_off()
    for box in data["boxes"]:
        _box(axes, box)
    for start, end, label in data["arrows"]:
        axes.annotate(
            "", xy=end, xytext=start, arrowprops={"arrowstyle": "->", "color": INK, "linewidth": data.get("line", 1.1)}
        )
        if label:
            x, y = (start[0] + end[0]) / 2, (start[1] + end[1]) / 2
            axes.text(x, y + 0.14, label, ha="center", va="bottom", fontsize=8, color=INK)
    for x, y, text in data["words"]:
        axes.text(x, y, text, ha="center", va="center", fontsize=8, color=INK)


def _box(axes: Axes, box: Box) -> None:
    from matplotlib.patches import FancyBboxPatch

    x, y, width, height, text, colour = box
    style = {"boxstyle": "round,pad=0,rounding_size=0.08", "facecolor": (colour, 0.15), "edgecolor": colour}
    axes.add_patch(FancyBboxPatch((x - width / 2, y - height / 2), width, height, **style))
    axes.text(x, y, text, ha="center", va="center", color=INK, linespacing=1.4)
