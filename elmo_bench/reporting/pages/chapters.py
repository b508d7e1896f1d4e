"""The chapters of the report's page: the answer first, then the findings, tables and pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from elmo_bench.configuration.tables import in_order
from elmo_bench.records.frame import rest
from elmo_bench.records.record import Record
from elmo_bench.records.studies import StudyRecord
from elmo_bench.records.times import COMPUTING, in_time, typical
from elmo_bench.reporting.charts import charts as draw
from elmo_bench.reporting.charts.svg import Chart
from elmo_bench.reporting.section import Number, Section
from elmo_bench.reporting.statistics import groups as statistics
from elmo_bench.reporting.statistics.findings import RULE, UNTESTED, Evaluated
from elmo_bench.reporting.statistics.gains import READING, Gain, in_words, verdict
from elmo_bench.reporting.statistics.groups import Group
from elmo_bench.reporting.statistics.outcomes import Comparison, Outcome, Scales, compared, newest_record
from elmo_bench.reporting.tables import replication, tables
from elmo_bench.reporting.tables.studies import section


class Chapter(NamedTuple):
    """A part of the page with a line in the list of contents.

    Attributes:
        words: above everything else.
        more: words in a fold: how the numbers are computed.
    """

    anchor: str
    title: str
    words: Sequence[str]
    tables: Sequence[Section] = ()
    charts: Sequence[Chart] = ()
    more: Sequence[str] = ()


SPEAKS = "answer", "fractions"  # also without tables and charts
SWEPT = "Mean ± sample standard deviation over the seeds, whose number stands in brackets."
PERCENT = (
    "Percent, mean ± sample standard deviation over the seeds; dev is that of the selected epoch. "
    "The seeds of a row open to its runs."
)


def chapters(
    scales: Scales,
    swept: Sequence[Section] = (),
    studies: Sequence[StudyRecord] = (),
    findings: Sequence[Sequence[Evaluated]] = (),
    of_tasks: Sequence[Sequence[Section]] = (),
) -> list[Chapter]:
    """The chapters of the page, the answer and the findings first; those without content are left out.

    `of_tasks` has of every task and scale the scores and, if something is compared, the gains.
    """
    scored, gained = ([table for each in of_tasks for table in each[part]] for part in (slice(1), slice(1, None)))
    chapters = [
        answer(scales),
        _findings(findings, compared(scales)),
        Chapter("gains", "Gains with intervals", [], gained, more=[READING]),
        Chapter("sweeps", "The paper's tables, and other sweeps", [SWEPT], swept),
        fewer_examples(scales),
        layer_weights(scales),
        over_epochs(scales),
        training(scales),
        Chapter("scores", "Scores", [PERCENT], scored),
        cost(scales),
        Chapter("studies", "Studies of the biLM", [], [*map(section, studies)], what_layers_hold(studies)),
    ]
    full = (each._replace(tables=[table for table in each.tables if not table.is_empty]) for each in chapters)
    return [each for each in full if each.tables or each.charts or each.anchor in SPEAKS]


def _findings(by_scale: Sequence[Sequence[Evaluated]], mains: Mapping[str, Sequence[Comparison]]) -> Chapter:
    """Each finding of the paper, ours, and a verdict; the numbers open to the runs behind them."""
    corrected = ((found[0].scale, replication.families(found, mains.get(found[0].scale, []))) for found in by_scale)
    families = (said and f"Scale {scale}. {said}" for scale, said in corrected)
    tested = [[each for each in found if any(row.verdict != UNTESTED for row in each.rows)] for found in by_scale]
    pictured = [replication.glance(found)._replace(shown=True) for found in tested if found]
    return Chapter(
        "findings",
        replication.TITLE,
        [f"Scale {found[0].scale}: {replication.counts(found)}." for found in by_scale],
        [*pictured, *map(_untested, by_scale)],
        more=[RULE.replace("*", ""), *said] if (said := [*filter(None, families)]) else [],
    )


def _untested(found: Sequence[Evaluated]) -> Section:
    """The findings of a scale of which no run speaks yet, with the paper's figures and the command that tests them."""
    rows = [
        (
            f"{each.finding.finding} ({each.finding.where})",
            "; ".join(f"{task or 'biLM'} {said}" for task, said in each.finding.paper.items()),
            each.command,
        )
        for each in found
        if all(row.verdict == UNTESTED for row in each.rows)
    ]
    return Section(f"Scale {found[0].scale}: not tested", "", ("finding", "the paper", "command"), rows)


