"""Pictures of results: matplotlib functions of a pandas frame, as SVG on a page or in a file, and as PDF.

The same data give the same bytes with the same version of matplotlib, whatever the user's style.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from html import escape
from itertools import zip_longest
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple

from elmo_bench.reporting.gains import Comparison, Group, paper_gain
from elmo_bench.reporting.intervals import Arm, of_arm, spread
from elmo_bench.reporting.sweep_tables import Content

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

INK, FAINT = "#1a1f24", "#7a828a"  # for text and axes (on a page, the page's own colour), and for less important parts
BLUE, STYLE = "#0072b2", "elmo_bench.reporting.charts"  # charts.mplstyle
UNWRITTEN = {"svg": ("Creator", "Date", "Format", "Type"), "pdf": ("CreationDate", "Creator", "Producer")}
BAND = "Lines are means over the seeds, bands reach from their smallest to their largest value."
VALUES = ["mean", "low", "high"]  # columns of a frame: values with the ends of their band or bar


class Chart(NamedTuple):
    """A picture before it is drawn.

    Attributes:
        title: a unique one within a page.
        alt: a description of the picture, for readers who cannot see it.
        data: for `draw`; a frame if it shows results.
        size: width and height in inches; up to 3.6 inches wide, a phone shows it without scaling it down.
    """

    title: str
    alt: str
    data: Any
    draw: Callable[[Figure, Any], None]
    size: tuple[float, float] = (3.6, 2.4)


def saved(chart: Chart, kind: str, on_page: bool = False) -> bytes:
    """A picture as a file, "svg" or "pdf", without a date; for a page without title and background."""
    from matplotlib import style
    from matplotlib.figure import Figure

    file, title = io.BytesIO(), {} if on_page else {"Title": f"{chart.title}. {chart.alt}"}
    with style.context(["default", STYLE, {"svg.hashsalt": chart.title}]):
        figure = Figure(chart.size)
        chart.draw(figure, chart.data)
        figure.savefig(file, format=kind, transparent=on_page, metadata=dict.fromkeys(UNWRITTEN[kind]) | title)
    return file.getvalue()


def inline(chart: Chart) -> str:
    """A picture as an SVG element of a page, in the colour of its text, with a description for screen readers."""
    text = saved(chart, "svg", on_page=True).decode().replace(INK, "currentColor")
    used = set(re.findall(r"#(\w+)", text))
    text = re.sub(r' id="([^"]*)"', lambda found: found[0] * (found[1] in used), text)
    return f'<svg role="img" aria-label="{escape(f"{chart.title}. {chart.alt}")}"{text.partition("<svg")[2]}'


def files(charts: Mapping[str, Chart]) -> dict[str, bytes]:
    """Pictures as SVG and as PDF, by the names of their files."""
    return {f"{name}.{kind}": saved(chart, kind) for name, chart in charts.items() for kind in UNWRITTEN}


def _bars(rows: DataFrame) -> Any:
    """(2, n) distances of the ends of the bars from the means."""
    return rows[["low", "high"]].astype(float).sub(rows["mean"], axis=0).abs().to_numpy().T


# The gain of +ELMo on every task with its 95 % interval: a forest plot.


def gains(title: str, scales: Mapping[str, Sequence[Comparison]]) -> Chart:
    """A panel for each scale, with a row for the comparison of each task."""
    from pandas import DataFrame

    mains = [(scale, main) for scale, found in scales.items() for main in found]
    rows = [
        (scale, main.title + " (one seed)" * (1 in main.test.seeds), main.test.mean,
         *(main.test.interval or (None, None)), float(paper_gain(main.treated.first) or "nan"))
        for scale, main in mains
    ]  # fmt: skip
    alt = "; ".join(f"{scale}, {main.title} {main.test}" for scale, main in mains)
    frame = DataFrame(rows, columns=["scale", "task", *VALUES, "paper"])
    size = 3.6 * len(scales), 0.3 * max(map(len, scales.values())) + 1.3
    return Chart(title, f"Points with 95 % intervals. {alt}.", frame, _draw_gains, size)


def _draw_gains(figure: Figure, frame: DataFrame) -> None:
    figure.set_layout_engine("constrained")
    panels = frame.groupby("scale", sort=False)
    for axes, (scale, rows) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        y = range(len(rows))
        label = "gain (dot), 95 % interval (bar)"
        axes.errorbar(rows["mean"], y, xerr=_bars(rows), fmt="o", color=BLUE, elinewidth=2, label=label)
        axes.plot(rows.paper, [i + 0.2 for i in y], "D", color=FAINT, markersize=4, label="the paper")
        axes.axvline(0, color=INK, linewidth=0.8)
        names = rows.task.str.replace(r" \(.*", "*", regex=True)
        axes.set_yticks(y, names + rows["mean"].map("  {:+.2f}".format))
        axes.invert_yaxis()
        marked = "\n* one seed, or other biLM, vectors or data" if names.str.endswith("*").any() else ""
        axes.set_xlabel(f"gain of +ELMo on test, points, scale {scale}{marked}")
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=2)


# The paper's Figure 2: the weights of the layers by task and place.


def weights(title: str, rows: Mapping[str, Sequence[float]]) -> Chart:
    """Named rows of weights s_j, marked as in the table of Figure 2."""
    from pandas import DataFrame

    alt = " ".join(f"{name}: {' '.join(map('{:.2f}'.format, row))}." for name, row in rows.items())
    frame = DataFrame([dict(enumerate(row)) for row in rows.values()], index=[*rows])
    return Chart(title, f"By layer from 0. {alt}", frame, _draw_weights, (3.6, 0.3 * len(rows) + 0.7))


def _draw_weights(figure: Figure, frame: DataFrame) -> None:
    figure.set_layout_engine("constrained")
    axes = figure.subplots()
    axes.pcolormesh(frame.columns, range(len(frame)), frame, cmap="Blues", vmin=0, vmax=1.8, edgecolor="white")
    for y, row in enumerate(frame.to_numpy()):
        known = row[row == row]  # a row may have fewer layers than others
        for x, s_j in enumerate(known):
            mark = "▼" if s_j * len(known) < 1 else "▲" if s_j * len(known) > 2 else ""
            axes.text(x, y, f"{s_j:.2f}{mark}", ha="center", va="center", color="black", fontsize=7)
    axes.set_xticks(frame.columns)
    axes.set_yticks(range(len(frame)), frame.index)
    axes.tick_params(length=0)
    axes.set_frame_on(False)
    axes.invert_yaxis()
    axes.set_xlabel("layer; ▼ < even share, ▲ > twice that")


# Lines: over epochs, by the share of the training data (the paper's Figure 1), and by layer.


def curves(title: str, x: str, y: str, rows: Collection[tuple], points: bool = False) -> Chart:
    """Lines of the values that `y` names.

    Args:
        x: the label of the axis, which is logarithmic for shares in %.
        rows: line, x, mean, low and high.
        points: dots with bars, and ticks at the dots; otherwise lines with bands.
    """
    from pandas import DataFrame

    named = rows if points else {row[0]: row for row in rows}.values()  # the last point of a line
    values = "; ".join(f"{line} {mean:.2f} at {at:g}" for line, at, mean, *_ in named)
    alt = f"{y} by {x}. {'Bars are 95 % intervals.' if points else BAND} {values}."
    frame = DataFrame([*rows], columns=["line", "x", *VALUES])
    return Chart(title, alt, frame, partial(_draw_curves, x=x, y=y, points=points))


def _draw_curves(figure: Figure, frame: DataFrame, x: str, y: str, points: bool) -> None:
    axes = figure.subplots()
    for line, rows in frame.groupby("line", sort=False):
        rows = rows.sort_values("x")
        if points:
            axes.errorbar(rows.x, rows["mean"], yerr=_bars(rows), marker="o", label=line)
        else:
            (drawn,) = axes.plot(rows.x, rows["mean"], label=line)
            axes.fill_between(rows.x, rows.low, rows.high, color=drawn.get_color(), alpha=0.2, linewidth=0)
    if "%" in x:
        axes.set_xscale("log")
    if points:
        ticks = sorted({*frame.x})
        axes.set_xticks(ticks, map("{:g}".format, ticks))
        axes.minorticks_off()
    else:
        axes.locator_params(axis="x", nbins=5, integer=True)
    axes.locator_params(axis="y", nbins=4)  # a tick takes half a millisecond
    axes.set(xlabel=x, ylabel=y)
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=4)


def over_epochs(title: str, y: str, lines: Mapping[str, Iterable[Sequence[float | None]]]) -> Chart:
    """Lines of means over the seeds with bands.

    Args:
        lines: by name, the values of each seed by epoch, None if missing; lengths may differ.
    """
    rows = [
        (line, epoch, fmean(known), min(known), max(known))
        for line, seeds in lines.items()
        for epoch, values in enumerate(zip_longest(*seeds), start=1)
        if (known := [value for value in values if value is not None])
    ]
    return curves(title, "epoch", y, rows)


# The paper's figures, from the runs of their sweeps.


def pictures(contents: Mapping[str, Content]) -> dict[str, Chart]:
    """The paper's Figures 1 and 2 for each task with runs in their sweeps, as "figures/figure1.open.srl".

    Args:
        contents: of tables, by the path of their file.
    """
    found = {}
    for path, content in contents.items():
        split, sweep = content.request.table.split, content.request.sweep
        for task in dict.fromkeys(cell.task for cell, _ in content.groups):
            groups = [(cell.row, group) for cell, group in content.groups if cell.task == task]
            name, title = f"figures/{Path(path).stem}.{task}", f"{task}, scale {content.request.scale}"
            if sweep == "figure1":
                rows, y = [_at_share(*each, split) for each in groups], f"{split} {groups[0][1].metric}"
                title += ", parts of the training data"
                found[name] = curves(title, "training data, %", y, rows, points=True)
            elif sweep == "figure2":
                by_place = {
                    place: group.weights(place)[:-1] for _, group in groups for place in group.first.layer_weights
                }
                found[name] = weights(f"{title}, weights of the layers", by_place)
    return found


def _at_share(line: str, group: Group, split: str) -> tuple:
    """A point of Figure 1: the mean score with its interval, by the share of the training data."""
    arm = Arm.of(group.scores(split), of_arm(group.records, split, group.metric))
    found, mean = spread(arm), float(arm.scores.mean())
    return line, 100 * group.first.fraction, mean, *(found.around(mean) if found else (None, None))
