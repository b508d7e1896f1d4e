"""The charts of the report: gains, weights of the layers, and what changes with epochs, examples and layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from elmo_bench.records.run_names import with_changes
from elmo_bench.reporting.charts.svg import COLOURS, DASHES, FAINT, GREEN, INK, LAYERS, Chart, axes_in, band, tip
from elmo_bench.reporting.statistics.groups import Group, gain_of_paper
from elmo_bench.reporting.statistics.outcomes import Comparison

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Where the legend stands.
BESIDE = {"loc": "center left", "bbox_to_anchor": (1, 0.5), "handlelength": 1.6, "handletextpad": 0.4}
ABOVE = {"loc": "lower left", "bbox_to_anchor": (-0.12, 1), "ncols": 2, "columnspacing": 1, "handlelength": 2.4}
BAND = "Lines are means over the seeds, bands reach from their smallest to their largest value."


def over_seeds(columns: Sequence[Sequence[float | None]]) -> list[list[float]]:
    """For each epoch the values of the seeds that reached it; `columns`: of each seed by epoch, None where none is."""
    rows = [[round(value, 4) for value in row if value is not None] for row in zip_longest(*columns)]
    return rows[: next((i for i, row in enumerate(rows) if not row), len(rows))]


# The gain of +ELMo on every task with its 95 % interval: a forest plot.

ROW, EDGES = 0.3, 0.95  # inches: the height of a row, and of the title, the axis and its label together


def forest(name: str, title: str, scales: Mapping[str, Sequence[Comparison]]) -> Chart:
    """A panel for each scale with a row for each of its comparisons, one a task."""
    panels = [{"title": f"scale {scale}", "rows": [*map(_gain_row, mains)]} for scale, mains in scales.items()]
    height = ROW * max(len(panel["rows"]) for panel in panels) + EDGES
    size = 3.6 * len(panels), round(height, 2)
    alt = " ".join(f"{panel['title']}: {'; '.join(map(_gain_in_words, panel['rows']))}." for panel in panels)
    return Chart(name, title, alt, size, {"panels": panels}, _draw_forest)


def _gain_row(main: Comparison) -> dict[str, Any]:
    low, high = (None if end is None else round(end, 2) for end in main.test.interval or (None, None))
    changes = {"changes": main.changes} if main.changes else {}
    return {"task": main.task, **changes, "gain": round(main.test.mean, 2), "low": low, "high": high,
            "seeds": min(main.test.seeds), "paper": gain_of_paper(main.treated.first)}  # fmt: skip


def _gain_in_words(row: Mapping[str, Any]) -> str:
    certain = "no interval" if row["low"] is None else f"95 % interval {row['low']:+.2f} to {row['high']:+.2f}"
    many = "1 seed" if row["seeds"] == 1 else f"{row['seeds']} seeds"
    paper = "" if row["paper"] is None else f", the paper {row['paper']:+.2f}"
    return f"{with_changes(row['task'], row.get('changes', ''))} {row['gain']:+.2f} points, {certain}, {many}{paper}"


def _draw_forest(figure: Figure, data: Mapping[str, Any]) -> None:
    width = figure.get_size_inches()[0]
    for i, panel in enumerate(data["panels"]):
        axes = axes_in(figure, 3.6 * i + 0.75, width - 3.6 * (i + 1) + 0.65, 0.6, 0.33)
        _draw_gains(axes, panel)


def _draw_gains(axes: Axes, panel: Mapping[str, Any]) -> None:
    rows = panel["rows"]
    axes.axvline(0, color=INK, linewidth=0.8)
    for y, row in enumerate(rows):
        _draw_gain(axes, y, row)
    marks = ["*" * ("changes" in row) for row in rows]  # the tip and the alternative text say which
    axes.set_yticks(range(len(rows)), [row["task"] + mark for row, mark in zip(rows, marks, strict=True)])
    axes.set(ylim=(len(rows) - 0.5, -0.5), title=panel["title"])
    other = "   * other biLM, vectors or data" if any(marks) else ""
    axes.set_xlabel(f"gain of +ELMo on test, points\n◆ the paper   ○ one seed{other}", fontsize=8)
    axes.tick_params(axis="y", length=0)


def _draw_gain(axes: Axes, y: int, row: Mapping[str, Any]) -> None:
    words, colour, one = _gain_in_words(row), COLOURS["elmo"], row["seeds"] == 1
    if row["paper"] is not None:
        axes.plot([row["paper"]], [y + 0.18], "D", color=FAINT, markersize=4)
    if row["low"] is not None:
        (line,) = axes.plot([row["low"], row["high"]], [y, y], "|-", color=colour, linewidth=2, markersize=9)
        tip(line, words)
    (dot,) = axes.plot([row["gain"]], [y], "o", color=colour, markersize=6, markerfacecolor="none" if one else colour)
    tip(dot, words)
    axes.text(1.02, y, f"{row['gain']:+.2f}", transform=axes.get_yaxis_transform(), va="center")


# The paper's Figure 2: the weights of the layers by task and place.

ALT = "Rows are tasks and places, columns the layers. {rows}."


def heat_map(scale: str, rows: Sequence[tuple[str, Sequence[float]]], source: str = "") -> Chart:
    """Rows of weights s_j, each with its name, as "snli input"; the marks are the paper's."""
    data = {"rows": [{"name": name, "weights": [round(s, 3) for s in weights]} for name, weights in rows]}
    alt = ALT.format(rows="; ".join(f"{name}: {', '.join(f'{s:.2f}' for s in weights)}" for name, weights in rows))
    height = round(0.34 * len(rows) + 0.75, 2)
    title = f"Weights of the layers{source and f' of {source}'}, scale {scale}"
    return Chart(f"heat-{scale}{source and f'-{source}'}", title, alt, (3.6, height), data, _draw_heat)