# The first screen: does ELMo help, where, and how sure is that?

NOTE = (
    "Gain of +ELMo over the baseline on test, in points, with its 95 % interval; below it the two scores. "
    "Both arms have the same word vectors, pre-trained as in the paper. "
    "Clear: the interval is above zero. A number opens to the runs behind it."
)


def answer(scales: Scales) -> Chapter:
    """A few sentences and a picture for each scale, and in a fold one table of all tasks."""
    found = compared(scales)
    lacking = [f"Scale {scale}. {line}" for scale, here in scales.items() for line in tables.not_recorded(here)]
    title = "Does ELMo help, where, and how sure is that?"
    if not found:
        return Chapter("answer", title, ["No task has recorded runs with and without ELMo.", *lacking])
    tasks = in_order({main.task for mains in found.values() for main in mains})
    header = ("task", *(f"scale {scale}" for scale in found), "the paper")
    table = Section("The gains as a table", NOTE, header, [_gain_row(task, found) for task in tasks], narrow=True)
    words = [*(_sentences(scale, mains) for scale, mains in found.items()), *lacking]
    charts = [
        draw.forest(f"gains-{scale}", f"Gains with 95 % intervals, scale {scale}", {scale: mains})
        for scale, mains in found.items()
    ]
    return Chapter("answer", title, words, [table], charts)


def _sentences(scale: str, mains: Sequence[Comparison]) -> str:
    by_gain = sorted(mains, key=lambda each: each.test.mean)
    least, most = by_gain[0], by_gain[-1]
    higher = sum(each.test.mean > 0 for each in mains)
    by_verdict = {key: [each.title for each in mains if verdict(each.test) == key] for key in MEANING}
    lowest, highest = (f"{each.test.mean:+.2f}" for each in (least, most))
    spread = f"{lowest} ({least.title}) to {highest} points ({most.title})"
    if lowest == highest:
        spread = f"{highest} points ({', '.join(each.title for each in mains)})"
    parts = [
        f"Scale {scale}: +ELMo scores higher than the baseline on {higher} of {len(mains)} "
        f"{'task; the gain is' if len(mains) == 1 else 'tasks; the gains are'} {spread}.",
        *(f"{MEANING[key]}: {', '.join(tasks)}." for key, tasks in by_verdict.items() if tasks),
        *tables.context_in_words(mains),
    ]
    return " ".join(parts)


MEANING = {
    "clear": "The 95 % interval is above zero for",
    "not shown": "The 95 % interval includes zero for",
    "worse": "The 95 % interval is below zero for",
    "one seed": "One seed, which says nothing about other seeds",
    "no interval": "Without an interval",
}


def interval(gain: Gain) -> str:
    """The 95 % interval, as "+2.67 to +7.96"; empty where there is none, or its ends are one value."""
    ends = [f"{end:+.2f}" for end in gain.interval or ()]
    return " to ".join(ends) if len({*ends}) > 1 else ""


def _gain_row(task: str, scales: Mapping[str, Sequence[Comparison]]) -> tuple[str, ...]:
    mains = [next((main for main in mains if main.task == task), None) for mains in scales.values()]
    paper = next(statistics.gain_of_paper(main.treated.first) for main in mains if main)
    return task, *(_gain_cell(main) if main else "" for main in mains), "" if paper is None else f"{paper:+.2f}"


