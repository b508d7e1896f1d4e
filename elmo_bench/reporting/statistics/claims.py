"""What the records say of each finding of the paper: a difference with its interval, and a verdict by one rule."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, stdev
from typing import Any, NamedTuple

from elmo_bench.configuration import layouts
from elmo_bench.configuration.claims import Claim, claims
from elmo_bench.records.record import Record
from elmo_bench.records.run_names import by_key
from elmo_bench.records.studies import Cell, StudyRecord
from elmo_bench.records.studies import of as studies_of
from elmo_bench.reporting.statistics import efficiency
from elmo_bench.reporting.statistics.gains import gain
from elmo_bench.reporting.statistics.groups import Group, in_groups

SHOWN, CONTRADICTED, OPEN, UNTESTED = VERDICTS = ("shown", "contradicted", "not shown", "not tested")
RULE = (
    "One rule decides every row. The finding is *shown* where the whole 95 % interval of the difference lies where the "
    "finding says (above zero, if nothing else is written), *contradicted* where it lies elsewhere, "
    "and *not shown* where the interval holds both, or where an arm has one seed; the column then says how large "
    "a difference these runs could have shown. *Not tested*: there are no such runs. Differences are on test. "
    "Intervals are over seeds and over test items; those of updates and of weights are over seeds alone."
)


class Row(NamedTuple):
    """A finding at one task and scale.

    Attributes:
        task: its name; empty for a finding on the biLM itself.
        value, low, high: the difference and its interval; None where it is not known.
        verdict: one of `VERDICTS`.
        groups: the compared runs, `more` first; empty for a study.
        unit: what the numbers count, as "points" or "%".
        note: what a reader must know of these runs.
    """

    task: str
    value: float | None
    low: float | None
    high: float | None
    verdict: str
    groups: tuple[Group, ...] = ()
    unit: str = "points"
    note: str = ""


class Finding(NamedTuple):
    """A finding, and what the records of one scale say of it."""

    name: str
    claim: Claim
    scale: str
    rows: list[Row]

    def by_verdict(self) -> dict[str, list[str]]:
        """The tasks of each verdict that occurs."""
        return {
            each: [row.task for row in self.rows if row.verdict == each]
            for each in VERDICTS
            if any(row.verdict == each for row in self.rows)
        }


def findings(records: Sequence[Record], scale: str, studies: Sequence[StudyRecord]) -> list[Finding]:
    """Every finding of conf/claims.yaml at a scale.

    Raises:
        UserError: an entry of the page that is not right.
    """
    here = [record for record in records if record.scale == scale and record.from_bilm]
    return [Finding(name, claim, scale, _rows(claim, scale, here, studies)) for name, claim in claims(scale).items()]


def verdict(low: float | None, high: float | None, bounds: tuple[float, float]) -> str:
    """The rule: shown if the interval lies inside the bounds, contradicted if outside, else not shown."""
    if low is None or high is None:
        return OPEN
    least, most = bounds
    if least < low and high < most:
        return SHOWN
    return CONTRADICTED if high < least or most < low else OPEN


def _rows(claim: Claim, scale: str, records: Sequence[Record], studies: Sequence[StudyRecord]) -> list[Row]:
    if claim.untested:
        return [Row("", None, None, None, UNTESTED, note=claim.untested)]
    if claim.study:
        return _of_study(claim, scale, studies)
    spoken = claim.tasks or layouts.in_order({record.task for record in records} | set(layouts.titles()))
    return [_of_task(claim, task, [record for record in records if record.task == task]) for task in spoken]


# Runs.


def _of_task(claim: Claim, task: str, records: Sequence[Record]) -> Row:
    if claim.measure in WEIGHTS:
        return _of_weights(claim, task, records)
    found = _pair(claim, records)
    if found is None:
        return Row(task, None, None, None, UNTESTED)
    more, less = found
    if claim.measure == "updates":
        try:
            saved = _saved(more, less)
        except ValueError as error:  # the sizes of an update differ
            return Row(task, None, None, None, UNTESTED, note=str(error))
        return _over_seeds(claim, task, saved, found, "%", _words(claim, more, less))
    difference = gain(more, less, permute=False)
    value, low, high = difference.mean, difference.low, difference.high
    unit, enough = "points", min(difference.seeds) > 1
    if claim.measure == "error":
        metric = less.first.monitor
        errors = 100 - fmean(record.metrics["test"][metric] for record in less.records)
        if not errors:
            return Row(task, None, None, None, UNTESTED, note="the baseline makes no error")
        share = 100 / errors
        value, low, high = (None if each is None else share * each for each in (value, low, high))
        unit = "%"
    judged = verdict(low, high, claim.bounds) if enough else OPEN
    return Row(task, value, low, high, judged, found, unit, _words(claim, more, less))


def _words(claim: Claim, *groups: Group) -> str:
    """What a reader must know of compared runs: single seeds, the word vectors, and changes that both have."""
    single = "one seed in an arm" if min(len(group.records) for group in groups) < 2 else ""
    source = {group.first.vectors for group in groups}
    shared = ", ".join(f"{key}={value}" for key, value in _context(groups[0].first, _named(claim)))
    return "; ".join(filter(None, [single, f"{'/'.join(sorted(source))} vectors", shared]))


def _pair(claim: Claim, records: Sequence[Record]) -> tuple[Group, Group] | None:
    """The runs `more` and `less` that differ in the named keys alone: best those of the page, then most seeds."""
    one, other = (_chosen(records, values, claim) for values in (claim.more, claim.less))
    pairs = [(a, b) for a in one for b in other if _alike(a, b, claim)]
    return max(pairs, key=lambda pair: _weight(pair, claim), default=None)


def _named(claim: Claim) -> set[str]:
    return {*claim.more, *claim.less} - {"arm"}


def _chosen(records: Iterable[Record], values: Mapping[str, Any], claim: Claim) -> list[Group]:
    """The groups of runs that have these values; on all of the training data, unless the claim names `fraction`."""
    found = [record for record in records if _has(record, values) and (_whole(record) or "fraction" in _named(claim))]
    return in_groups(found) if found else []


def _whole(record: Record) -> bool:
    return record.fraction == 1


def _has(record: Record, values: Mapping[str, Any]) -> bool:
    return record.arm == values["arm"] and all(
        _value(record.config, key) == value for key, value in values.items() if key != "arm"
    )


def _value(config: Mapping[str, Any], key: str) -> Any:
    """The value of a dotted key; a configuration without `fraction` has all of the training data."""
    if key == "fraction":
        return config.get(key, 1.0)
    value: Any = config
    for part in key.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _context(record: Record, named: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """What a run changes on its arm's page besides the named keys."""
    changes = by_key(record.variant, record.where)
    return tuple(sorted((key, str(value)) for key, value in changes.items() if key not in {*named, "vectors"}))


