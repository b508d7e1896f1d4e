"""What the records say of each finding of the paper: a difference with its interval, and a verdict by one rule."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import NamedTuple

from elmo_bench.configuration import pages, tables
from elmo_bench.configuration.tables import Finding, Setting, SweepTable
from elmo_bench.records.record import Record
from elmo_bench.records.studies import StudyCell, StudyRecord
from elmo_bench.reporting.statistics import efficiency
from elmo_bench.reporting.statistics.gains import SEEDS_AGREE, error_reduction, gain
from elmo_bench.reporting.statistics.groups import Group, compared, of_setting
from elmo_bench.reporting.statistics.intervals import Bounds, Spread

SHOWN, CONTRADICTED, OPEN, UNTESTED = VERDICTS = ("shown", "contradicted", "not shown", "not tested")
RULE = (
    "One rule decides every row. The finding is *shown* where the whole 95 % interval of the difference lies where the "
    "finding says (above zero, if nothing else is written), *contradicted* where it lies elsewhere, "
    "and *not shown* where the interval holds both, where there is none, or where an arm has one seed; the column then "
    "says how large a true difference these runs show four times out of five, or whether their interval fits between "
    "two bounds. p is below 0.05 exactly where a finding is shown or contradicted. *Not tested*: there are no such "
    "runs. Differences are on test, those of updates and perplexity on dev. Intervals are over seeds and over test "
    "examples; those of updates and of weights are over seeds alone, those of the biLM itself over examples alone."
)


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

    task: str
    value: float | None
    spread: Spread | None
    verdict: str
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


def evaluated(records: Sequence[Record], scale: str, studies: Sequence[StudyRecord]) -> list[Evaluated]:
    """Every finding of the tables of conf/sweep/, and of the studies of conf/analysis/, at a scale.

    Raises:
        UserError: an entry that is not right.
    """
    here = {task: [r for r in records if (r.scale, r.task) == (scale, task)] for task in {r.task for r in records}}
    found = []
    for sweep in tables.sweeps():
        table, command = tables.table(sweep), f"elmo-bench sweep +sweep={sweep} task=TASK scale={scale}"
        for finding in table.findings:
            rows = [_told(_row(finding, table, task, here.get(task, []))) for task in tables.in_order(finding.paper)]
            found.append(Evaluated(finding, scale, command, rows))
    for study, findings in tables.of_studies().items():
        command = f"elmo-bench {'tune task=all' if study == 'tuning' else f'analysis.{study}'} scale={scale}"
        place = scale, study, pages.written("scale", scale, "bilm") or ""
        listed = [each for each in studies if (each.scale, each.study, each.bilm) == place]
        found += [Evaluated(each, scale, command, _of_study(each, listed)) for each in findings]
    return found


def discoveries(found: Sequence[Evaluated]) -> list[tuple[Evaluated, FindingRow, float]]:
    """The tested rows of a scale, each with its p corrected for their number (Benjamini and Hochberg 1995)."""
    from scipy.stats import false_discovery_control

    tested = [(each, row, row.p) for each in found for row in each.rows if row.p is not None]
    corrected = false_discovery_control([p for *_, p in tested]).tolist() if tested else []
    return [(each, row, p) for (each, row, _), p in zip(tested, corrected, strict=True)]


def verdict(low: float, high: float, bounds: Bounds) -> str:
    """The rule: shown if the interval lies inside the bounds, contradicted if outside, else not shown."""
    least, most = bounds
    if least < low and high < most:
        return SHOWN
    return CONTRADICTED if high < least or most < low else OPEN


def _row(finding: Finding, table: SweepTable, task: str, records: Sequence[Record]) -> FindingRow:
    more = table.setting(finding.more)
    if finding.measure in WEIGHTS:
        return _of_weights(finding, task, records, more)
    found = compared(records, more, table.setting(finding.less))
    if found is None:
        return _untested(task)
    if finding.measure == "updates":
        return _of_updates(finding, task, found)
    if finding.measure == "error":
        reduced = error_reduction(*found)
        if reduced is None:
            return _untested(task, "the baseline makes no error")
        return _judged(finding, task, reduced.mean, reduced.spread, found, "%", reduced.note)
    difference = gain(*found)
    return _judged(finding, task, difference.mean, difference.spread, found, note=difference.note)


def _told(row: FindingRow) -> FindingRow:
    """The row; its note also names the user's own files of data, and the arms with runs that were best at their end."""
    own = [f"{key}={name}" for key, name in row.groups[0].first.own_data.items()] if row.groups else []
    late = [(sum(run.rises for run in group.records), group) for group in row.groups]
    listed = ", ".join(f"{number} of {len(group.records)} {group.name}" for number, group in late if number)
    said = f"dev best in the last epoch: {listed}" if listed else ""
    return row._replace(note="; ".join(filter(None, [row.note, *own, said])))


