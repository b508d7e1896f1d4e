"""A user's own results beside the reference runs and the paper, arm by arm."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from elmo_bench.records.query import is_main
from elmo_bench.records.record import Record
from elmo_bench.records.store import grouped, read_all
from elmo_bench.reporting.section import Section
from elmo_bench.reporting.statistics import scores as statistics
from elmo_bench.reporting.statistics.groups import Group, in_groups
from elmo_bench.reporting.statistics.outcomes import by_place
from elmo_bench.reporting.tables.tables import paper_score
from elmo_bench.system import places

HEADER = ("arm", "biLM", "yours: test {m}", "seeds", "reference runs: test {m}", "seeds", "paper")

NOTE = "Reference runs: the project's records with the same settings, mean ± sample standard deviation."


def beside(records: Iterable[Record]) -> list[Section]:
    """A table for every task and scale of a user's records. Raises `UserError` for records that contradict."""
    return [_section(own, read_all(places.RECORDED, own[0].scale, own[0].task)) for own in by_place(records)]


def _section(own: Sequence[Record], reference: Sequence[Record]) -> Section:
    """The arms of one task at one scale, and below them the gain of +ELMo."""
    metric = own[0].monitor
    theirs = grouped(reference)
    groups = sorted(in_groups(own), key=lambda group: (group.first.has_elmo, group.name))
    pairs = [(group, theirs.get(group.first.group, [])) for group in groups]
    rows = [_row(group, recorded, metric) for group, recorded in pairs]
    title = f"{own[0].task}, scale {own[0].scale}: your runs, the reference runs and the paper"
    header = tuple(cell.format(m=metric) for cell in HEADER)
    remarks = [] if any(recorded for _, recorded in pairs) else ["There is no reference run with these settings."]
    return Section(title, NOTE, header, [*rows, *_gain(pairs, metric)], remarks)


def _row(group: Group, recorded: list[Record], metric: str) -> tuple[str, ...]:
    cells = [cell for records in (group.records, recorded) for cell in _cells(records, metric)]
    return group.name, group.first.bilm_name or "-", *cells, paper_score(group.first, metric)


def _cells(records: list[Record], metric: str) -> tuple[str, str]:
    """The test score with its deviation, and the seeds."""
    if not records:
        return "", ""
    return statistics.scores(records, "test", metric), statistics.ranges([record.seed for record in records])


def _gain(pairs: Sequence[tuple[Group, list[Record]]], metric: str) -> list[tuple[str, ...]]:
    """The row of +ELMo over the baseline, of the paper's comparison; none where one of them is missing."""
    arms = {group.first.has_elmo: (group.records, recorded) for group, recorded in pairs if is_main(group.first)}
    if len(arms) < 2:
        return []
    own, recorded = (_difference(before, after, metric) for before, after in zip(arms[False], arms[True], strict=True))
    paper = statistics.gain_of_paper(pairs[0][0].first)
    return [("gain of +ELMo", "", own, "", recorded, "", "" if paper is None else f"{paper:+.2f}")]


def _difference(before: list[Record], after: list[Record], metric: str) -> str:
    if not before or not after:
        return ""
    first, second = (statistics.score(records, "test", metric)[0] for records in (before, after))
    return f"{second - first:+.2f}"