def _draw_heat(figure: Figure, data: Mapping[str, Any]) -> None:
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


# Layer weights over epochs.


def layers_over_epochs(group: Group, place: str) -> Chart:
    """s_j of every layer, and gamma below, after each epoch, at one place where ELMo enters the model."""
    records = group.records
    depth = len(records[0].layer_weights[place][0])
    weights = [over_seeds([[row[j] for row in r.layer_weights[place]] for r in records]) for j in range(depth)]
    data = {"weights": weights, "gamma": over_seeds([record.gamma[place] for record in records])}
    last = ", ".join(f"s_{j} {_mean(rows[-1]):.2f}" for j, rows in enumerate(weights))
    alt = f"{BAND} After the last epoch: {last}, gamma {_mean(data['gamma'][-1]):.2f}."
    name = f"layers-{group.first.scale}-{group.first.task}-{place}"
    return Chart(name, f"{group.first.task}, scale {group.first.scale}, {place}", alt, (3.6, 2.9), data, _draw_layers)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _draw_layers(figure: Figure, data: Mapping[str, Any]) -> None:
    upper, lower = axes_in(figure, 0.5, 0.65, 1.35, 0.1), axes_in(figure, 0.5, 0.65, 0.42, 1.75)
    for j, rows in enumerate(data["weights"]):
        band(upper, _epochs(rows), rows, f"s_{j}", j, LAYERS[j % len(LAYERS)])
    upper.axhline(1 / len(data["weights"]), color=FAINT, linewidth=0.6)
    upper.set_ylim(0, None)
    upper.tick_params(bottom=False, labelbottom=False)
    upper.legend(**BESIDE)
    band(lower, _epochs(data["gamma"]), data["gamma"], "γ", 0, GREEN)
    lower.legend(**BESIDE)
    lower.set_xlim(upper.get_xlim())
    _count(lower, "epoch")


def _epochs(rows: Sequence[Any]) -> list[int]:
    return list(range(1, len(rows) + 1))


# Training.


def training(arms: Sequence[Group], metric: str) -> Chart:
    """The score on dev after each epoch, for the arms of one task and scale."""
    first = arms[0].first
    lines = [
        {"arm": g.first.arm, "name": g.name, "dev": over_seeds([r.history.get(f"dev.{metric}", []) for r in g.records])}
        for g in arms
    ]
    lines = [line for line in lines if line["dev"]]
    best = "; ".join(f"{line['name']}, best mean {max(map(_mean, line['dev'])):.1f}" for line in lines)
    name = f"training-{first.scale}-{first.task}"
    data = {"metric": metric, "lines": lines}
    return Chart(
        name, f"{first.task}, scale {first.scale}: dev {metric}", f"{BAND} {best}.", (3.6, 2.4), data, _draw_training
    )


