"""The recorded studies of the biLM, Tables 4 to 7: JSON files results/analysis/<scale>/<study>/<id>.json.

Each has a title, a note, a header and rows, as the report shows them.
"""

from __future__ import annotations

from pathlib import Path

from elmo_bench.reporting.section import Section
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage.integrity import read_sealed

AGAIN = "restore it (git checkout), or remove it and make it again"


def studies(results_root: str | Path) -> list[Section]:
    """A section for every record of a study, by its title. Raises `UserError` for a JSON file that is not one."""
    found = map(_section, sorted((Path(results_root) / "analysis").glob("*/*/*.json")))
    return sorted(found, key=lambda table: table.title)


def _section(path: Path) -> Section:
    page = read_sealed(path, "study", AGAIN)
    title, note = page.get("title"), page.get("note")
    if not (isinstance(title, str) and isinstance(note, str)):
        raise UserError(f"not a readable study: it lacks title or note; {AGAIN}", path)
    listed = page.get("rows")
    rows = [page.get("header"), *(listed if isinstance(listed, list) else [listed])]
    for row in rows:
        if not isinstance(row, list) or not all(isinstance(cell, str) for cell in row):
            raise UserError(f"not a readable study: its header or a row is not a list of texts; {AGAIN}", path)
    header, *body = map(tuple, rows)
    return Section(title, note, header, body)
