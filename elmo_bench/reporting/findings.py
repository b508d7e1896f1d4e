"""The findings of the paper, and the evidence for each in the records: a difference, its interval, and a verdict.

Also the page that lists them, results/replication.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import permutations, product, zip_longest
from math import isinf
from statistics import fmean
from typing import NamedTuple

from elmo_bench.configuration import pages
from elmo_bench.configuration.pages import Finding, SweepTable, title
from elmo_bench.records.record import Record
from elmo_bench.records.studies import StudyRecord
from elmo_bench.reporting.gains import (
    SEEDS_AGREE,
    Comparison,
    Group,
    Outcome,
    Pair,
    error_reduction,
    gain,
    holm,
    p_text,
)
from elmo_bench.reporting.intervals import LEVEL, Bounds, Spread, interval_text, smallest
from elmo_bench.reporting.score_tables import Overlaps
from elmo_bench.reporting.section import Number, Section, page, pipes
from elmo_bench.reporting.study_tables import overlaps_of

SHOWN, CONTRADICTED, OPEN, UNTESTED = VERDICTS = ("shown", "contradicted", "not shown", "not tested")
RULE = (
    "One rule decides every row. The finding is *shown* if the whole 95 % interval of the difference agrees with it "
    "(lies above zero, unless the row says otherwise), *contradicted* if the whole interval disagrees, and *not shown* "
    "if the interval contains both, if there is none, or if an arm has one seed. The column then gives the true "
    "difference that such runs would show four times out of five, or how often they would show a difference in the "
    "middle of two bounds. p is below 0.05 exactly if a finding is shown or contradicted. *Not tested*: there are no "
    "such runs. Differences are on test; for updates and perplexity, on dev. Intervals are over seeds and test "
    "examples; for updates and weights, over seeds alone; for the biLM itself, over test examples and the classifier's "
    "seeds (parts of speech), test examples (word senses) or pieces of dev (perplexity). If several biLMs have runs, "
    "intervals are over biLMs, too. A row of *one biLM* leaves that out: another biLM, trained in the same way from "
    "another seed, may give another difference."
)

UNFINISHED = 0.2  # points of dev in two epochs: a run that gains more has not finished


class FindingRow(NamedTuple):
    """A finding at one task and scale.

    Attributes:
        task: its name; empty for a finding on the biLM itself.
        value, spread: the difference, and its standard error with the degrees of freedom; None if unknown.
        verdict: one of `VERDICTS`.
        groups: the compared runs, `more` first; empty for a study.
        unit: the unit of the numbers, such as "points" or "%".
        note: remarks on these runs.
        p: the p of the finding's region, see `Spread.p`; None if nothing is tested.
    """

    task: str = ""
    value: float | None = None
    spread: Spread | None = None
    verdict: str = UNTESTED
    groups: tuple[Group, ...] = ()
    unit: str = "points"
    note: str = ""
    p: float | None = None

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval of the difference."""
        return None if self.value is None or self.spread is None else self.spread.around(self.value)


class Evaluated(NamedTuple):
    """A finding, and its evidence in the records of one scale.

    Attributes:
        scale: the scale of the records.
        command: the command that makes the runs, or the study.
        rows: one per task, in the paper's order.
    """

    finding: Finding
    scale: str
    command: str
    rows: list[FindingRow]


def evaluated(outcomes: Sequence[Outcome], scale: str, studies: Sequence[StudyRecord]) -> list[Evaluated]:
    """Every finding of the tables of conf/sweep/, and of the studies of conf/analysis/, at a scale.

    Args:
        outcomes: the runs of each task at the scale.
    """
    here, found = {each.task: each for each in outcomes}, []
    for sweep in pages.sweeps():
        table, command = pages.table(sweep), f"elmo-bench sweep +sweep={sweep} task=TASK scale={scale}"
        for finding in table.findings:
            rows = [_of_runs(finding, table, task, here.get(task)) for task in pages.in_order(finding.paper)]
            found.append(Evaluated(finding, scale, command, rows))
    read = overlaps_of(studies)
    for study, findings in pages.study_findings().items():
        command = f"elmo-bench {'tune task=all' if study == 'tuning' else f'analysis.{study}'} scale={scale}"
        place = scale, study, pages.written("scale", scale, "bilm") or ""
        listed = [each for each in studies if (each.scale, each.study, each.bilm) == place]
        found += [Evaluated(finding, scale, command, _of_study(finding, listed, read)) for finding in findings]
    return [each._replace(rows=[_with_notes(row, each.finding, each.command) for row in each.rows]) for each in found]