def _draw_training(figure: Figure, data: Mapping[str, Any]) -> None:
    axes = axes_in(figure, 0.5, 0.1, 0.42, 0.4)
    for i, line in enumerate(data["lines"]):
        name = line["name"].partition(" (")[0].partition(";")[0]
        band(axes, _epochs(line["dev"]), line["dev"], name, i, COLOURS.get(line["arm"], FAINT))
    _count(axes, "epoch")
    axes.legend(**ABOVE)


def _count(axes: Axes, what: str) -> None:
    """Whole numbers below the axis of epochs or layers."""
    from matplotlib.ticker import MaxNLocator

    axes.set_xlabel(what)
    axes.xaxis.set_major_locator(MaxNLocator("auto", integer=True))


# The paper's Figure 1.


def fractions(arms: Mapping[str, Sequence[Group]], metric: str) -> Chart:
    """The score on test by the fraction of the training data, in percent."""
    first = next(iter(arms.values()))[0].first
    lines = [
        {
            "arm": arm,
            "points": [
                {"percent": 100 * g.first.fraction, "test": [round(r.metrics["test"][metric], 2) for r in g.records]}
                for g in sorted(groups, key=lambda group: group.first.fraction)
            ],
        }
        for arm, groups in arms.items()
    ]
    summary = "; ".join(f"{line['arm']}: " + ", ".join(map(_in_words, line["points"])) for line in lines)
    name = f"fractions-{first.scale}-{first.task}"
    data = {"metric": metric, "lines": lines}
    return Chart(
        name,
        f"{first.task}, scale {first.scale}: test {metric}",
        f"{BAND} {summary}.",
        (3.6, 2.4),
        data,
        _draw_fractions,
    )


def _in_words(point: Mapping[str, Any]) -> str:
    return f"{_mean(point['test']):.1f} with {point['percent']:g} %"


def _draw_fractions(figure: Figure, data: Mapping[str, Any]) -> None:
    from matplotlib.ticker import FuncFormatter, NullLocator

    axes = axes_in(figure, 0.5, 0.15, 0.42, 0.4)
    for i, line in enumerate(data["lines"]):
        x, rows = [p["percent"] for p in line["points"]], [p["test"] for p in line["points"]]
        band(axes, x, rows, line["arm"], i, COLOURS.get(line["arm"], FAINT))
    axes.set(xscale="log", xlabel="training data, %")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.legend(**ABOVE)


# Probing of the layers.


def by_layer(scale: str, panels: Mapping[str, Mapping[str, Sequence[float]]]) -> Chart:
    """The score of every layer: a panel for what is measured, a line for each source from layer 0 on."""
    summary = "; ".join(
        f"{what}: " + ", ".join(f"{name} {' '.join(f'{score:.1f}' for score in each)}" for name, each in lines.items())
        for what, lines in panels.items()
    )
    data = {"panels": [{"what": what, "lines": dict(lines)} for what, lines in panels.items()]}
    title = f"What each layer holds, scale {scale}"
    return Chart(
        f"contents-{scale}", title, f"By layer from 0. {summary}.", (3.6, 1.7 * len(panels) + 0.5), data, _draw_by_layer
    )


def _draw_by_layer(figure: Figure, data: Mapping[str, Any]) -> None:
    panels, colours = data["panels"], [COLOURS["elmo"], COLOURS["baseline"], FAINT]
    for i, panel in enumerate(panels):
        axes = axes_in(figure, 0.5, 0.1, 0.42 + 1.7 * (len(panels) - 1 - i), 0.5 + 1.7 * i)
        for j, (name, scores) in enumerate(panel["lines"].items()):
            colour, dashes = colours[j % len(colours)], DASHES[j % len(DASHES)]
            axes.plot(range(len(scores)), scores, dashes, marker=".", color=colour, label=name)
        _count(axes, "layer" if i == len(panels) - 1 else "")
        axes.set_title(panel["what"], loc="left")
        if not i:
            axes.legend(**ABOVE | {"bbox_to_anchor": (-0.12, 1.15), "ncols": 3})
