"""Figures: JSON files (title, note, header, rows, picture) beside their pictures, in the folder results/figures."""

from __future__ import annotations

from pathlib import Path

from elmo_bench.reporting.section import Section
from elmo_bench.system import json_text
from elmo_bench.system.errors import UserError


def figures(results_root: str | Path) -> list[Section]:
    """A section for every figure, by file name.

    Raises:
        UserError: a JSON file that is not a figure.
    """
    return [_figure(path) for path in sorted((Path(results_root) / "figures").glob("*.json"))]


def _figure(path: Path) -> Section:
    try:
        page = json_text.read(path)
        rows = [tuple(row) for row in page["rows"]]
        return Section(page["title"], page["note"], tuple(page["header"]), rows, [], path.parent / page["picture"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"not a readable figure ({error!r}); remove it and make it again", path) from None
