"""Pictures of results: matplotlib functions of a pandas frame, as SVG on a page or in a file, and as PDF.

The same data give the same bytes with the same version of matplotlib, whatever the user's style is.
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

import numpy as np

from elmo_bench.reporting.statistics.evidence import of_arm
from elmo_bench.reporting.statistics.gains import in_words
from elmo_bench.reporting.statistics.groups import Group, gain_of_paper, mean_weights
from elmo_bench.reporting.statistics.intervals import Arm, spread
from elmo_bench.reporting.statistics.outcomes import Comparison
from elmo_bench.reporting.tables.paper import Content

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

INK, FAINT = "#1a1f24", "#7a828a"  # of text and axes (on a page the colour of its text), and of what stands back
ORANGE, BLUE, GREEN = "#c4500a", "#0072b2", "#00805c"
STYLE = {
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 8.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.prop_cycle": f"cycler(color={[ORANGE, BLUE, FAINT, GREEN, '#a3478a']}, ls={['-', '--', '-.', ':', '-']})",
    "errorbar.capsize": 3,
    "figure.subplot.left": 0.15,
    "figure.subplot.right": 0.97,
    "figure.subplot.bottom": 0.17,
    "figure.subplot.top": 0.86,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "legend.columnspacing": 1,
    **dict.fromkeys(("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), INK),
}
UNWRITTEN = {"svg": ("Creator", "Date", "Format", "Type"), "pdf": ("CreationDate", "Creator", "Producer")}
BAND = "Lines are means over the seeds, bands reach from their smallest to their largest value."
VALUES = ["mean", "low", "high"]  # in a frame: values with the ends of their band or bar


class Chart(NamedTuple):
    """A picture before it is drawn.

    Args:
        title: of its own within a page.
        alt: what the picture shows, in words.
        data: what `draw` draws; of results, a frame.
        size: width and height in inches; up to 3.6 inches wide, a phone shows it without scaling it down.
    """

    title: str
    alt: str
    data: Any
    draw: Callable[[Figure, Any], None]
    size: tuple[float, float] = (3.6, 2.4)


def saved(chart: Chart, kind: str, page: bool = False) -> bytes:
    """A picture as a file, "svg" or "pdf", without a date; for a page with neither title nor ground."""
    from matplotlib import style
    from matplotlib.figure import Figure

    file, told = io.BytesIO(), {} if page else {"Title": f"{chart.title}. {chart.alt}"}
    with style.context(["default", {**STYLE, "svg.hashsalt": chart.title}]):
        figure = Figure(chart.size)
        chart.draw(figure, chart.data)
        figure.savefig(file, format=kind, transparent=page, metadata=dict.fromkeys(UNWRITTEN[kind]) | told)
    return file.getvalue()


def inline(chart: Chart) -> str:
    """A picture as an SVG element of a page, in the colour of its text, which says in words what it shows."""
    text = saved(chart, "svg", page=True).decode().replace(INK, "currentColor")
    used = set(re.findall(r"#(\w+)", text))
    text = re.sub(r' id="([^"]*)"', lambda found: found[0] * (found[1] in used), text)
    return f'<svg role="img" aria-label="{escape(f"{chart.title}. {chart.alt}")}"{text.partition("<svg")[2]}'


def _ends(rows: DataFrame) -> Any:
    """(2, n) how far the ends of the bars are from the means."""
    return rows[["low", "high"]].astype(float).sub(rows["mean"], axis=0).abs().to_numpy().T


# The gain of +ELMo on every task with its 95 % interval: a forest plot.


def gains(title: str, scales: Mapping[str, Sequence[Comparison]]) -> Chart:
    """A panel for each scale with a row for each of its comparisons, one a task."""
    from pandas import DataFrame

    mains = [(scale, main) for scale, found in scales.items() for main in found]
    rows = [
        (scale, main.title + " (one seed)" * (1 in main.test.seeds), main.test.mean,
         *(main.test.interval or (None, None)), gain_of_paper(main.treated.first))
        for scale, main in mains
    ]  # fmt: skip
    words = "; ".join(f"{scale}, {main.title} {in_words(main.test)}" for scale, main in mains)
    frame = DataFrame(rows, columns=["scale", "task", *VALUES, "paper"])
    size = 3.6 * len(scales), 0.3 * max(map(len, scales.values())) + 1.3
    return Chart(title, f"Points with 95 % intervals. {words}.", frame, _draw_gains, size)


def _draw_gains(figure: Figure, frame: DataFrame) -> None:
    figure.set_layout_engine("constrained")
    panels = frame.groupby("scale", sort=False)
    for axes, (scale, rows) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        y = range(len(rows))
        label = "gain (dot), 95 % interval (bar)"
        axes.errorbar(rows["mean"], y, xerr=_ends(rows), fmt="o", color=BLUE, elinewidth=2, label=label)
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
        known = row[row == row]  # fewer layers than other rows have
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
    """Lines of what `y` says.

    Args:
        x: what stands below the axis, which is logarithmic for shares in %.
        points: dots with bars, and ticks where they stand; else lines with bands.
    """
    from pandas import DataFrame

    said = rows if points else {row[0]: row for row in rows}.values()  # of a line its last point
    words = "; ".join(f"{line} {mean:.2f} at {at:g}" for line, at, mean, *_ in said)
    alt = f"{y} by {x}. {'Bars are 95 % intervals.' if points else BAND} {words}."
    frame = DataFrame([*rows], columns=["line", "x", *VALUES])
    return Chart(title, alt, frame, partial(_draw_curves, x=x, y=y, points=points))


def _draw_curves(figure: Figure, frame: DataFrame, x: str, y: str, points: bool) -> None:
    axes = figure.subplots()
    for line, of in frame.groupby("line", sort=False):
        of = of.sort_values("x")
        if points:
            axes.errorbar(of.x, of["mean"], yerr=_ends(of), marker="o", label=line)
        else:
            (drawn,) = axes.plot(of.x, of["mean"], label=line)
            axes.fill_between(of.x, of.low, of.high, color=drawn.get_color(), alpha=0.2, linewidth=0)
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
        lines: by name, the values of each seed by epoch, None where it has none; they may end apart.
    """
    rows = [
        (line, epoch, fmean(known), min(known), max(known))
        for line, seeds in lines.items()
        for epoch, values in enumerate(zip_longest(*seeds), start=1)
        if (known := [value for value in values if value is not None])
    ]
    return curves(title, "epoch", y, rows)


