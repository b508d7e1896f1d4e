"""results/replication.md: the findings of the paper, what the records say of each, and a verdict by one rule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from elmo_bench.configuration import layouts
from elmo_bench.configuration.claims import Claim
from elmo_bench.records.record import Record
from elmo_bench.records.store import place
from elmo_bench.reporting.section import Number, Section, inert, pipes
from elmo_bench.reporting.statistics.claims import RULE, UNTESTED, VERDICTS, Finding, Row
from elmo_bench.reporting.tables.numbers import runs_of

TITLE = "The paper's findings"
INTRODUCTION = (
    "Written by `elmo-bench report` from the records; `conf/claims.yaml` has an entry for each finding. Scale open is "
    "real text with a small biLM, mini a generated language: neither has the paper's data, so that the direction of a "
    "difference compares, and its size does not."
)
HEADER = ("finding", "the paper", "ours, scale {scale}", "verdict, scale {scale}")
ROWS = ("task", "the paper", "ours", "95 % interval", "verdict", "runs")


def counts(found: Iterable[Finding]) -> str:
    """ "12 shown, 3 contradicted, 5 not shown, 20 not tested": how many rows have each verdict."""
    number = Counter(row.verdict for each in found for row in each.rows)
    return ", ".join(f"{number[verdict]} {verdict}" for verdict in VERDICTS)


def summary(by_scale: Sequence[Sequence[Finding]]) -> str:
    """The sentences of the README."""
    told = [f"Scale {found[0].scale}: {counts(found)}." for found in by_scale if found]
    return " ".join([*told, "A row is a finding at one task ([all of them](results/replication.md))."])


def markdown(by_scale: Sequence[Sequence[Finding]]) -> str:
    """The page: the rule, each scale at a glance, then every finding with its runs and its command."""
    parts = [f"# {TITLE}", INTRODUCTION, RULE]
    for found in by_scale:
        table = glance(found, mark="**")
        parts += [f"## {table.title}: {counts(found)}", pipes(table.header, table.rows)]
    for found in by_scale:
        parts.append(f"# Runs and commands, scale {found[0].scale}")
        parts += [part for each in found for part in _detail(each)]
    return inert("\n\n".join(parts) + "\n")


def glance(found: Sequence[Finding], mark: str = "") -> Section:
    """A row for each finding: its words, the paper's figures, ours, and which tasks have which verdict.

    Args:
        mark: stands before and after each verdict.
    """
    scale = found[0].scale
    header = tuple(cell.format(scale=scale) for cell in HEADER)
    rows = [(_words(each), _paper(each.claim), _ours(each), _verdicts(each, mark)) for each in found]
    return Section(f"Scale {scale}", f"Verdicts: {', '.join(VERDICTS)}.", header, rows)


def _words(finding: Finding) -> str:
    return f"{finding.claim.finding} ({finding.claim.where})"


def _paper(claim: Claim) -> str:
    return "; ".join(f"{_title(task)} {figure}".strip() for task, figure in claim.paper.items())


def _ours(finding: Finding) -> Number:
    told = (f"{_title(row.task)} {difference(row)}".strip() for row in finding.rows if row.value is not None)
    return Number("; ".join(told), runs_of(*(group for row in finding.rows for group in row.groups)))


def _verdicts(finding: Finding, mark: str) -> str:
    told = []
    for verdict, tasks in finding.by_verdict().items():
        named = ", ".join(filter(None, map(_title, tasks)))
        told.append(f"{mark}{verdict}{mark}{f': {named}' if named else ''}")
    return "; ".join(told)


def _title(task: str) -> str:
    return layouts.titles().get(task, task)


def difference(row: Row) -> str:
    """ "+3.06 [+1.04, +5.07]"; without an interval the difference alone."""
    if row.value is None:
        return ""
    digits = 1 if row.unit == "%" else 2
    value = f"{row.value:+.{digits}f}{' %' if row.unit == '%' else ''}"
    return value if row.low is None or row.high is None else f"{value} [{row.low:+.{digits}f}, {row.high:+.{digits}f}]"


def _detail(finding: Finding) -> list[str]:
    claim = finding.claim
    rows = [
        (
            _title(row.task) or "-",
            claim.paper.get(row.task, ""),
            *_measured(row),
            _verdict(row),
            runs(row, finding.scale),
        )
        for row in finding.rows
    ]
    return [f"### {claim.finding}", f"{claim.where}. {_how(finding)}".strip(), pipes(ROWS, rows)]


def _measured(row: Row) -> tuple[str, str]:
    value, _, interval = difference(row).partition(" [")
    return value, interval.rstrip("]").replace(", ", " to ")


def _verdict(row: Row) -> str:
    """The verdict; if the finding is not shown, the difference that would have been, and what else must be known."""
    could = ""
    if row.verdict == "not shown" and row.low is not None and row.high is not None:
        smallest = float(f"{(row.high - row.low) / 2:.2g}")
        could = f"these runs could show {smallest:g} {row.unit}".rstrip()
    return "; ".join(filter(None, [row.verdict, could, row.note]))


def runs(row: Row, scale: str) -> str:
    """Links to the records of the compared runs, one a seed."""
    return " against ".join(", ".join(_link(record, scale) for record in group.records) for group in row.groups)


def _link(record: Record, scale: str) -> str:
    return f"[{record.seed}]({place('', scale, record.task, record.run).as_posix()})"


def _how(finding: Finding) -> str:
    """The command that makes the runs, or the study."""
    claim, scale = finding.claim, finding.scale
    if claim.untested:
        return ""
    if claim.study == "tuning":
        return f"`elmo-bench tune task=all scale={scale}`"
    if claim.study:
        return f"`elmo-bench analysis.{claim.study} scale={scale}`"
    missing = [row.task for row in finding.rows if row.verdict == UNTESTED]
    lacking = f"; not recorded: {', '.join(map(_title, missing))}" if missing else ""
    return f"`elmo-bench sweep +sweep={claim.sweep} task=TASK scale={scale}`{lacking}."
