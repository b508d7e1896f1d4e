"""Chapters of pictures: parts of the training data, weights of the layers, both over epochs, probing of the layers."""

from __future__ import annotations

from collections.abc import Sequence

from elmo_bench.records.query import rest
from elmo_bench.records.studies import StudyRecord
from elmo_bench.reporting.charts import curves
from elmo_bench.reporting.charts.heat import heat_map
from elmo_bench.reporting.charts.svg import Chart
from elmo_bench.reporting.pages.chapter import Chapter
from elmo_bench.reporting.statistics import scores as statistics
from elmo_bench.reporting.statistics.groups import Group
from elmo_bench.reporting.statistics.outcomes import Outcome, Scales, compared, newest_record

# The paper's Figure 1.

NO_FRACTIONS = (
    "No run on a part of the training data is recorded yet. In a checkout, make figure N=1 TASK=all runs them."
)
FRACTIONS = (
    "Test scores with a part of the training data, which follows from the seed; a smaller part lies in a larger."
)


def fewer_examples(scales: Scales) -> Chapter:
    """The paper's Figure 1: baseline and +ELMo on parts of the training data."""
    found = [(each, arms) for outcomes in scales.values() for each in outcomes if (arms := _by_fraction(each))]
    charts = [curves.fractions(arms, outcome.metric) for outcome, arms in found]
    words = [FRACTIONS, curves.BAND] if found else [NO_FRACTIONS]
    return Chapter("fractions", "Fewer examples (the paper's Figure 1)", words, charts=charts)


def _by_fraction(outcome: Outcome) -> dict[str, list[Group]]:
    """Baseline and +ELMo, each with its groups, of the biLM of the newest runs on a part; nothing without such runs."""
    parts = [group for group in outcome.groups if group.first.fraction != 1]
    if not parts:
        return {}
    newest = max(parts, key=lambda group: (group.first.has_elmo, newest_record(group.records).finished))
    fits = [g for g in outcome.groups if g.first.weights in (None, newest.first.weights)]
    plain = [group for group in fits if not rest(group.first, {"fraction": None})]
    arms = {arm: [group for group in plain if group.first.arm == arm] for arm in ("baseline", "elmo")}
    return {arm: groups for arm, groups in arms.items() if groups}


# The paper's Figure 2.

FIGURE_2 = (
    "The weights s_j of the biLM's layers, which sum to one, at the selected epoch, means over the seeds: layer 0 is "
    "the characters', layers 1 and above are the LSTMs'. Marks as in the paper: lines below an even share (1/3), dots "
    "above twice that."
)
BY_EPOCH = "The weights s_j and the scale γ after every epoch; the thin line is an even share. "


def layer_weights(scales: Scales) -> Chapter:
    """The paper's Figure 2, for each scale."""
    charts = []
    for scale, outcomes in scales.items():
        for source, at_places in {"": _at_places(outcomes), **_of_other_sources(outcomes)}.items():
            rows = [
                (f"{group.first.task} {place}", statistics.mean_weights(group.records, place)[:-1])
                for group, place in at_places
            ]
            charts += [heat_map(scale, rows, source)] if rows else []
    title = "Weights of the layers (the paper's Figure 2)"
    return Chapter("layers", title, [FIGURE_2] if charts else [], charts=charts)


def _at_places(outcomes: Sequence[Outcome]) -> list[tuple[Group, str]]:
    """The groups that show the weights of all layers, with a place where ELMo enters.

    They are +ELMo as the task configures it and, for places that it lacks, runs that changed nothing but the place.
    """
    found: dict[tuple[str, str], tuple[Group, str]] = {}
    for outcome in outcomes:
        moved = [g for g in outcome.groups if g.first.has_elmo and not rest(g.first, {"elmo.where": None})]
        mains = [outcome.main.treated] if outcome.main else []
        for group in [*mains, *moved]:
            for where in group.first.layer_weights:
                found.setdefault((outcome.task, where), (group, where))
    return [found[key] for key in sorted(found)]


def _of_other_sources(outcomes: Sequence[Outcome]) -> dict[str, list[tuple[Group, str]]]:
    """By the name of a source that is no biLM: its groups on the scale's word vectors, and their places."""
    found: dict[str, list[tuple[Group, str]]] = {}
    for group in (group for outcome in outcomes for group in outcome.groups):
        if group.first.has_elmo and not rest(group.first, {"bilm": None}) and not group.first.from_bilm:
            at_places = [(group, place) for place in group.first.layer_weights]
            found.setdefault(str(group.first.bilm_name), []).extend(at_places)
    return found


# Over epochs.


def over_epochs(scales: Scales) -> Chapter:
    """s_j and gamma of +ELMo after every epoch, at every place."""
    groups = [main.treated for mains in compared(scales).values() for main in mains]
    charts = [curves.layers_over_epochs(group, place) for group in groups for place in group.first.layer_weights]
    words = [BY_EPOCH + curves.BAND] if charts else []
    return Chapter("epochs", "Layer weights and γ over epochs", words, charts=charts)


def training(scales: Scales) -> Chapter:
    """The dev score after every epoch."""
    outcomes = [outcome for here in scales.values() for outcome in here if outcome.arms]
    charts = [chart for each in outcomes if (chart := curves.training(each.arms, each.metric)).data["lines"]]
    return Chapter("training", "Training curves", [curves.BAND] if charts else [], charts=charts)


# Tables 5 and 6.


def what_layers_hold(studies: Sequence[StudyRecord]) -> list[Chart]:
    """What Tables 5 and 6 measured on examples, by layer: a picture of all sources for each scale with several."""
    scales: dict[str, dict[str, dict[str, list[float]]]] = {}
    for study in studies:
        panels: dict[str, dict[str, list[float]]] = {}
        for cell in study.cells:
            if cell.layer is not None and cell.minus is None and cell.n and isinstance(cell.value, float):
                lines = panels.setdefault(f"{study.what} ({cell.quantity})", {})
                lines.setdefault(cell.source, []).append(cell.value)
        for what, lines in panels.items():
            scales.setdefault(study.scale, {}).setdefault(what, {}).update(lines)
    return [curves.by_layer(scale, panels) for scale, panels in scales.items() if max(map(len, panels.values())) > 2]