def verdict(low: float, high: float, bounds: Bounds) -> str:
    """The rule: shown if the interval is inside the bounds, contradicted if outside, else not shown."""
    least, most = bounds
    if least < low and high < most:
        return SHOWN
    return CONTRADICTED if high < least or most < low else OPEN


def _of_runs(finding: Finding, table: SweepTable, task: str, outcome: Outcome | None) -> FindingRow:
    settings = (table.setting(titles or finding.more) for titles in (finding.more, finding.less))
    pairs = outcome.pairs(*settings) if outcome else ()
    if not pairs:
        return FindingRow(task)
    measured = {"score": _gain, "error": _gain, "updates": _updates}.get(finding.measure, _weights)
    found = measured(finding, pairs)._replace(task=task)
    if found.verdict == UNTESTED:
        return found
    groups = []  # one for each arm, with the runs of all biLMs; weights need only one arm
    for arm in [*zip(*pairs, strict=True)][: 1 if finding.measure in WEIGHTS else 2]:
        runs = {record.run: record for group in arm for record in group.records}
        groups.append(replace(arm[0], records=[*runs.values()]))
    return _judged(found._replace(groups=tuple(groups)), finding)


def _gain(finding: Finding, pairs: tuple[Pair, ...]) -> FindingRow:
    is_error = finding.measure == "error"
    found = error_reduction(pairs) if is_error else gain(*pairs)
    if found is None:
        return FindingRow(note="the baseline makes no error")
    notes = ["the gain once more, as a share" if is_error else "", found.note]
    notes += [found.carried, found.clusters] if found.carried else []
    note = "; ".join(filter(None, notes))
    return FindingRow("", found.mean, found.spread, OPEN, unit="%" if is_error else "points", note=note)


def _with_notes(row: FindingRow, finding: Finding, command: str) -> FindingRow:
    """The row, with notes on its runs: the user's own data, biLMs, machines, epochs; how to get a missing interval."""
    records = [record for group in row.groups for record in group.records]
    bilms = len({record.bilm_seed for record in records if record.from_bilm and record.has_elmo})
    notes = [row.note, f"over {bilms} biLMs" if bilms > 1 else "one biLM" if bilms else ""]
    if finding.measure not in WEIGHTS:
        kinds = [
            sorted({f"{r.machine.get('accelerator')}, torch {r.versions.get('torch', '').partition('+')[0]}"
                    for r in group.records})
            for group in row.groups
        ]  # fmt: skip
        if len({kind for of_group in kinds for kind in of_group}) > 1:
            notes.append("runs on " + " against runs on ".join(map(" and ".join, kinds)))
        notes.append(_unfinished(row.groups))
    if row.verdict == OPEN and row.value is not None and row.spread is None and not row.groups:
        notes.append(f"no interval in its record: `{command.replace('task=all', f'task={row.task}')}` makes it")
    late = [(sum(run.rises for run in group.records), group) for group in row.groups]
    listed = ", ".join(f"{number} of {len(group.records)} {group.name}" for number, group in late if number)
    notes.append(f"dev best in the last epoch: {listed}" if listed else "")
    own = [f"{key}={name}" for record in records[:1] for key, name in record.own_data.items()]
    return row._replace(note="; ".join(filter(None, [*notes, *own])))


def _judged(row: FindingRow, finding: Finding) -> FindingRow:
    """The row of a difference, with its verdict; not shown if an arm has one seed."""
    if any(len(group.records) < 2 for group in row.groups):
        return row._replace(note="one seed in an arm")
    if row.value is None or row.spread is None:
        return row
    judged = verdict(*row.spread.around(row.value), finding.region)
    return row._replace(verdict=judged, p=row.spread.p(row.value, finding.region))


def _unfinished(groups: Sequence[Group]) -> str:
    """A note if all runs of an arm end at the maximum of epochs while the weaker arm still gains more; else empty."""
    last = [[record.dev_scores for record in group.records] for group in groups]
    gained = [fmean(dev[-1] - dev[-3] for dev in scores) if min(map(len, scores)) > 2 else 0.0 for scores in last]
    caps = ([r.most_epochs == r.epochs for r in group.records] for group in groups)
    if not any(map(all, caps)) or gained[-1] <= max(UNFINISHED, gained[0]):
        return ""
    ends = " and ".join(f"{still:+.2f}" for still in gained)
    return f"all runs of an arm end at the cap of epochs, where dev still gains {ends} in two epochs"


