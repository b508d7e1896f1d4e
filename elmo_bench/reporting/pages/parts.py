"""The parts of the report's page: chapters of sentences, tables whose numbers name their runs, and charts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from elmo_bench.reporting.charts.svg import Chart
from elmo_bench.reporting.tables.numbers import Number


class Table(NamedTuple):
    """A table with a title and a note above it; the first cell of a row names the row.

    Args:
        narrow: whether it fits a phone as it is; any other becomes there a list of cards, one a row.
    """

    title: str
    note: str
    header: tuple[str, ...]
    rows: list[list[str | Number]]
    narrow: bool = False


class Image(NamedTuple):
    """A picture in a file."""

    title: str
    path: Path


class Chapter(NamedTuple):
    """A part of the page with a line in the list of contents."""

    anchor: str
    title: str
    words: list[str]
    tables: list[Table]
    charts: Sequence[Chart] = ()
    images: Sequence[Image] = ()


def as_json(chapter: Chapter) -> dict[str, Any]:
    """A chapter for other programs."""
    return {
        "title": chapter.title,
        "words": chapter.words,
        "tables": [_table(table) for table in chapter.tables],
        "charts": [{"title": chart.title, "alt": chart.alt, "data": chart.data} for chart in chapter.charts],
        "images": [{"title": image.title, "file": f"figures/{image.path.name}"} for image in chapter.images],
    }


def _table(table: Table) -> dict[str, Any]:
    rows = [[_cell(cell) for cell in row] for row in table.rows]
    return {"title": table.title, "note": table.note, "header": table.header, "rows": rows}


def _cell(cell: str | Number) -> Any:
    if isinstance(cell, str):
        return cell
    return {"text": cell.text, "below": cell.below, "runs": [each.run for each in cell.runs]}
