"""What the records say of each finding of the paper: a difference with its interval, and a verdict by one rule."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import permutations
from statistics import fmean
from typing import NamedTuple

from elmo_bench.configuration import pages, tables
from elmo_bench.configuration.tables import Finding, SweepTable
from elmo_bench.records.record import Record
from elmo_bench.records.studies import StudyCell, StudyRecord
from elmo_bench.reporting.statistics.gains import LARGE, SEEDS_AGREE, error_reduction, influence_in_words, over_bilms
from elmo_bench.reporting.statistics.groups import Group, machines, of_bilms, of_setting_by_bilm
from elmo_bench.reporting.statistics.intervals import Bounds, SmallestSpread, Spread

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

    task: str
    value: float | None
    spread: Spread | SmallestSpread | None
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
            rows = [_row(finding, table, task, here.get(task, [])) for task in tables.in_order(finding.paper)]
            found.append(Evaluated(finding, scale, command, [_told(row, finding, command) for row in rows]))
    for study, findings in tables.of_studies().items():
        command = f"elmo-bench {'tune task=all' if study == 'tuning' else f'analysis.{study}'} scale={scale}"
        place = scale, study, pages.written("scale", scale, "bilm") or ""
        listed = [each for each in studies if (each.scale, each.study, each.bilm) == place]
        rows = [[_told(row, each, command) for row in _of_study(each, listed)] for each in findings]
        found += [Evaluated(each, scale, command, of_it) for each, of_it in zip(findings, rows, strict=True)]
    return found


def discoveries(found: Sequence[Evaluated]) -> list[tuple[Evaluated, FindingRow, float, float]]:
    """The tested rows of a scale, each with its p corrected for their number.

    By the method of Benjamini and Hochberg (1995), which takes rows as independent, and by that of Benjamini and
    Yekutieli (2001), which does not: rows share runs.
    """
    from scipy.stats import false_discovery_control

    tested = [(each, row, row.p) for each in found for row in each.rows if row.p is not None]
    p = [p for *_, p in tested]
    corrected = [false_discovery_control(p, method=method).tolist() if p else [] for method in ("bh", "by")]
    return [(each, row, *both) for (each, row, _), *both in zip(tested, *corrected, strict=True)]


def verdict(low: float, high: float, bounds: Bounds) -> str:
    """The rule: shown if the interval lies inside the bounds, contradicted if outside, else not shown."""
    least, most = bounds
    if least < low and high < most:
        return SHOWN
    return CONTRADICTED if high < least or most < low else OPEN


def _row(finding: Finding, table: SweepTable, task: str, records: Sequence[Record]) -> FindingRow:
    more = table.setting(finding.more)
    if finding.measure in WEIGHTS:
        return _of_weights(finding, task, of_setting_by_bilm(records, more))
    pairs = of_bilms(records, more, table.setting(finding.less))
    if not pairs:
        return _untested(task)
    if finding.measure == "updates":
        return _of_updates(finding, task, pairs)
    found, unit, repeats = error_reduction(pairs), "%", "the gain once more, as a share"
    if finding.measure != "error":
        found, unit, repeats = over_bilms(pairs), "points", ""
    if found is None:
        return _untested(task, "the baseline makes no error")
    owed = found.influence if found.influence and found.influence.share > LARGE and not repeats else None
    said = f"{influence_in_words(owed)}; {found.clusters}" if owed else ""
    notes = "; ".join(filter(None, [repeats, found.note, said]))
    return _judged(finding, task, found.mean, found.spread, _merged(pairs), unit, notes)


def _merged(pairs: Sequence[Sequence[Group]]) -> tuple[Group, ...]:
    """The runs of all biLMs of each arm in one group."""
    arms = [{record.run: record for group in arm for record in group.records} for arm in zip(*pairs, strict=True)]
    return tuple(group._replace(records=[*arm.values()]) for group, arm in zip(pairs[0], arms, strict=True))


def _told(row: FindingRow, finding: Finding, command: str) -> FindingRow:
    """The row, with what a reader must know of its runs: user's own data, biLMs, machines, epochs; how to get a lacking
    interval."""
    own = [f"{key}={name}" for key, name in row.groups[0].first.own_data.items()] if row.groups else []
    bilms = len(
        {record.bilm_seed for group in row.groups for record in group.records if record.from_bilm and record.has_elmo}
    )
    told = [f"over {bilms} biLMs" if bilms > 1 else "one biLM"] if bilms else []
    told += [*machines(row.groups), *unfinished(row.groups)] if finding.measure not in WEIGHTS else []
    if row.verdict == OPEN and row.value is not None and row.spread is None and not row.groups:
        told.append(f"no interval in its record: `{command.replace('task=all', f'task={row.task}')}` makes it")
    late = [(sum(run.rises for run in group.records), group) for group in row.groups]
    listed = ", ".join(f"{number} of {len(group.records)} {group.name}" for number, group in late if number)
    told += [f"dev best in the last epoch: {listed}"] if listed else []
    return row._replace(note="; ".join(filter(None, [row.note, *told, *own])))


def _judged(
    finding: Finding,
    task: str,
    value: float,
    spread: Spread | SmallestSpread | None,
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


# How many updates ELMo saves (paper, section 5.4). The paper's example is SRL: without ELMo the best dev F1 comes after
# 486 epochs, and with ELMo the tenth epoch exceeds it: 98 % fewer updates. Dev is scored once an epoch, so that both
# numbers are known to an epoch.


class Saved(NamedTuple):
    """The percentage of a baseline's updates that a run saves, and what share of them an epoch is, in percent."""

    percent: float
    epoch: float