# How many updates ELMo saves (paper, section 5.4). The paper's example is SRL: without ELMo the best dev F1 comes after
# 486 epochs, and with ELMo the tenth epoch exceeds it: 98 % fewer updates. Dev is scored once per epoch, so both
# numbers are known to within an epoch.


def saved(baseline: Record, elmo: Record) -> tuple[float, float] | None:
    """The percentage of a baseline's updates that a run with ELMo of the same seed saves, and that of one epoch.

    The total is the number of updates until the baseline first reaches its best dev score; the run with ELMo is counted
    until it first exceeds this score.

    Returns:
        a negative percentage if more updates were needed; None if the run with ELMo never exceeds the score.
    """
    best, updates = max(baseline.dev_scores), baseline.history["updates"]
    theirs = updates[baseline.dev_scores.index(best)]
    passed = zip(elmo.history["updates"], elmo.dev_scores, strict=True)
    needed = next((number for number, dev in passed if dev > best), None)
    return None if needed is None else (100 * (1 - needed / theirs), 100 * updates[0] / theirs)


def _updates(finding: Finding, pairs: Sequence[Pair]) -> FindingRow:
    """The mean percentage of updates saved, over the runs that pass the best score of their seed's baseline; without an
    interval if some never do."""
    by_bilm = []
    for more, less in pairs:
        elmos = {record.seed: record for record in more.records}
        by_bilm.append([saved(each, elmos[each.seed]) for each in less.records if each.seed in elmos])
    passing = [each for found in by_bilm for each in found if each]
    if never := sum(found.count(None) for found in by_bilm):
        value = fmean(percent for percent, _ in passing) if passing else None
        return FindingRow("", value, None, OPEN, unit="%", note=f"{never} of {never + len(passing)} never passes")
    row = _over_units([[each[:1] for each in found if each] for found in by_bilm], "%")
    if row.spread is None:
        return row
    epoch = fmean(epoch for _, epoch in passing)
    wide = max(row.spread, row.spread._replace(error=row.spread.error * epoch / 2 / row.spread.half))
    return row._replace(spread=wide, note=f"dev is scored once an epoch ({epoch:.1f} %)")


# Differences of weights at the selected epoch; the measure is the smallest.
WEIGHTS = {
    "first_layer": lambda weights: [weights[1] - each for each in [*weights[:1], *weights[2:]]],
    "spread": lambda weights: [one - other for one, other in permutations(weights, 2)],
    "lower_layers": lambda weights: [fmean(weights[:-1]) - weights[-1]],
}


def _weights(finding: Finding, pairs: Sequence[Pair]) -> FindingRow:
    if finding.place not in pairs[0][0].first.layer_weights:
        return FindingRow()
    weights = [[run.layer_weights[finding.place][run.epoch - 1] for run in group.records] for group, _ in pairs]
    if len(weights[0][0]) < 2:
        return FindingRow(note="one layer")
    return _over_units([[WEIGHTS[finding.measure](each) for each in found] for found in weights], "")


def _over_units(values: Sequence[Sequence[Sequence[float]]], unit: str) -> FindingRow:
    """The mean of one value per seed, or the smallest of several means; over biLMs, if there are several."""
    units = [[fmean(column) for column in zip(*found, strict=True)] for found in values if found]
    units = values[0] if len(units) == 1 else units
    if not units:
        return FindingRow(note="no seed in common")
    value, spread = smallest([*zip(*units, strict=True)])
    note = "" if spread else "one seed in common" if len(units) == 1 else SEEDS_AGREE
    return FindingRow("", value, spread, OPEN, unit=unit, note=note)


