"""What the records say of each finding of the paper: a difference with its interval, and a verdict by one rule."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import permutations, product
from statistics import fmean
from typing import NamedTuple

from elmo_bench.configuration import pages, tables
from elmo_bench.configuration.tables import Finding, SweepTable
from elmo_bench.records.record import Record
from elmo_bench.records.studies import StudyCell, StudyRecord
from elmo_bench.reporting.statistics.gains import (
    LARGE,
    SEEDS_AGREE,
    Pair,
    error_reduction,
    influence_in_words,
    over_bilms,
)  # fmt: skip
from elmo_bench.reporting.statistics.groups import Group
from elmo_bench.reporting.statistics.intervals import Bounds, Spread
from elmo_bench.reporting.statistics.outcomes import Outcome

SHOWN, CONTRADICTED, OPEN, UNTESTED = VERDICTS = ("shown", "contradicted", "not shown", "not tested")
RULE = (
    "One rule decides every row. The finding is *shown* where the whole 95 % interval of the difference lies where the "
    "finding says (above zero, if nothing else is written), *contradicted* where it lies elsewhere, "
    "and *not shown* where the interval holds both, where there is none, or where an arm has one seed; the column then "
    "says how large a true difference these runs show four times out of five, or how often they show one in the middle "
    "of two bounds. p is below 0.05 exactly where a finding is shown or contradicted. *Not tested*: there are no such "
    "runs. Differences are on test, those of updates and perplexity on dev. Intervals are over seeds and over test "
    "examples; those of updates and of weights are over seeds alone; of the biLM itself, those of parts of speech and "
    "word senses are over test examples (and the classifier's seeds), those of perplexity over pieces of dev. Where "
    "several biLMs have runs, all are over biLMs, too. A row of *one biLM* leaves that out: another biLM, trained the "
    "same way from another seed, may give another difference, and at scale mini some have another sign."
)

STILL = 0.2  # points of dev in two epochs: what gains so much has not finished


class FindingRow(NamedTuple):
    """A finding at one task and scale.

    Attributes:
        task: its name; empty for a finding on the biLM itself.
        value, spread: the difference, and its standard error with the degrees of freedom; None where not known.
        verdict: one of `VERDICTS`.
        groups: the compared runs, `more` first; empty for a study.
        unit: what the numbers count, as "points" or "%".
        note: what a reader must know of these runs.
        p: of the region that the finding says, see `Spread.p`; None where nothing is tested.
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
    """A finding, and what the records of one scale say of it.

    Attributes:
        finding: its words.
        scale: of the records.
        command: what makes the runs, or the study.
        rows: one a task, in the paper's order.
    """

    finding: Finding
    scale: str
    command: str
    rows: list[FindingRow]


def evaluated(outcomes: Sequence[Outcome], scale: str, studies: Sequence[StudyRecord]) -> list[Evaluated]:
    """Every finding of the tables of conf/sweep/, and of the studies of conf/analysis/, at a scale.

    Args:
        outcomes: the runs of each task at the scale.

    Raises:
        UserError: an entry that is not right.
    """
    here, found = {each.task: each for each in outcomes}, []
    for sweep in tables.sweeps():
        table, command = tables.table(sweep), f"elmo-bench sweep +sweep={sweep} task=TASK scale={scale}"
        for finding in table.findings:
            rows = [_row(finding, table, task, here.get(task)) for task in tables.in_order(finding.paper)]
            found.append(Evaluated(finding, scale, command, [_told(row, finding, command) for row in rows]))
    for study, findings in tables.study_findings().items():
        command = f"elmo-bench {'tune task=all' if study == 'tuning' else f'analysis.{study}'} scale={scale}"
        place = scale, study, pages.written("scale", scale, "bilm") or ""
        listed = [each for each in studies if (each.scale, each.study, each.bilm) == place]
        for finding in findings:
            rows = [_told(row, finding, command) for row in _of_study(finding, listed)]
            found.append(Evaluated(finding, scale, command, rows))
    return found


def verdict(low: float, high: float, bounds: Bounds) -> str:
    """The rule: shown if the interval lies inside the bounds, contradicted if outside, else not shown."""
    least, most = bounds
    if least < low and high < most:
        return SHOWN
    return CONTRADICTED if high < least or most < low else OPEN


def _row(finding: Finding, table: SweepTable, task: str, outcome: Outcome | None) -> FindingRow:
    settings = (table.setting(titles or finding.more) for titles in (finding.more, finding.less))
    pairs = outcome.pairs(*settings) if outcome else ()
    if not pairs:
        return FindingRow(task)
    measured = {"score": _gain, "error": _gain, "updates": _updates}.get(finding.measure, _weights)
    found = measured(finding, pairs)._replace(task=task)
    if found.verdict == UNTESTED:
        return found
    groups = []  # of each arm one, with the runs of all biLMs; weights are of one arm alone
    for arm in [*zip(*pairs, strict=True)][: 1 if finding.measure in WEIGHTS else 2]:
        runs = {record.run: record for group in arm for record in group.records}
        groups.append(replace(arm[0], records=[*runs.values()]))
    return _judged(found._replace(groups=tuple(groups)), finding)


