"""The chapter of sweeps: the paper's tables from the runs of the same settings, and the differences that they show."""

from __future__ import annotations

from collections.abc import Sequence

from elmo_bench.reporting.pages.parts import Chapter, Table
from elmo_bench.reporting.statistics.differences import HEADER, NOTE, TITLE, Difference, Earlier
from elmo_bench.reporting.tables.numbers import Number, runs_of
from elmo_bench.reporting.tables.paper import missing, scores

WORDS = "Mean ± sample standard deviation over the seeds, whose number stands in brackets."


def sweeps(tables: Sequence[Earlier]) -> Chapter:
    """Each table of a sweep, its differences below it; weights and parts of the data have chapters of their own."""
    shown = [each for each in tables if each.content.layout.shows == "scores"]
    found = [table for each in shown for table in _tables(each)]
    return Chapter("sweeps", "The paper's tables, and other sweeps", [WORDS, NOTE] if found else [], found)


def _tables(made: Earlier) -> list[Table]:
    header, rows = scores(made.content)
    lacking = (f"{line}." for line in missing(made.content))
    note = " ".join([made.content.layout.note, *made.changes, *lacking])
    below = [_row(each) for each in made.differences]
    found = [] if made.content.layout.saves else [Table(made.title, note, header, rows)]  # else: "Fewer examples"
    return found + ([Table(TITLE.format(made.title), "", HEADER[1:], below)] if below else [])


def _row(each: Difference) -> list[str | Number]:
    task, title, paper, dev, test, *rest = each.row
    return [f"{task}: {title}", paper, dev, Number(test, runs_of(*each.pair)), *rest]
