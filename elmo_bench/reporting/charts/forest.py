"""The gain of +ELMo on every task with its 95 % interval: a forest plot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from elmo_bench.records.run_names import with_changes
from elmo_bench.reporting.charts.svg import COLOURS, FAINT, INK, Chart, axes_in, tip
from elmo_bench.reporting.statistics.outcomes import Comparison
from elmo_bench.reporting.statistics.scores import gain_of_paper

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ROW, EDGES = 0.3, 0.95  # inches: the height of a row, and of the title, the axis and its label together


def forest(name: str, title: str, scales: Mapping[str, Sequence[Comparison]]) -> Chart:
    """A panel for each scale with a row for each of its comparisons, one a task."""
    panels = [{"title": f"scale {scale}", "rows": [*map(_row, mains)]} for scale, mains in scales.items()]
    height = ROW * max(len(panel["rows"]) for panel in panels) + EDGES
    size = 3.6 * len(panels), round(height, 2)
    alt = " ".join(f"{panel['title']}: {'; '.join(map(_in_words, panel['rows']))}." for panel in panels)
    return Chart(name, title, alt, size, {"panels": panels}, _draw)


def _row(main: Comparison) -> dict[str, Any]:
    low, high = (None if end is None else round(end, 2) for end in main.test.interval or (None, None))
    changes = {"changes": main.changes} if main.changes else {}
    return {"task": main.task, **changes, "gain": round(main.test.mean, 2), "low": low, "high": high,
            "seeds": min(main.test.seeds), "paper": gain_of_paper(main.treated.first)}  # fmt: skip


def _in_words(row: Mapping[str, Any]) -> str:
    certain = "no interval" if row["low"] is None else f"95 % interval {row['low']:+.2f} to {row['high']:+.2f}"
    many = "1 seed" if row["seeds"] == 1 else f"{row['seeds']} seeds"
    paper = "" if row["paper"] is None else f", the paper {row['paper']:+.2f}"
    return f"{with_changes(row['task'], row.get('changes', ''))} {row['gain']:+.2f} points, {certain}, {many}{paper}"


def _draw(figure: Figure, data: Mapping[str, Any]) -> None:
    width = figure.get_size_inches()[0]
    for i, panel in enumerate(data["panels"]):
        axes = axes_in(figure, 3.6 * i + 0.75, width - 3.6 * (i + 1) + 0.65, 0.6, 0.33)
        _draw_panel(axes, panel)


def _draw_panel(axes: Axes, panel: Mapping[str, Any]) -> None:
    rows = panel["rows"]
    axes.axvline(0, color=INK, linewidth=0.8)
    for y, row in enumerate(rows):
        _draw_row(axes, y, row)
    marks = ["*" * ("changes" in row) for row in rows]  # the tip and the alternative text say which
    axes.set_yticks(range(len(rows)), [row["task"] + mark for row, mark in zip(rows, marks, strict=True)])
    axes.set(ylim=(len(rows) - 0.5, -0.5), title=panel["title"])
    other = "   * other biLM, vectors or data" if any(marks) else ""
    axes.set_xlabel(f"gain of +ELMo on test, points\n◆ the paper   ○ one seed{other}", fontsize=8)
    axes.tick_params(axis="y", length=0)


def _draw_row(axes: Axes, y: int, row: Mapping[str, Any]) -> None:
    words, colour, one = _in_words(row), COLOURS["elmo"], row["seeds"] == 1
    if row["paper"] is not None:
        axes.plot([row["paper"]], [y + 0.18], "D", color=FAINT, markersize=4)
    if row["low"] is not None:
        (line,) = axes.plot([row["low"], row["high"]], [y, y], "|-", color=colour, linewidth=2, markersize=9)
        tip(line, words)
    (dot,) = axes.plot([row["gain"]], [y], "o", color=colour, markersize=6, markerfacecolor="none" if one else colour)
    tip(dot, words)
    axes.text(1.02, y, f"{row['gain']:+.2f}", transform=axes.get_yaxis_transform(), va="center")
