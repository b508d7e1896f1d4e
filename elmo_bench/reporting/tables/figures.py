"""Tables that are written whole, as JSON files with title, note, header and rows.

Figures are in results/figures, beside their pictures; the records of Tables 4 to 6 in results/analysis, without one.
"""

from __future__ import annotations

from pathlib import Path

from elmo_bench.reporting.section import Section
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage.integrity import read_sealed

AGAIN = "restore it (git checkout), or remove it and make it again"


def figures(results_root: str | Path) -> list[Section]:
    """A section for every figure, then one for every record of an analysis, by file name.

    Raises:
        UserError: a JSON file that is not one.
    """
    root = Path(results_root)
    drawn = [_section(path, ("title", "note", "picture")) for path in sorted((root / "figures").glob("*.json"))]
    tables = [_section(path, ("title", "note")) for path in sorted((root / "analysis").glob("*/*/*.json"))]
    return drawn + sorted(tables, key=lambda table: table.title)


def _section(path: Path, keys: tuple[str, ...]) -> Section:
    page = read_sealed(path, "figure", AGAIN)
    title, note, *picture = texts = [page.get(key) for key in keys]
    if not all(isinstance(text, str) for text in texts):
        raise UserError(f"not a readable figure: it lacks {', '.join(keys[:-1])} or {keys[-1]}; {AGAIN}", path)
    listed = page.get("rows")
    rows = [page.get("header"), *(listed if isinstance(listed, list) else [listed])]
    for row in rows:
        if not isinstance(row, list) or not all(isinstance(cell, str) for cell in row):
            raise UserError(f"not a readable figure: its header or a row is not a list of texts; {AGAIN}", path)
    header, *body = map(tuple, rows)
    return Section(str(title), str(note), header, body, [], path.parent / str(picture[0]) if picture else None)
