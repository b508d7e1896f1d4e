"""The report as one self-contained HTML page without a script, and as JSON."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from elmo_bench.reporting.charts.charts import forest
from elmo_bench.reporting.charts.svg import drawn
from elmo_bench.reporting.pages.chapters import Chapter
from elmo_bench.reporting.section import Number, Section
from elmo_bench.reporting.statistics.outcomes import Scales, compared
from elmo_bench.system.storage import json_text


def pages(chapters: Sequence[Chapter], scales: Scales) -> dict[str, str]:
    """The contents of report.html, report.json and, where something is compared, figures/gains.svg, by name."""
    notes = [outcomes[0].note for outcomes in scales.values()]
    made = {"report.html": html(chapters, notes), "report.json": data(chapters)}
    if mains := compared(scales):
        picture = forest("gains", "Gain of +ELMo over the baseline", mains)
        made["figures/gains.svg"] = drawn(picture, page=False) + "\n"
    return made


def data(chapters: Sequence[Chapter]) -> str:
    """results/report.json: tables with the ids of the runs behind each number, and the data of the charts."""
    listed = {
        chapter.anchor: {
            "title": chapter.title,
            "words": [*chapter.words, *chapter.more],
            "tables": [_table(table) for table in chapter.tables],
            "charts": [{"title": chart.title, "alt": chart.alt, "data": chart.data} for chart in chapter.charts],
        }
        for chapter in chapters
    }
    return json_text.dumps(listed, ensure_ascii=False, indent=1) + "\n"


def _table(table: Section) -> dict[str, Any]:
    rows = [list(map(_cell, row)) for row in table.rows]
    return {"title": table.title, "note": table.note, "header": table.header, "rows": rows, "remarks": table.remarks}


def _cell(cell: str) -> Any:
    if not isinstance(cell, Number):
        return cell
    return {"text": cell, "below": cell.below, "runs": [each.run for each in cell.runs]}


def html(chapters: Sequence[Chapter], notes: Sequence[str]) -> str:
    """results/report.html."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip
    environment.filters |= {"drawn": drawn, "unbroken": _unbroken, "code": _code}
    environment.tests["number"] = lambda cell: isinstance(cell, Number)
    return environment.get_template("report.html").render(chapters=chapters, notes=notes)


def _code(text: str) -> Any:
    """A text in which what stands between backticks is code."""
    from markupsafe import Markup, escape

    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))


def _unbroken(text: str) -> str:
    """A short text with spaces at which no line breaks, so that long texts beside it give way."""
    return text.replace(" ", "\N{NO-BREAK SPACE}") if len(text) <= len("100.00 ± 10.00") else text
