"""The first chapter: each finding of the paper, ours, and a verdict."""

from __future__ import annotations

from collections.abc import Sequence

from elmo_bench.reporting.pages.parts import Chapter, Table
from elmo_bench.reporting.statistics.claims import RULE, VERDICTS, Finding
from elmo_bench.reporting.tables import replication
from elmo_bench.reporting.tables.numbers import Number, runs_of


def findings(by_scale: Sequence[Sequence[Finding]]) -> Chapter:
    """A table for each scale: finding, the paper, ours, verdict; the numbers open to the runs behind them."""
    words = [f"Scale {found[0].scale}: {replication.counts(found)}." for found in by_scale]
    tables = [_table(found) for found in by_scale]
    plain = RULE.replace("*", "")
    return Chapter("findings", replication.TITLE, [*words, plain] if tables else [], tables)


def _table(found: Sequence[Finding]) -> Table:
    scale = found[0].scale
    rows: list[list[str | Number]] = []
    for finding, (words, paper, ours, _) in zip(found, replication.glance(found), strict=True):
        groups = [group for row in finding.rows for group in row.groups]
        told = "; ".join(
            f"{verdict}: {', '.join(filter(None, tasks))}".removesuffix(": ")
            for verdict, tasks in finding.by_verdict().items()
        )
        rows.append([words, paper, Number(ours, runs_of(*groups)), told])
    header = tuple(cell.format(scale=scale) for cell in replication.HEADER)
    return Table(f"Scale {scale}", f"Verdicts: {', '.join(VERDICTS)}.", header, rows)