def _of_study(finding: Finding, studies: Sequence[StudyRecord], read: Overlaps) -> list[FindingRow]:
    """A row for each number of the quantity in each of these studies of one biLM, and for each missing number.

    Several studies of one biLM differ in their settings, and each has a row that names its record.
    """
    rows = []
    for study, task in product(studies, finding.paper):
        for cell in study.find(finding.quantity, task or study.bilm, finding.layer, finding.minus):
            spread, notes = None, [f"one biLM ({study.bilm})", cell.behind]  # the examples behind the number
            if cell.low is not None and cell.high is not None:
                degrees = cell.degrees or max(1, (cell.clusters or 2) - 1)
                spread = Spread((cell.high - cell.low) / 2 / Spread(1.0, degrees).half, degrees)
            if cell.clusters and not cell.degrees:
                notes.append("p with as many degrees of freedom as clusters less one")
            if not cell.behind:  # the figures that it was computed from
                others = [each for each in study.cells if each.source == cell.source and each is not cell]
                notes += [f"{each.quantity} {each.value:.1f} (the paper: {each.paper:g})"
                          for each in others if each.paper is not None]  # fmt: skip
            notes += [*read.get((study.scale, task), []), f"record {study.id}" if len(studies) > 1 else ""]
            row = FindingRow(task, cell.value, spread, OPEN, unit=finding.unit, note="; ".join(filter(None, notes)))
            rows.append(_judged(row, finding))
    missing = [task for task in finding.paper if task not in {row.task for row in rows}]
    return rows + [FindingRow(task, note=finding.untested) for task in missing]


# The page.

TITLE = "The paper's findings"
INTRODUCTION = (
    "Written by `elmo-bench report` from the records; the files in `conf/sweep/` have an entry for each finding. "
    "Scale open is real text with a small biLM, mini a generated language. Neither has the paper's data, so compare "
    "the direction of a difference, not its size."
)
ROWS = ("task", "the paper", "ours", "95 % interval", "p", "verdict", "runs")
JUDGED = SHOWN, CONTRADICTED
MARKS = {SHOWN: "✓", CONTRADICTED: "✗", OPEN: "~", UNTESTED: ""}
LEGEND = (
    f"A cell is the difference on test: {MARKS[SHOWN]} shown, {MARKS[CONTRADICTED]} contradicted, {MARKS[OPEN]} not "
    "shown, – not tested; empty where the paper says nothing. In report.html the paper's figure stands below it, and "
    "it opens to its interval and its runs."
)


def counts(found: Iterable[Evaluated]) -> str:
    """ "12 shown, 3 contradicted, 5 not shown, 20 not tested": how many rows have each verdict."""
    number = Counter(row.verdict for each in found for row in each.rows)
    return ", ".join(f"{number[verdict]} {verdict}" for verdict in VERDICTS)


def families(found: Sequence[Evaluated], mains: Sequence[Comparison]) -> str:
    """The verdicts and main gains of a scale that remain after correction for multiple tests; empty if none are tested.

    Rows by the method of Benjamini and Hochberg (1995), which assumes independence, and by that of Benjamini and
    Yekutieli (2001), which does not; gains by Holm's.
    """
    from scipy.stats import false_discovery_control

    def remaining(kind: str, corrected: Sequence[tuple[str, float]]) -> str:
        lost = [name for name, p in corrected if p >= LEVEL]
        but = f" (not {'; '.join(lost)})" if lost else ""
        return f"{len(corrected) - len(lost)} of {len(corrected)} {kind} remain{but}" if corrected else ""

    tested = [(each.finding.finding, row, row.p) for each in found for row in each.rows if row.p is not None]
    names = [", ".join(filter(None, [finding, row.task and title(row.task)])) for finding, row, _ in tested]
    parts = {}
    for words, method in (
        (f"corrected for the {len(tested)} tested rows (Benjamini-Hochberg), ", "bh"),
        ("by Benjamini-Yekutieli, as rows share runs, ", "by"),
    ):
        corrected = false_discovery_control([p for *_, p in tested], method=method) if tested else []
        named = [(row.verdict, name, p) for (_, row, _), name, p in zip(tested, names, corrected, strict=True)]
        kinds = (remaining(f"{kind} rows", [each[1:] for each in named if each[0] == kind]) for kind in JUDGED)
        parts[words] = " and ".join(filter(None, kinds))
    corrected = holm(mains)
    clear = [each for each in mains if each.test.verdict == "clear"]
    named = [
        (title(each.task) + (f" ({each.changes})" if each.changes else ""), corrected[each.task]) for each in clear
    ]
    parts[f"for the {len(corrected)} main gains of one biLM (Holm), "] = remaining("clear gains", named)
    clauses = [f"{words}{remain}" for words, remain in parts.items() if remain]
    return f"With p {'; '.join(clauses)}." if clauses else ""


