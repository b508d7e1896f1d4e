"""Curves: weights of the layers, dev scores over epochs, parts of the training data, what each layer holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from elmo_bench.records.record import Record
from elmo_bench.reporting.charts.svg import COLOURS, DASHES, FAINT, GREEN, LAYERS, Chart, axes_in, band
from elmo_bench.reporting.statistics.groups import Group

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


# Layer weights.


def layers_over_epochs(group: Group, place: str) -> Chart:
    """s_j of every layer, and gamma below, after each epoch, at one place where ELMo enters the model."""
    records = group.records
    depth = len(records[0].layer_weights[place][0])
    weights = [over_seeds([[row[j] for row in r.layer_weights[place]] for r in records]) for j in range(depth)]
    data = {"weights": weights, "gamma": over_seeds([record.gamma[place] for record in records])}
    last = ", ".join(f"s_{j} {_mean(rows[-1]):.2f}" for j, rows in enumerate(weights))
    alt = f"{BAND} After the last epoch: {last}, gamma {_mean(data['gamma'][-1]):.2f}."
    name = f"layers-{group.first.scale}-{group.first.task}-{place}"
    return Chart(name, f"{_title(group.first)}, {place}", alt, (3.6, 2.9), data, _draw_layers)


def _title(record: Record) -> str:
    return f"{record.task}, scale {record.scale}"


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
    _count_epochs(lower)


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
    return Chart(name, f"{_title(first)}: dev {metric}", f"{BAND} {best}.", (3.6, 2.4), data, _draw_training)


def _draw_training(figure: Figure, data: Mapping[str, Any]) -> None:
    axes = axes_in(figure, 0.5, 0.1, 0.42, 0.4)
    for i, line in enumerate(data["lines"]):
        band(axes, _epochs(line["dev"]), line["dev"], _short(line["name"]), i, COLOURS.get(line["arm"], FAINT))
    _count_epochs(axes)
    axes.legend(**ABOVE)


def _count_epochs(axes: Axes) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.set_xlabel("epoch")
    axes.xaxis.set_major_locator(MaxNLocator("auto", integer=True))


def _short(name: str) -> str:
    """An arm's name without what stands in brackets or after a semicolon."""
    return name.partition(" (")[0].partition(";")[0]


# The paper's Figure 1.


def fractions(arms: Mapping[str, Sequence[Group]], metric: str) -> Chart:
    """The score on test by the fraction of the training data, in percent."""
    first = next(iter(arms.values()))[0].first
    lines = [{"arm": arm, "points": _points(groups, metric)} for arm, groups in arms.items()]
    summary = "; ".join(f"{line['arm']}: " + ", ".join(map(_in_words, line["points"])) for line in lines)
    name = f"fractions-{first.scale}-{first.task}"
    data = {"metric": metric, "lines": lines}
    return Chart(name, f"{_title(first)}: test {metric}", f"{BAND} {summary}.", (3.6, 2.4), data, _draw_fractions)


def _points(groups: Sequence[Group], metric: str) -> list[dict[str, Any]]:
    points = [
        {"percent": 100 * g.first.fraction, "test": [round(r.metrics["test"][metric], 2) for r in g.records]}
        for g in groups
    ]
    return sorted(points, key=lambda point: point["percent"])


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
    from matplotlib.ticker import MaxNLocator

    panels, colours = data["panels"], [COLOURS["elmo"], COLOURS["baseline"], FAINT]
    for i, panel in enumerate(panels):
        axes = axes_in(figure, 0.5, 0.1, 0.42 + 1.7 * (len(panels) - 1 - i), 0.5 + 1.7 * i)
        for j, (name, scores) in enumerate(panel["lines"].items()):
            colour, dashes = colours[j % len(colours)], DASHES[j % len(DASHES)]
            axes.plot(range(len(scores)), scores, dashes, marker=".", color=colour, label=name)
        axes.xaxis.set_major_locator(MaxNLocator("auto", integer=True))
        axes.set_title(panel["what"], loc="left")
        if not i:
            axes.legend(**ABOVE | {"bbox_to_anchor": (-0.12, 1.15), "ncols": 3})
    axes.set_xlabel("layer")
