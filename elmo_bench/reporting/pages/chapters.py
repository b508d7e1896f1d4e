"""The chapters of the report's page: the answer first, then the findings, tables and pictures."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from elmo_bench.configuration.tables import in_order
from elmo_bench.records.studies import StudyRecord
from elmo_bench.records.times import COMPUTING, in_time, typical
from elmo_bench.reporting import charts as draw
from elmo_bench.reporting.section import Number, Section
from elmo_bench.reporting.statistics import groups as statistics
from elmo_bench.reporting.statistics.findings import RULE, UNTESTED, Evaluated
from elmo_bench.reporting.statistics.gains import READING, Gain, in_words, verdict
from elmo_bench.reporting.statistics.groups import Group
from elmo_bench.reporting.statistics.outcomes import Comparison, Scales, compared
from elmo_bench.reporting.tables import replication, tables
from elmo_bench.reporting.tables.tables import of_study as section


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
    charts: Sequence[draw.Chart] = ()
    more: Sequence[str] = ()


BY_EPOCH = f"The weights s_j, which begin at an even share, and the scale γ after every epoch. {draw.BAND}"
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
    beside: Sequence[Section] = (),
    pictures: Collection[tuple[str, draw.Chart]] = (),
) -> list[Chapter]:
    """The chapters of the page, the answer and the findings first; those without content are left out.

    Args:
        scales, findings: of each scale its tasks and the paper's findings.
        swept: the tables of sweeps.
        of_tasks: of every task and scale the scores and, if something is compared, the gains.
        beside: a user's own runs beside the reference runs.
        pictures: the paper's figures, with the names of `charts.pictures`.
    """
    found = compared(scales)
    over_epochs = [
        draw.of_layers(main.treated, place)
        for mains in found.values()
        for main in mains
        for place in main.treated.first.layer_weights
    ]
    training = [draw.training(each.arms, each.metric) for here in scales.values() for each in here if each.arms]
    chapters = [
        answer(scales),
        Chapter("beside", "Your runs, the reference runs and the paper", [], beside),
        _findings(findings, found),
        Chapter("gains", "Gains with intervals", [], [one for _, *gains in of_tasks for one in gains], more=[READING]),
        Chapter("sweeps", "The paper's tables, and other sweeps", [SWEPT], swept),
        fewer_examples(scales, pictures),
        layer_weights(scales),
        Chapter("epochs", "Layer weights and γ over epochs", [BY_EPOCH], charts=over_epochs),
        Chapter("training", "Training curves", [draw.BAND], charts=[each for each in training if len(each.data)]),
        Chapter("scores", "Scores", [PERCENT], [scores for scores, *_ in of_tasks]),
        cost(scales),
        Chapter("studies", "Studies of the biLM", [], [*map(section, studies)], what_layers_hold(studies)),
    ]
    full = (each._replace(tables=[table for table in each.tables if not table.is_empty]) for each in chapters)
    return [each for each in full if each.tables or each.charts or each.anchor in ("answer", "fractions")]


def _findings(by_scale: Sequence[Sequence[Evaluated]], mains: Mapping[str, Sequence[Comparison]]) -> Chapter:
    """Each finding of the paper, ours, and a verdict; the numbers open to the runs behind them.

    Those of which no run speaks yet stand apart, with the command that tests them.
    """
    words, pictured, lacking, families = [], [], [], []
    for found in by_scale:
        scale = found[0].scale
        words.append(f"Scale {scale}: {replication.counts(found)}.")
        if corrected := replication.families(found, mains.get(scale, [])):
            families.append(f"Scale {scale}. {corrected}")
        untested = [each for each in found if all(row.verdict == UNTESTED for row in each.rows)]
        if len(untested) < len(found):
            pictured.append(replication.glance([each for each in found if each not in untested]))
        rows = [
            (
                f"{each.finding.finding} ({each.finding.where})",
                "; ".join(f"{task or 'biLM'} {said}".strip() for task, said in each.finding.paper.items()),
                each.command,
            )
            for each in untested
        ]
        lacking.append(Section(f"Scale {scale}: not tested", "", ("finding", "the paper", "command"), rows))
    more = [RULE.replace("*", ""), *families] if families else []
    return Chapter("findings", replication.TITLE, words, [*pictured, *lacking], more=more)


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
    cells: dict[str, dict[str, str]] = {}
    for scale, mains in found.items():
        for main in mains:
            paper = statistics.gain_of_paper(main.treated.first)
            of_task = cells.setdefault(main.task, {"the paper": "" if paper is None else f"{paper:+.2f}"})
            of_task[f"scale {scale}"] = _gain_cell(main)
    header = "task", *(f"scale {scale}" for scale in found), "the paper"
    rows = [(task, *(cells[task].get(column, "") for column in header[1:])) for task in in_order(cells)]
    table = Section("The gains as a table", NOTE, header, rows, narrow=True)
    words = [_sentences(*each) for each in found.items()] or ["No task has recorded runs with and without ELMo."]
    charts = [draw.gains(f"Gains with 95 % intervals, scale {scale}", {scale: mains}) for scale, mains in found.items()]
    return Chapter("answer", "Does ELMo help, where, and how sure is that?", [*words, *lacking], [table], charts)


def _sentences(scale: str, mains: Sequence[Comparison]) -> str:
    by_gain = sorted(mains, key=lambda each: each.test.mean)
    lowest, *_, highest = 2 * [f"{each.test.mean:+.2f}" for each in by_gain]
    higher = sum(each.test.mean > 0 for each in mains)
    by_verdict = {key: [each.title for each in mains if verdict(each.test) == key] for key in MEANING}
    spread = f"{lowest} ({by_gain[0].title}) to {highest} points ({by_gain[-1].title})"
    if lowest == highest:
        spread = f"{highest} points ({', '.join(each.title for each in mains)})"
    return " ".join([
        f"Scale {scale}: +ELMo scores higher than the baseline on {higher} of {len(mains)} "
        f"{'task; the gain is' if len(mains) == 1 else 'tasks; the gains are'} {spread}.",
        *(f"{MEANING[key]}: {', '.join(tasks)}." for key, tasks in by_verdict.items() if tasks),
        *tables.context_in_words(mains),
    ])  # fmt: skip


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

FRACTIONS = (
    "Scores with a part of the training data, which follows from the seed; a smaller part lies in a larger. Dots are "
    "means over the seeds; bars are their 95 % intervals, over seeds and examples."
)
NO_FRACTIONS = (
    "No run on a part of the training data is recorded yet. In a checkout, make figure N=1 TASK=all runs them."
)


def fewer_examples(scales: Scales, pictures: Collection[tuple[str, draw.Chart]]) -> Chapter:
    """The paper's Figure 1: baseline and +ELMo on parts of the training data."""
    charts = [chart for scale in scales for name, chart in pictures if name.startswith(f"figures/figure1.{scale}.")]
    words = [FRACTIONS if charts else NO_FRACTIONS]
    return Chapter("fractions", "Fewer examples (the paper's Figure 1)", words, (), charts)