def _judged(
    finding: Finding,
    task: str,
    value: float,
    spread: Spread | None,
    groups: tuple[Group, ...] = (),
    unit: str = "points",
    note: str = "",
) -> FindingRow:
    """The row of a difference, with its verdict; not shown where an arm has one seed."""
    if any(len(group.records) < 2 for group in groups):
        return FindingRow(task, value, spread, OPEN, groups, unit, "one seed in an arm")
    if spread is None:
        return FindingRow(task, value, None, OPEN, groups, unit, note)
    judged, p = verdict(*spread.around(value), finding.bounds), spread.p(value, finding.bounds)
    return FindingRow(task, value, spread, judged, groups, unit, note, p)


def _untested(task: str, note: str = "") -> FindingRow:
    return FindingRow(task, None, None, UNTESTED, note=note)


# Values of single runs.


def _of_updates(finding: Finding, task: str, found: tuple[Group, Group]) -> FindingRow:
    """The mean percentage of updates saved, of the runs that pass the baseline's best; without an interval if some
    never do."""
    more, less = found
    try:
        saved = efficiency.savings(less.records, more.records)
    except ValueError as error:  # the sizes of an update differ
        return _untested(task, str(error))
    passing = [each for each in saved if each is not None]
    if not saved or len(passing) == len(saved):
        return _over_seeds(finding, task, passing, found, "%")
    never = f"{len(saved) - len(passing)} of {len(saved)} never passes"
    return FindingRow(task, fmean(passing) if passing else None, None, OPEN, found, "%", never)


WEIGHTS = {
    "first_layer": lambda weights: weights[1] - max([*weights[:1], *weights[2:]]),
    "spread": lambda weights: max(weights) - min(weights),
    "lower_layers": lambda weights: fmean(weights[:-1]) - weights[-1],
}


def _of_weights(finding: Finding, task: str, records: Sequence[Record], more: Setting) -> FindingRow:
    found = of_setting(records, more)
    if found is None or finding.place not in found.first.layer_weights:
        return _untested(task)
    weights = [record.weights_at(finding.place) for record in found.records]
    if len(weights[0]) < 2:
        return _untested(task, "one layer")
    return _over_seeds(finding, task, [WEIGHTS[finding.measure](each) for each in weights], (found,), "")


def _over_seeds(
    finding: Finding, task: str, values: Sequence[float], groups: tuple[Group, ...], unit: str
) -> FindingRow:
    """The mean of one value a seed."""
    if not values:
        return _untested(task, "no seed in common")
    note = "" if (spread := Spread.of_values(values)) else "one seed in common" if len(values) == 1 else SEEDS_AGREE
    return _judged(finding, task, fmean(values), spread, groups, unit, note)


# Studies of the biLM.


def _of_study(finding: Finding, studies: Sequence[StudyRecord]) -> list[FindingRow]:
    """A row for each number of the quantity in each of these studies of one biLM, and for each that is lacking.

    Several studies of one biLM differ in their settings, and each has a row that names its record.
    """
    rows = []
    for study in studies:
        for task in finding.paper:
            for cell in study.find(finding.quantity, task or study.bilm, finding.layer, finding.minus):
                note = _said(study, cell, several=len(studies) > 1)
                rows.append(_judged(finding, task, cell.value, _spread_of(cell), unit=finding.unit, note=note))
    lacking = [task for task in finding.paper if task not in {row.task for row in rows}]
    return rows + [_untested(task, finding.untested) for task in lacking]


def _spread_of(cell: StudyCell) -> Spread | None:
    if cell.low is None or cell.high is None:
        return None
    return Spread.of_interval(cell.low, cell.high, cell.degrees or max(1, (cell.clusters or 2) - 1))


def _said(study: StudyRecord, cell: StudyCell, several: bool) -> str:
    """The examples behind a number, or the figures that it was computed from beside the paper's, and its record."""
    beside = [
        f"{each.quantity} {each.value:.1f} (the paper: {each.paper:g})"
        for each in study.cells
        if not cell.behind and each.source == cell.source and each.paper is not None and each is not cell
    ]
    record = f"record {study.id}" if several else ""
    return "; ".join(filter(None, [f"biLM {study.bilm}", cell.behind, *beside, record]))
