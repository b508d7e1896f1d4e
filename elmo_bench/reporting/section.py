"""The parts of a results page, and where its templates lie."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

TEMPLATES = Path(__file__).parent / "pages" / "templates"


class Section(NamedTuple):
    """A table with a title, a note above it and remarks below it.

    A figure also has the path of its picture; a table of gains also has `numbers`, for report.json: an object a row.
    """

    title: str
    note: str
    header: tuple[str, ...]
    rows: list[tuple[str, ...]]
    remarks: list[str]
    picture: Path | None = None
    numbers: Sequence[dict[str, Any]] = ()