def _alike(one: Group, other: Group, claim: Claim) -> bool:
    named = _named(claim)
    same = [(_context(g.first, named), g.first.vectors, g.data) for g in (one, other)]
    bilms = {group.sha256 for group in (one, other)} - {None}
    tuned = claim.more.get("arm") == "tuned"
    return same[0] == same[1] and (len(bilms) < 2 or tuned)


def _weight(pair: tuple[Group, Group], claim: Claim) -> tuple:
    seeds = [len(group.records) for group in pair]
    newest = max(record.finished for group in pair for record in group.records)
    return not _context(pair[0].first, _named(claim)), min(seeds), sum(seeds), newest


# Values of single runs.


def _saved(more: Group, less: Group) -> list[float]:
    """For each seed the percentage of updates saved; one that never passes the baseline's best has saved none."""
    return [max(0.0, each.saved or 0.0) for each in efficiency.savings(less.records, more.records)]


def _first_layer(weights: Sequence[float]) -> float:
    return weights[1] - max(*weights[:1], *weights[2:])


def _spread(weights: Sequence[float]) -> float:
    return max(weights) - min(weights)


def _lower_layers(weights: Sequence[float]) -> float:
    return fmean(weights[:-1]) - weights[-1]


WEIGHTS = {"first_layer": _first_layer, "spread": _spread, "lower_layers": _lower_layers}


def _of_weights(claim: Claim, task: str, records: Sequence[Record]) -> Row:
    groups = [group for group in _chosen(records, claim.more, claim) if claim.place in group.first.layer_weights]
    found = max(groups, key=lambda group: (not _context(group.first, _named(claim)), len(group.records)), default=None)
    if found is None:
        return Row(task, None, None, None, UNTESTED)
    values = [WEIGHTS[claim.measure](record.weights_at(claim.place)) for record in found.records]
    return _over_seeds(claim, task, values, (found,), "", _words(claim, found))


def _over_seeds(
    claim: Claim, task: str, values: Sequence[float], groups: tuple[Group, ...], unit: str, note: str
) -> Row:
    """The mean of one value a seed, with Student's interval."""
    if not values:
        return Row(task, None, None, None, UNTESTED, note="no seed in common")
    mean, low, high = student(values)
    return Row(task, mean, low, high, verdict(low, high, claim.bounds), groups, unit, note)


def student(values: Sequence[float]) -> tuple[float, float | None, float | None]:
    """The mean of independent values with its 95 % interval by Student's t; no interval for a single value."""
    from scipy.stats import t

    mean = fmean(values)
    if len(values) < 2:
        return mean, None, None
    half = float(t.ppf(0.975, len(values) - 1)) * stdev(values) / len(values) ** 0.5
    return mean, mean - half, mean + half


# Studies of the biLM.


def _of_study(claim: Claim, scale: str, studies: Sequence[StudyRecord]) -> list[Row]:
    """A row for each number of the quantity that the claim names, of the biLM that it names, in every such study.

    Several studies of one biLM differ in their settings, and each has a row that names its record.
    """
    rows = []
    listed = studies_of(studies, scale, claim.study, claim.bilm)
    for study in listed:
        for source in claim.tasks or [claim.bilm]:
            for cell in study.find(claim.quantity, source, claim.layer, claim.minus):
                note = _said(study, cell, several=len(listed) > 1)
                task = source if claim.tasks else ""
                judged = verdict(cell.low, cell.high, claim.bounds)
                rows.append(Row(task, cell.value, cell.low, cell.high, judged, unit=claim.unit, note=note))
    lacking = set(claim.tasks or [""]) - {row.task for row in rows}
    return rows + [Row(task, None, None, None, UNTESTED) for task in claim.tasks or [""] if task in lacking]


def _said(study: StudyRecord, cell: Cell, several: bool) -> str:
    """The items behind a number, or the figures that it was computed from beside the paper's, and its record."""
    beside = [
        f"{each.quantity} {each.value:.1f} (the paper: {each.paper:g})"
        for each in study.cells
        if not cell.behind and each.source == cell.source and each.paper is not None and each is not cell
    ]
    record = f"record {study.id}" if several else ""
    return "; ".join(filter(None, [f"biLM {study.bilm}", cell.behind, *beside, record]))