# The paper's Figure 2.

FIGURE_2 = (
    "The weights s_j of the biLM's layers, which sum to one, at the selected epoch, means over the seeds: layer 0 is "
    "the characters', layers 1 and above are the LSTMs'. The paper hatches weights below an even share (▼: below 1/3) "
    "and speckles those above twice that (▲)."
)


def layer_weights(scales: Scales) -> Chapter:
    """The paper's Figure 2, for each scale.

    It shows +ELMo as the task configures it, for places that it lacks runs that changed nothing but the place, and
    apart from these each source of layers that is no biLM, on the scale's word vectors.
    """
    charts = []
    for scale, outcomes in scales.items():
        shown: dict[str, dict[str, list[float]]] = {}  # by source
        for outcome in outcomes:
            for group in [*([outcome.main.treated] if outcome.main else []), *outcome.groups]:
                run = group.first
                source = "" if run.from_bilm or run.variant.keys() - {"bilm"} else f" of {run.bilm_name}"
                if run.has_elmo and (source or not run.variant.keys() - {"elmo.where"}):
                    for place in run.layer_weights:
                        weights = statistics.mean_weights(group.records, place)[:-1]
                        shown.setdefault(source, {}).setdefault(f"{run.task} {place}", weights)
        for source, rows in sorted(shown.items()):
            charts.append(draw.weights(f"Weights of the layers{source}, scale {scale}", rows))
    return Chapter("layers", "Weights of the layers (the paper's Figure 2)", [FIGURE_2], charts=charts)


# Tables 5 and 6.


def what_layers_hold(studies: Sequence[StudyRecord]) -> list[draw.Chart]:
    """What Tables 5 and 6 measured on examples, by layer: a picture for each scale and measure with several sources."""
    measured: dict[tuple[str, str], list[tuple]] = {}
    for study in studies:
        for cell in study.cells:
            if cell.layer is not None and cell.minus is None and cell.n and isinstance(cell.value, float):
                row = cell.source, cell.layer, cell.value, cell.low, cell.high
                measured.setdefault((study.scale, f"{study.what} ({cell.quantity})"), []).append(row)
    return [
        draw.curves(f"What each layer holds, scale {scale}: {what}", "layer", what, dict.fromkeys(rows), points=True)
        for (scale, what), rows in measured.items()
        if len({source for source, *_ in rows}) > 2
    ]


# Time, speed, memory and machine of every arm.

COST = ("arm", "seeds", "computing a run", "tokens a second", "peak memory", "parameters", "device")
COLUMNS = {"tokens_per_second": "{:,.0f}", "peak_memory_mib": "{:,.0f} MiB", "parameters": "{:,.0f}"}
WORDS = f"Means over the seeds, of arms without variants. A time opens to its runs. {COMPUTING}"


def cost(scales: Scales) -> Chapter:
    """The hours of every scale, and a table for each task at it."""
    words, tables_of = [], []
    for scale, outcomes in scales.items():
        records = [record for outcome in outcomes for record in outcome.records]
        took = in_time(sum(record.device_seconds for record in records))
        dirty = sum(bool(record.dirty) for record in records)
        changed = f" {dirty} of them: code with uncommitted changes." if dirty else ""
        words.append(f"Scale {scale}: {len(records)} recorded runs took {took} of computing together.{changed}")
        for outcome in outcomes:
            rows = [_cost_row(group) for group in outcome.groups if not group.first.variant]
            tables_of.append(Section(f"{outcome.task}, scale {scale}", "", COST, rows))
    return Chapter("cost", "Cost", [*words, WORDS], tables_of)


def _cost_row(group: Group) -> tuple[str, ...]:
    others = (statistics.mean_in_words(group.records, key, text) for key, text in COLUMNS.items())
    seeds = statistics.ranges([record.seed for record in group.records])
    time = Number(
        in_time(typical(group.records)),
        [statistics.linked(each, in_time(each.device_seconds)) for each in group.records],
    )
    devices = {
        f"{each.get('gpu') or each['cpu']}, {each['accelerator']}, {each['threads']} of {each['cores']} cores"
        for each in (record.machine for record in group.records)
    }
    return group.name, seeds, time, *others, "; ".join(sorted(devices))
