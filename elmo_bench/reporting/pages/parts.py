"""The parts of the report's page: chapters of sentences, tables whose numbers name their runs, and charts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from elmo_bench.reporting.charts.svg import Chart
from elmo_bench.reporting.section import Number, Section


class Chapter(NamedTuple):
    """A part of the page with a line in the list of contents.

    Attributes:
        words: above everything else.
        more: words in a fold: how the numbers are computed.
    """

    anchor: str
    title: str
    words: Sequence[str]
    tables: Sequence[Section] = ()
    charts: Sequence[Chart] = ()
    more: Sequence[str] = ()


def as_json(chapter: Chapter) -> dict[str, Any]:
    """A chapter for other programs."""
    return {
        "title": chapter.title,
        "words": [*chapter.words, *chapter.more],
        "tables": [_table(table) for table in chapter.tables],
        "charts": [{"title": chart.title, "alt": chart.alt, "data": chart.data} for chart in chapter.charts],
    }


def _table(table: Section) -> dict[str, Any]:
    named = {"title": table.title, "note": table.note, "header": table.header}
    return {**named, "rows": [list(map(_cell, row)) for row in table.rows], "remarks": table.remarks}


def _cell(cell: str) -> Any:
    if not isinstance(cell, Number):
        return cell
    return {"text": cell, "below": cell.below, "runs": [each.run for each in cell.runs]}