def of_layers(group: Group, place: str) -> Chart:
    """s_j of every layer, and γ, after each epoch, at one place where ELMo enters the model."""
    first, records = group.first, group.records
    lines = {
        f"s_{j}": [[s[j] for s in record.layer_weights[place]] for record in records]
        for j in range(len(first.layer_weights[place][0]))
    }
    lines["γ"] = [record.gamma[place] for record in records]
    return over_epochs(f"{first.task}, scale {first.scale}, {place}", "s_j and γ", lines)


def training(arms: Sequence[Group], metric: str) -> Chart:
    """The score on dev after each epoch, for the arms of one task and scale."""
    first = arms[0].first
    lines = {arm.name: [record.history.get(f"dev.{metric}", []) for record in arm.records] for arm in arms}
    return over_epochs(f"{first.task}, scale {first.scale}: dev {metric}", f"dev {metric}", lines)


# The paper's figures, of the runs of their sweeps.


def pictures(tabled: Mapping[str, Content]) -> dict[str, Chart]:
    """The paper's Figures 1 and 2 for each task that has runs in their sweeps, as "figures/figure1.open.srl".

    Args:
        tabled: the content of tables by the path of their file.
    """
    draw = {"figure1": _by_share, "figure2": _by_place}
    return {
        f"figures/{Path(name).stem}.{task}": draw[content.request.sweep](content, task, groups)
        for name, content in tabled.items()
        if content.request.sweep in draw
        for task, cells in content.cells.items()
        if (groups := [(row, cell.group) for (row, _), cell in cells.items() if cell.group])
    }


def files(charts: Mapping[str, Chart]) -> dict[str, bytes]:
    """Pictures as SVG and as PDF, by the names of their files."""
    return {f"{name}.{kind}": saved(chart, kind) for name, chart in charts.items() for kind in UNWRITTEN}


def _by_share(content: Content, task: str, groups: Sequence[tuple[str, Group]]) -> Chart:
    """Baseline and +ELMo by the share of the training data."""
    split, metric, rows = content.request.table.split, content.metrics[task], []
    for row, group in groups:
        scores = np.array([record.metrics[split][metric] for record in group.records])
        known, added = of_arm(group.records, split, metric), np.zeros((len(scores), 0))
        if known and len(known[0].table) > 1:
            added = np.stack([each.influences for each in known])
        found, mean = spread(Arm(scores, added)), float(scores.mean())
        ends = found.around(mean) if found else (None, None)
        rows.append((row, 100 * group.first.fraction, mean, *ends))
    title = f"{task}, scale {content.request.scale}, parts of the training data"
    return curves(title, "training data, %", f"{split} {metric}", rows, points=True)


def _by_place(content: Content, task: str, groups: Sequence[tuple[str, Group]]) -> Chart:
    """The weights of the layers where ELMo enters the task's model."""
    rows = {place: mean_weights(g.records, place)[:-1] for _, g in groups for place in g.first.layer_weights}
    return weights(f"{task}, scale {content.request.scale}, weights of the layers", rows)
