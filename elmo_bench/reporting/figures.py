"""Figures: JSON files (title, note, header, rows, picture) beside their pictures, in the folder results/figures."""

from __future__ import annotations

from pathlib import Path

from elmo_bench.reporting.section import Section
from elmo_bench.system.errors import UserError
from elmo_bench.system.integrity import read_sealed

AGAIN = "restore it (git checkout), or remove it and make it again"


def figures(results_root: str | Path) -> list[Section]:
    """A section for every figure, by file name.

    Raises:
        UserError: a JSON file that is not a figure.
    """
    return [_figure(path) for path in sorted((Path(results_root) / "figures").glob("*.json"))]


def _figure(path: Path) -> Section:
    page = read_sealed(path, "figure", AGAIN)
    title, note, picture = (page.get(key) for key in ("title", "note", "picture"))
    if not isinstance(title, str) or not isinstance(note, str) or not isinstance(picture, str):
        raise UserError(f"not a readable figure: it lacks title, note or picture; {AGAIN}", path)
    listed = page.get("rows")
    rows = [page.get("header"), *(listed if isinstance(listed, list) else [listed])]
    for row in rows:
        if not isinstance(row, list) or not all(isinstance(cell, str) for cell in row):
            raise UserError(f"not a readable figure: its header or a row is not a list of texts; {AGAIN}", path)
    header, *body = map(tuple, rows)
    return Section(title, note, header, body, [], path.parent / picture)