def unfinished(groups: Sequence[Group]) -> list[str]:
    """At most one sentence: that all runs of an arm end at the cap of epochs, and the lesser arm still gains more."""
    last = [[record.dev_scores for record in group.records] for group in groups]
    gained = [fmean(dev[-1] - dev[-3] for dev in scores) if min(map(len, scores)) > 2 else 0.0 for scores in last]
    capped = any(
        all(r.epochs == r.config["task"].get("fit", {}).get("epochs") for r in group.records) for group in groups
    )
    if not capped or gained[-1] <= max(STILL, gained[0]):
        return []
    ends = " and ".join(f"{still:+.2f}" for still in gained)
    return [f"all runs of an arm end at the cap of epochs, where dev still gains {ends} in two epochs"]


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


def _of_updates(finding: Finding, task: str, pairs: Sequence[tuple[Group, Group]]) -> FindingRow:
    """The mean percentage of updates saved, of the runs that pass the baseline's best; without an interval if some
    never do."""
    groups = _merged(pairs)
    by_bilm = [savings(less.records, more.records) for more, less in pairs]
    passing = [each for of_it in by_bilm for each in of_it if each]
    if never := sum(of_it.count(None) for of_it in by_bilm):
        value = fmean(each.percent for each in passing) if passing else None
        note = f"{never} of {never + len(passing)} never passes"
        return FindingRow(task, value, None, OPEN, groups, "%", note)
    row = _over_units(finding, task, [[[each.percent] for each in of_it if each] for of_it in by_bilm], groups, "%")
    if not isinstance(row.spread, Spread) or row.value is None:
        return row
    epoch = fmean(each.epoch for each in passing)
    wide = max(row.spread, row.spread._replace(error=row.spread.error * epoch / 2 / row.spread.half))
    return _judged(finding, task, row.value, wide, groups, "%", f"dev is scored once an epoch ({epoch:.1f} %)")


# Of weights at the selected epoch, the differences whose smallest is the measure.
WEIGHTS = {
    "first_layer": lambda weights: [weights[1] - each for each in [*weights[:1], *weights[2:]]],
    "spread": lambda weights: [one - other for one, other in permutations(weights, 2)],
    "lower_layers": lambda weights: [fmean(weights[:-1]) - weights[-1]],
}


def _of_weights(finding: Finding, task: str, found: Sequence[Group]) -> FindingRow:
    if not found or finding.place not in found[0].first.layer_weights:
        return _untested(task)
    weights = [[record.weights_at(finding.place) for record in group.records] for group in found]
    if len(weights[0][0]) < 2:
        return _untested(task, "one layer")
    differences = [[WEIGHTS[finding.measure](each) for each in of_bilm] for of_bilm in weights]
    return _over_units(finding, task, differences, _merged([[group] for group in found]), "")


def _over_units(
    finding: Finding, task: str, values: Sequence[Sequence[Sequence[float]]], groups: tuple[Group, ...], unit: str
) -> FindingRow:
    """The mean of one value a seed, or the smallest of the means of several; over biLMs, of which each has values."""
    units = [[fmean(column) for column in zip(*of_bilm, strict=True)] for of_bilm in values if of_bilm]
    units = values[0] if len(units) == 1 else units
    if not units:
        return _untested(task, "no seed in common")
    columns = [*zip(*units, strict=True)]
    means, spreads = [fmean(column) for column in columns], [Spread.of_values(column) for column in columns]
    parts = tuple((mean, each or Spread(0.0, len(units) - 1)) for mean, each in zip(means, spreads, strict=True))
    spread = None if not any(spreads) else parts[0][1] if len(parts) == 1 else SmallestSpread(parts)
    note = "" if spread else "one seed in common" if len(units) == 1 else SEEDS_AGREE
    return _judged(finding, task, min(means), spread, groups, unit, note)


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
    degrees = "" if cell.degrees or not cell.clusters else "p with as many degrees of freedom as clusters less one"
    return "; ".join(filter(None, [f"one biLM ({study.bilm})", cell.behind, degrees, *beside, record]))
