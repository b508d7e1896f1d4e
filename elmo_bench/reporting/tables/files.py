"""The file of a sweep's table below the results, tables/<sweep>.<scale>.md."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from elmo_bench.configuration import tables
from elmo_bench.records.record import Record
from elmo_bench.reporting.section import Section, inert
from elmo_bench.reporting.statistics.cells import Content, content
from elmo_bench.reporting.tables import sources
from elmo_bench.reporting.tables.paper import section
from elmo_bench.sweeps.local import SweepOutcome
from elmo_bench.sweeps.request import SweepRequest
from elmo_bench.system.storage.files import write_text


def write(outcome: SweepOutcome) -> tuple[list[Section], Path]:
    """Writes the table of a sweep: the tasks asked for, and others that have runs of their own in it.

    Returns:
        The table with those that stand below it, and the path of its file.

    Raises:
        UserError: a record or a place that cannot be read or written.
    """
    request, root = outcome.plan.request, outcome.plan.config.results_root
    made = content(request, list(outcome.records.values()))
    assert made is not None  # the tasks asked for are in it
    sections, path = _sections(made), Path(root) / _name(request)
    write_text(path, markdown(sections))
    return sections, path


def of_records(records: Sequence[Record]) -> dict[str, list[Section]]:
    """The tables of every sweep at every scale where a task has runs of its own in it, by the path of their file."""
    scales = dict.fromkeys(record.scale for record in records)
    made = (content(SweepRequest(sweep, [], scale), records) for sweep in tables.sweeps() for scale in scales)
    return {_name(each.request): _sections(each) for each in made if each}


def _sections(made: Content) -> list[Section]:
    return [section(made), *sources.sections(made)]


def markdown(sections: Sequence[Section]) -> str:
    """The page of a table and those below it."""
    first, *others = sections
    return inert("\n\n".join([first.markdown(level=1), *(each.markdown() for each in others)]) + "\n")


def _name(request: SweepRequest) -> str:
    """Overrides on which results depend are part of a table's name."""
    parts = [request.sweep, request.scale, *(re.sub(r"[^\w.=+-]+", "_", change) for change in request.changes)]
    return f"tables/{'.'.join(parts)[:120]}.md"