def _gain_cell(main: Comparison) -> Number:
    metric = main.treated.first.monitor
    before, after = (statistics.score(g.records, "test", metric)[0] for g in (main.control, main.treated))
    seeds, sure = min(main.test.seeds), verdict(main.test)
    lines = [
        f"{interval(main.test)}, {sure}".removeprefix(", "),
        f"{before:.2f} → {after:.2f}" + (f", {seeds} seeds" if seeds > 1 else ""),
        main.context and f"{tables.CONTEXT} {in_words(main.context)}",
        main.changes,
    ]
    return Number(f"{main.test.mean:+.2f}", statistics.runs_of(main.treated, main.control), tuple(filter(None, lines)))


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
    charts = [draw.fractions(arms, outcome.metric) for outcome, arms in found]
    words = [FRACTIONS, draw.BAND] if found else [NO_FRACTIONS]
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
            charts += [draw.heat_map(scale, rows, source)] if rows else []
    title = "Weights of the layers (the paper's Figure 2)"
    return Chapter("layers", title, [FIGURE_2], charts=charts)


def _at_places(outcomes: Sequence[Outcome]) -> list[tuple[Group, str]]:
    """The groups that show the weights of all layers, with a place where ELMo enters.

    They are +ELMo as the task configures it and, for places that it lacks, runs that changed nothing but the place.
    """
    at_places = []
    for outcome in outcomes:
        found: dict[str, Group] = {}
        moved = [g for g in outcome.groups if g.first.has_elmo and not rest(g.first, {"elmo.where": None})]
        mains = [outcome.main.treated] if outcome.main else []
        for group in [*mains, *moved]:
            for where in group.first.layer_weights:
                found.setdefault(where, group)
        at_places += [(found[where], where) for where in sorted(found)]
    return at_places


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
    charts = [draw.layers_over_epochs(group, place) for group in groups for place in group.first.layer_weights]
    return Chapter("epochs", "Layer weights and γ over epochs", [BY_EPOCH + draw.BAND], charts=charts)


def training(scales: Scales) -> Chapter:
    """The dev score after every epoch."""
    outcomes = [outcome for here in scales.values() for outcome in here if outcome.arms]
    charts = [chart for each in outcomes if (chart := draw.training(each.arms, each.metric)).data["lines"]]
    return Chapter("training", "Training curves", [draw.BAND], charts=charts)


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
    return [draw.by_layer(scale, panels) for scale, panels in scales.items() if max(map(len, panels.values())) > 2]


# Time, speed, memory and machine of every arm.

COST = ("arm", "seeds", "computing a run", "tokens a second", "peak memory", "parameters", "device")
COLUMNS = {"tokens_per_second": "{:,.0f}", "peak_memory_mib": "{:,.0f} MiB", "parameters": "{:,.0f}"}
WORDS = f"Means over the seeds, of arms without variants. A time opens to its runs. {COMPUTING}"


def cost(scales: Scales) -> Chapter:
    """The hours of every scale, and a table for each task at it."""
    words = [*(_total(scale, outcomes) for scale, outcomes in scales.items()), WORDS]
    tables_of = [
        Section(
            f"{outcome.task}, scale {scale}", "", COST, [_cost_row(g) for g in outcome.groups if not g.first.variant]
        )
        for scale, outcomes in scales.items()
        for outcome in outcomes
    ]
    return Chapter("cost", "Cost", words, tables_of)


def _total(scale: str, outcomes: Sequence[Outcome]) -> str:
    records = [record for outcome in outcomes for record in outcome.records]
    took = in_time(sum(record.device_seconds for record in records))
    dirty = sum(bool(record.dirty) for record in records)
    changed = f" {dirty} of them: code with uncommitted changes." if dirty else ""
    return f"Scale {scale}: {len(records)} recorded runs took {took} of computing together.{changed}"


def _cost_row(group: Group) -> tuple[str, ...]:
    others = (statistics.mean_in_words(group.records, key, text) for key, text in COLUMNS.items())
    seeds = statistics.ranges([record.seed for record in group.records])
    time = Number(
        in_time(typical(group.records)),
        [statistics.linked(each, in_time(each.device_seconds)) for each in group.records],
    )
    return group.name, seeds, time, *others, "; ".join(sorted({*map(_device, group.records)}))


def _device(record: Record) -> str:
    machine = record.machine
    name = machine.get("gpu") or machine["cpu"]
    return f"{name}, {machine['accelerator']}, {machine['threads']} of {machine['cores']} cores"
