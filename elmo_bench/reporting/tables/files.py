"""The files of a sweep's table below the results: tables/<sweep>.<scale>.md, and the same as JSON with its cells."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from elmo_bench.records import store
from elmo_bench.records.record import Record
from elmo_bench.reporting.section import Section, inert
from elmo_bench.reporting.statistics import scores as statistics
from elmo_bench.reporting.statistics.cells import Cell, Content, cells
from elmo_bench.reporting.statistics.outcomes import newest_record
from elmo_bench.reporting.tables import sources
from elmo_bench.reporting.tables.paper import section
from elmo_bench.sweeps.asked import Asked
from elmo_bench.sweeps.together import Outcome
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage import json_text
from elmo_bench.system.storage.files import write_text
from elmo_bench.system.storage.integrity import read_sealed, sealed

SPLITS = ("dev", "test")
AGAIN = "restore it (git checkout), or make it again by its sweep with run=false"


class Table(NamedTuple):
    """A table with those that stand below it, and the path of its markdown file; its JSON file lies beside it."""

    section: Section
    path: Path
    others: list[Section]


def write(outcome: Outcome) -> Table:
    """Writes the table of a sweep.

    Tasks that an earlier table of the same sweep has, and that are not asked for now, keep their rows, made again from
    their records.

    Args:
        outcome: of at least one run that could be composed.

    Raises:
        UserError: a record that cannot be read, or a place that cannot be written.
    """
    asked, config = outcome.plan.asked, outcome.plan.config
    path = place(config.results_root, asked)
    content = _content(outcome, config.results_root, _earlier(path.with_suffix(".json")))
    made = section(content, config.scale.note, *_changed(asked.changes))
    others = sources.sections(content)
    write_text(path, markdown([made, *others]))
    write_text(path.with_suffix(".json"), sealed(_json(made, asked, content)))
    return Table(made, path, others)


def markdown(tables: Sequence[Section]) -> str:
    """The page of a table and those below it."""
    first, *others = tables
    return inert("\n\n".join([first.markdown(level=1), *(each.markdown() for each in others)]) + "\n")


def _changed(changes: Sequence[str]) -> list[str]:
    return [f"All runs with {' '.join(changes)}."] if changes else []


def written(results_root: str | Path, records: Sequence[Record]) -> dict[str, list[Section]]:
    """The tables of sweeps that were written below the results, their cells filled from the records there are now.

    Returns:
        by the path of their markdown file below `results_root`; those without any record are left out.

    Raises:
        UserError: a table's JSON file is damaged, or of a sweep that there is no longer.
    """
    paths = sorted((Path(results_root) / "tables").glob("*.json"))
    made = {f"tables/{path.stem}.md": _from_file(path, records) for path in paths}
    return {name: tables for name, tables in made.items() if tables}


def _from_file(path: Path, records: Sequence[Record]) -> list[Section]:
    page = read_sealed(path, "table", AGAIN)
    sweep, scale, *_ = path.name.split(".")
    changes = page.get("changes", [])
    try:
        known = [Cell.of(plain) for plain in page["cells"]]
    except (LookupError, TypeError):
        raise UserError(f"not a readable table: its cells are not those of a sweep; {AGAIN}", path) from None
    asked = Asked(sweep, list(dict.fromkeys(cell.task for cell in known)), scale, page.get("seeds"), overrides=changes)
    here = [record for record in records if record.scale == scale]
    groups = {cell: cell.runs(here) for cell in known}
    if not any(groups.values()):
        return []
    content = Content(asked.layout, scale, groups, _of_records(here), asked.command_for)
    first = section(content, newest_record(here).note, *_changed(changes))
    return [first, *sources.sections(content)]


def place(results_root: str | Path, asked: Asked) -> Path:
    """The path of a table; overrides on which results depend are part of its name."""
    parts = [asked.sweep, asked.scale, *(re.sub(r"[^\w.=+-]+", "_", change) for change in asked.changes)]
    return Path(results_root) / "tables" / f"{'.'.join(parts)[:120]}.md"


def _content(outcome: Outcome, results_root: str, earlier: Sequence[Cell]) -> Content:
    asked, beyond = outcome.plan.asked, {cell.group: cell.beyond for cell in earlier}
    known = [cell._replace(beyond=cell.beyond or beyond.get(cell.group, ())) for cell in cells(outcome)]
    others = [cell for cell in earlier if cell.task not in asked.tasks]
    records = list(outcome.records.values())
    for task in dict.fromkeys(cell.task for cell in others):
        records += store.read_all(results_root, asked.scale, task)
    groups = {cell: cell.runs(records) for cell in (*known, *others)}
    shown = {cell: group for cell, group in groups.items() if group or cell.beyond or cell.task in asked.tasks}
    return Content(asked.layout, asked.scale, shown, _metrics(outcome, records), asked.command_for)


def _metrics(outcome: Outcome, records: Sequence[Record]) -> dict[str, str]:
    """The metric that each task monitors: as its newest record says, else as configured."""
    configured = {point.task: each.config.task.monitor for point, each in outcome.plan.composed.items()}
    return configured | _of_records(records)


def _of_records(records: Sequence[Record]) -> dict[str, str]:
    newest = sorted(records, key=lambda record: record.finished)
    return {record.task: record.monitor for record in newest}


def _earlier(path: Path) -> list[Cell]:
    """The cells of the earlier table, if there is one; a damaged one is written anew."""
    try:
        return [Cell.of(plain) for plain in read_sealed(path, "table", "")["cells"]]
    except (UserError, LookupError, TypeError):
        return []


def _json(made: Section, asked: Asked, content: Content) -> str:
    shown = {key: value for key, value in made._asdict().items() if key != "narrow"}
    told = shown | {"seeds": asked.seeds, "changes": asked.changes}
    told["cells"] = [_plain(content, cell) for cell in content.groups]
    return json_text.dumps(told, ensure_ascii=False, indent=1) + "\n"


def _plain(content: Content, cell: Cell) -> dict[str, Any]:
    """A cell with the names of its runs and their mean scores, in percent."""
    group, metric = content.groups[cell], content.metrics.get(cell.task)
    runs = [record.run for record in group.records] if group else []
    scores = {split: statistics.score(group.records, split, metric) for split in SPLITS} if group and metric else {}
    return {**cell._asdict(), "metric": metric, "runs": runs, **scores}
