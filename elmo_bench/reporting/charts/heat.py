"""The paper's Figure 2: the weights of the layers by task and place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from elmo_bench.reporting.charts.svg import FAINT, Chart, axes_in, tip

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ALT = "Rows are tasks and places, columns the layers. {rows}."


def heat_map(scale: str, rows: Sequence[tuple[str, Sequence[float]]], source: str = "") -> Chart:
    """Rows of weights s_j, each with its name, as "snli input"; the marks are the paper's."""
    data = {"rows": [{"name": name, "weights": [round(s, 3) for s in weights]} for name, weights in rows]}
    alt = ALT.format(rows="; ".join(f"{name}: {', '.join(f'{s:.2f}' for s in weights)}" for name, weights in rows))
    height = round(0.34 * len(rows) + 0.75, 2)
    title = f"Weights of the layers{source and f' of {source}'}, scale {scale}"
    return Chart(f"heat-{scale}{source and f'-{source}'}", title, alt, (3.6, height), data, _draw)


def _draw(figure: Figure, data: Mapping[str, Any]) -> None:
    rows = data["rows"]
    depth = max(len(row["weights"]) for row in rows)
    axes = axes_in(figure, 1.05, 0.1, 0.4, 0.35)
    for y, row in enumerate(rows):
        for layer, weight in enumerate(row["weights"]):
            _draw_cell(axes, layer, y, weight, row["name"], 1 / depth)
    axes.set(xlim=(0, depth), ylim=(len(rows), 0))
    word = "layer " if depth < 5 else ""  # many columns are narrow
    axes.set_xticks([j + 0.5 for j in range(depth)], [f"{word}{j}" for j in range(depth)])
    axes.set_yticks([y + 0.5 for y in range(len(rows))], [row["name"] for row in rows])
    axes.tick_params(length=0, labeltop=True, labelbottom=False)
    axes.spines[:].set_visible(False)
    axes.set_xlabel(f"lines: below 1/{depth}, dots: above 2/{depth}", fontsize=8)


def _draw_cell(axes: Axes, x: int, y: int, weight: float, name: str, even: float) -> None:
    from matplotlib import colormaps
    from matplotlib.patches import Rectangle

    colour = colormaps["Blues"](0.05 + 0.5 * min(weight, 1.0))  # black figures stay readable on all of these
    cell = Rectangle((x + 0.02, y + 0.03), 0.96, 0.94, facecolor=colour, edgecolor=FAINT, linewidth=0.5)
    tip(cell, f"{name}, layer {x}: {weight:.3f}")
    axes.add_patch(cell)
    _mark(axes, x, y, weight / even)
    label = {"facecolor": colour, "edgecolor": "none", "pad": 1.5}
    axes.text(x + 0.5, y + 0.5, f"{weight:.2f}", ha="center", va="center", color="black", bbox=label)


def _mark(axes: Axes, x: int, y: int, shares: float) -> None:
    """Lines below one even share, dots above two. Hatches of matplotlib would take 20 kB for each colour."""
    levels = [y + (k + 1) / 5 for k in range(4)]
    if shares < 1:
        axes.hlines(levels, x + 0.05, x + 0.95, color=FAINT, linewidth=0.6)
    elif shares > 2:
        dots = [(x + (column + 1) / 13, level) for column in range(12) for level in levels]
        axes.plot(*zip(*dots, strict=True), ".", color=FAINT, markersize=1.5)