def markdown(by_scale: Sequence[Sequence[Evaluated]], mains: Mapping[str, Sequence[Comparison]] | None = None) -> str:
    """The page: the rule, each scale at a glance, then every finding with its runs and its command."""
    parts = [f"# {TITLE}", INTRODUCTION, RULE]
    for found in by_scale:
        table = glance(found)
        corrected = families(found, (mains or {}).get(found[0].scale, []))
        parts += [f"## {table.title}: {counts(found)}", corrected, table.note, pipes(table.header, table.rows)]
    for found in by_scale:
        parts.append(f"# Runs and commands, scale {found[0].scale}")
        for each in found:
            untested = [title(row.task) for row in each.rows if row.verdict == UNTESTED and row.task]
            missing = f"; not recorded: {', '.join(untested)}" if untested else ""
            least, most = each.finding.region
            region = f"above {least:g}" if isinf(most) else f"from {least:g} to {most:g}"
            region = f"below {most:g}" if isinf(least) else region
            about = f"{each.finding.where}; shown by an interval {region}. `{each.command}`"
            rows = [
                (
                    title(row.task) if row.task else "-",
                    each.finding.paper.get(row.task, ""),
                    *_measured(row),
                    p_text(row.p),
                    "; ".join(filter(None, [row.verdict, power(row, each.finding.region), row.note])),
                    runs(row),
                )
                for row in each.rows
            ]
            parts += [f"### {each.finding.finding}", f"{about}{missing}.", pipes(ROWS, rows)]
    return page(*parts)


def glance(found: Sequence[Evaluated]) -> Section:
    """A row for each finding and a column for each task; a finding on the biLM itself has one cell.

    A finding with several numbers for a task, as from two studies of one biLM, has as many rows.
    """
    tasks = {row.task for each in found for row in each.rows}
    columns, rows = [*pages.in_order(tasks - {""}), *({""} & tasks)], []
    for each in found:
        cells = ([_cell(each, row) for row in each.rows if row.task == task] for task in columns)
        for row in zip_longest(*cells, fillvalue=""):
            rows.append((f"{each.finding.finding} ({each.finding.where})", *row))
    header = ("finding", *(title(task) if task else "biLM" for task in columns))
    return Section(f"Scale {found[0].scale}", LEGEND, header, rows, shown=True)


def _cell(each: Evaluated, row: FindingRow) -> Number:
    """The difference, below it the paper's figure, and in its fold the interval, the seeds and the command."""
    difference, ends = _measured(row)
    seeds = " and ".join(str(len(group.records)) for group in row.groups)
    fold = [
        row.verdict,
        f"95 % interval {ends}" if ends else "",
        "" if row.p is None else f"p {p_text(row.p)}",
        f"{seeds} seeds" if seeds else "",
        row.note,
        each.command.replace("task=TASK", f"task={row.task}"),
    ]
    return Number(
        f"{MARKS[row.verdict]} {difference}".strip() or "–",
        [run for group in row.groups for run in group.runs()],
        below=[f"paper: {paper}"] if (paper := each.finding.paper.get(row.task, "")) else [],
        fold=[*filter(None, fold)],
        verdict=row.verdict,
    )


def _measured(row: FindingRow) -> tuple[str, str]:
    """The difference and its interval, "+3.06" and "+1.04 to +5.07"; empty if unknown."""
    form, unit = ("{:+.1f}", " %") if row.unit == "%" else ("{:+.2f}", "")
    return "" if row.value is None else form.format(row.value) + unit, interval_text(row.interval, form)


def power(row: FindingRow, bounds: Bounds) -> str:
    """If a finding is not shown, the true difference that such runs would show, or with two bounds how often they would
    show a difference in the middle."""
    spread, unit, (least, most) = row.spread, row.unit, bounds
    if row.verdict != OPEN or not spread or row.p is None:
        return ""
    if not spread.others and not isinf(most - least):
        often = 100 * spread.power_between(bounds)
        return f"these runs show a true difference of {(least + most) / 2:g} {unit} in {often:.0f} % of cases"
    bound = most if isinf(least) else least
    away = f" from {bound:g}" if bound else ""
    shown = f"{float(f'{spread.least:.2g}'):g} {unit}".rstrip()  # in two digits, never as 1e+01
    return f"these runs show a true difference of {shown}{away} four times out of five"


def runs(row: FindingRow) -> str:
    """Links to the records of the compared runs, one per seed."""
    pairs = ([*zip(group.records, group.runs(), strict=True)] for group in row.groups)
    return " against ".join(", ".join(f"[{record.seed}]({run.href})" for record, run in each) for each in pairs)