def _gain(finding: Finding, pairs: tuple[Pair, ...]) -> FindingRow:
    is_error = finding.measure == "error"
    found = error_reduction(pairs) if is_error else over_bilms(pairs)
    if found is None:
        return FindingRow(note="the baseline makes no error")
    said = ["the gain once more, as a share" if is_error else "", found.note]
    if not is_error and found.influence and found.influence.share > LARGE:
        said += [influence_in_words(found.influence), found.clusters]
    unit, note = "%" if is_error else "points", "; ".join(filter(None, said))
    return FindingRow("", found.mean, found.spread, OPEN, unit=unit, note=note)


def _told(row: FindingRow, finding: Finding, command: str) -> FindingRow:
    """The row, with what a reader must know of its runs: user's own data, biLMs, machines, epochs; how to get a lacking
    interval."""
    records = [record for group in row.groups for record in group.records]
    bilms = len({record.bilm_seed for record in records if record.from_bilm and record.has_elmo})
    told = [row.note, f"over {bilms} biLMs" if bilms > 1 else "one biLM" if bilms else ""]
    if finding.measure not in WEIGHTS:
        kinds = [
            sorted({f"{r.machine.get('accelerator')}, torch {r.versions.get('torch', '').partition('+')[0]}"
                    for r in group.records})
            for group in row.groups
        ]  # fmt: skip
        if len({kind for of_group in kinds for kind in of_group}) > 1:
            told.append("runs on " + " against runs on ".join(map(" and ".join, kinds)))
        told.append(unfinished(row.groups))
    if row.verdict == OPEN and row.value is not None and row.spread is None and not row.groups:
        told.append(f"no interval in its record: `{command.replace('task=all', f'task={row.task}')}` makes it")
    late = [(sum(run.rises for run in group.records), group) for group in row.groups]
    listed = ", ".join(f"{number} of {len(group.records)} {group.name}" for number, group in late if number)
    told.append(f"dev best in the last epoch: {listed}" if listed else "")
    own = [f"{key}={name}" for record in records[:1] for key, name in record.own_data.items()]
    return row._replace(note="; ".join(filter(None, [*told, *own])))


def _judged(row: FindingRow, finding: Finding) -> FindingRow:
    """The row of a difference, with its verdict; not shown where an arm has one seed."""
    if any(len(group.records) < 2 for group in row.groups):
        return row._replace(note="one seed in an arm")
    if row.value is None or row.spread is None:
        return row
    judged = verdict(*row.spread.around(row.value), finding.bounds)
    return row._replace(verdict=judged, p=row.spread.p(row.value, finding.bounds))


# How many updates ELMo saves (paper, section 5.4). The paper's example is SRL: without ELMo the best dev F1 comes after
# 486 epochs, and with ELMo the tenth epoch exceeds it: 98 % fewer updates. Dev is scored once an epoch, so that both
# numbers are known to an epoch.


class Saved(NamedTuple):
    """The percentage of a baseline's updates that a run saves, and what share of them an epoch is, in percent."""

    percent: float
    epoch: float


def unfinished(groups: Sequence[Group]) -> str:
    """That all runs of an arm end at the cap of epochs, and the lesser arm still gains more; else empty."""
    last = [[record.dev_scores for record in group.records] for group in groups]
    gained = [fmean(dev[-1] - dev[-3] for dev in scores) if min(map(len, scores)) > 2 else 0.0 for scores in last]
    capped = any(
        all(r.epochs == r.config["task"].get("fit", {}).get("epochs") for r in group.records) for group in groups
    )
    if not capped or gained[-1] <= max(STILL, gained[0]):
        return ""
    ends = " and ".join(f"{still:+.2f}" for still in gained)
    return f"all runs of an arm end at the cap of epochs, where dev still gains {ends} in two epochs"


def saved(baseline: Record, elmo: Record) -> Saved | None:
    """The percentage of a baseline's updates that a run with ELMo of the same seed saves.

    It is of the updates until the baseline's best dev score: until the baseline first has it, and until the run with
    ELMo first exceeds it.

    Returns:
        a negative percentage if more updates were needed; None if the run with ELMo never exceeds the score.
    """
    best, updates = max(baseline.dev_scores), baseline.history["updates"]
    theirs = updates[baseline.dev_scores.index(best)]
    passed = zip(elmo.history["updates"], elmo.dev_scores, strict=True)
    needed = next((number for number, dev in passed if dev > best), None)
    return None if needed is None else Saved(100 * (1 - needed / theirs), 100 * updates[0] / theirs)


