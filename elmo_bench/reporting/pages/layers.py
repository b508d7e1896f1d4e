"""The weights of the layers: the paper's Figure 2, and s_j and gamma over epochs."""

from __future__ import annotations

from collections.abc import Sequence

from elmo_bench.reporting.charts import curves
from elmo_bench.reporting.charts.heat import heat_map
from elmo_bench.reporting.pages.parts import Chapter, Table
from elmo_bench.reporting.statistics.groups import Group
from elmo_bench.reporting.tables.numbers import Number, mean_of
from elmo_bench.reporting.tables.outcomes import Outcome, Scales, compared

FIGURE_2 = (
    "The weights s_j of the biLM's layers, which sum to one, at the selected epoch, means over the seeds: layer 0 is "
    "the characters', layers 1 and above are the LSTMs'. Marks as in the paper: lines below 1/3, dots above 2/3."
)
BY_EPOCH = "The weights s_j and the scale γ after every epoch; the thin line is an even share. "


def layer_weights(scales: Scales) -> Chapter:
    """The paper's Figure 2 and the same numbers with gamma as a table, for each scale."""
    charts, tables = [], []
    for scale, outcomes in scales.items():
        if placed := _placed(outcomes):
            charts.append(heat_map(scale, [(_name(g, place), _selected(g, place)) for g, place in placed]))
            tables.append(_weight_table(scale, placed))
    return Chapter(
        "layers", "Weights of the layers (the paper's Figure 2)", [FIGURE_2] if charts else [], tables, charts
    )


def _placed(outcomes: Sequence[Outcome]) -> list[tuple[Group, str]]:
    """The groups that show the weights of all layers, with a place where ELMo enters.

    They are +ELMo as the task's page has it and, for places that it lacks, runs that changed nothing but the place.
    """
    found: dict[tuple[str, str], tuple[Group, str]] = {}
    for outcome in outcomes:
        moved = [g for g in outcome.groups if g.first["arm"] == "elmo" and {*g.first["variant"]} == {"elmo.where"}]
        mains = [outcome.main.treated] if outcome.main else []
        for group in [*mains, *(g for g in moved if g.bilm != "untrained")]:
            for where in group.first["layer_weights"]:
                found.setdefault((outcome.task, where), (group, where))
    return [found[key] for key in sorted(found)]


def _name(group: Group, place: str) -> str:
    return f"{group.first['task']} {place}"


def _selected(group: Group, place: str) -> list[float]:
    """s_j at the selected epochs, means over the seeds."""
    rows = [record["layer_weights"][place][record["epoch"] - 1] for record in group.records]
    return [sum(column) / len(column) for column in zip(*rows, strict=True)]


def _weight_table(scale: str, placed: Sequence[tuple[Group, str]]) -> Table:
    depth = max(len(_selected(group, place)) for group, place in placed)
    header = ("task and place", *(f"s_{j}" for j in range(depth)), "γ")
    rows = [_weight_row(group, place, depth) for group, place in placed]
    return Table(f"Weights of the layers, scale {scale}", "", header, rows, narrow=True)


def _weight_row(group: Group, place: str, depth: int) -> list[str | Number]:
    weights = {record["run"]: record["layer_weights"][place][record["epoch"] - 1] for record in group.records}
    gammas = {record["run"]: record["gamma"][place][record["epoch"] - 1] for record in group.records}
    by_layer = [{run: row[j] for run, row in weights.items() if j < len(row)} for j in range(depth)]
    return [_name(group, place), *(mean_of(group, values, "{:.2f}") for values in (*by_layer, gammas))]


def over_epochs(scales: Scales) -> Chapter:
    """s_j and gamma of +ELMo after every epoch, at every place."""
    groups = [main.treated for mains in compared(scales).values() for main in mains]
    charts = [curves.layers_over_epochs(group, place) for group in groups for place in group.first["layer_weights"]]
    return Chapter("epochs", "Layer weights and γ over epochs", [BY_EPOCH + curves.BAND] if charts else [], [],
                   charts)  # fmt: skip
