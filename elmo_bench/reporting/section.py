"""The parts of a results page."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


class Section(NamedTuple):
    """A table with a title, a note above it and remarks below it; for a figure, also the path of its picture."""

    title: str
    note: str
    header: tuple[str, ...]
    rows: list[tuple[str, ...]]
    remarks: list[str]
    picture: Path | None = None