def savings(baselines: Iterable[Record], elmos: Iterable[Record]) -> list[Saved | None]:
    """`saved` of the seeds that both groups of runs have, in their order."""
    by_seed = {record.seed: record for record in elmos}
    return [saved(record, by_seed[record.seed]) for record in baselines if record.seed in by_seed]


def _updates(finding: Finding, pairs: Sequence[Pair]) -> FindingRow:
    """The mean percentage of updates saved, of the runs that pass the baseline's best; without an interval if some
    never do."""
    by_bilm = [savings(less.records, more.records) for more, less in pairs]
    passing = [each for of_it in by_bilm for each in of_it if each]
    if never := sum(of_it.count(None) for of_it in by_bilm):
        value = fmean(each.percent for each in passing) if passing else None
        return FindingRow("", value, None, OPEN, unit="%", note=f"{never} of {never + len(passing)} never passes")
    row = _over_units([[[each.percent] for each in of_it if each] for of_it in by_bilm], "%")
    if row.spread is None:
        return row
    epoch = fmean(each.epoch for each in passing)
    wide = max(row.spread, row.spread._replace(error=row.spread.error * epoch / 2 / row.spread.half))
    return row._replace(spread=wide, note=f"dev is scored once an epoch ({epoch:.1f} %)")


# Of weights at the selected epoch, the differences whose smallest is the measure.
WEIGHTS = {
    "first_layer": lambda weights: [weights[1] - each for each in [*weights[:1], *weights[2:]]],
    "spread": lambda weights: [one - other for one, other in permutations(weights, 2)],
    "lower_layers": lambda weights: [fmean(weights[:-1]) - weights[-1]],
}


def _weights(finding: Finding, pairs: Sequence[Pair]) -> FindingRow:
    if finding.place not in pairs[0][0].first.layer_weights:
        return FindingRow()
    weights = [[record.weights_at(finding.place) for record in group.records] for group, _ in pairs]
    if len(weights[0][0]) < 2:
        return FindingRow(note="one layer")
    return _over_units([[WEIGHTS[finding.measure](each) for each in of_bilm] for of_bilm in weights], "")


def _over_units(values: Sequence[Sequence[Sequence[float]]], unit: str) -> FindingRow:
    """The mean of one value a seed, or the smallest of the means of several; over biLMs, of which each has values."""
    units = [[fmean(column) for column in zip(*of_bilm, strict=True)] for of_bilm in values if of_bilm]
    units = values[0] if len(units) == 1 else units
    if not units:
        return FindingRow(note="no seed in common")
    parts = [(fmean(column), Spread.of_values(column)) for column in zip(*units, strict=True)]
    (value, first), *others = sorted((mean, each or Spread(0.0, len(units) - 1)) for mean, each in parts)
    spread = first._replace(others=tuple(others)) if any(each for _, each in parts) else None
    note = "" if spread else "one seed in common" if len(units) == 1 else SEEDS_AGREE
    return FindingRow("", value, spread, OPEN, unit=unit, note=note)


# Studies of the biLM.


def _of_study(finding: Finding, studies: Sequence[StudyRecord]) -> list[FindingRow]:
    """A row for each number of the quantity in each of these studies of one biLM, and for each that is lacking.

    Several studies of one biLM differ in their settings, and each has a row that names its record.
    """
    rows = []
    for study, task in product(studies, finding.paper):
        for cell in study.find(finding.quantity, task or study.bilm, finding.layer, finding.minus):
            note, spread = _said(study, cell, several=len(studies) > 1), None
            if cell.low is not None and cell.high is not None:
                spread = Spread.of_interval(cell.low, cell.high, cell.degrees or max(1, (cell.clusters or 2) - 1))
            row = FindingRow(task, cell.value, spread, OPEN, unit=finding.unit, note=note)
            rows.append(_judged(row, finding))
    lacking = [task for task in finding.paper if task not in {row.task for row in rows}]
    return rows + [FindingRow(task, note=finding.untested) for task in lacking]


def _said(study: StudyRecord, cell: StudyCell, several: bool) -> str:
    """The examples behind a number, or the figures that it was computed from beside the paper's, and its record."""
    beside = [
        f"{each.quantity} {each.value:.1f} (the paper: {each.paper:g})"
        for each in study.cells
        if not cell.behind and each.source == cell.source and each.paper is not None and each is not cell
    ]
    record = f"record {study.id}" if several else ""
    degrees = "" if cell.degrees or not cell.clusters else "p with as many degrees of freedom as clusters less one"
    return "; ".join(filter(None, [f"one biLM ({study.bilm})", cell.behind, degrees, *beside, record]))
