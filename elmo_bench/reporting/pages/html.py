"""The report as one self-contained HTML page without a script, and as JSON."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from elmo_bench.records.studies import StudyRecord
from elmo_bench.reporting.charts.forest import forest
from elmo_bench.reporting.charts.svg import drawn
from elmo_bench.reporting.pages import pictures
from elmo_bench.reporting.pages.answer import answer
from elmo_bench.reporting.pages.chapter import Chapter
from elmo_bench.reporting.pages.cost import cost
from elmo_bench.reporting.section import Number, Section
from elmo_bench.reporting.statistics.findings import RULE, UNTESTED, Evaluated
from elmo_bench.reporting.statistics.gains import READING
from elmo_bench.reporting.statistics.outcomes import Comparison, Scales, compared
from elmo_bench.reporting.tables import replication
from elmo_bench.reporting.tables.studies import section
from elmo_bench.system.storage import json_text

SWEPT = "Mean ± sample standard deviation over the seeds, whose number stands in brackets."
PERCENT = (
    "Percent, mean ± sample standard deviation over the seeds; dev is that of the selected epoch. "
    "The seeds of a row open to its runs."
)


def chapters(
    scales: Scales,
    swept: Sequence[Section] = (),
    studies: Sequence[StudyRecord] = (),
    findings: Sequence[Sequence[Evaluated]] = (),
    of_tasks: Sequence[Sequence[Section]] = (),
) -> list[Chapter]:
    """The chapters of the page, the answer and the findings first; those without content are left out.

    `of_tasks` has of every task and scale the scores and, if something is compared, the gains.
    """
    scored, gained = ([table for each in of_tasks for table in each[part]] for part in (slice(1), slice(1, None)))
    chapters = [
        answer(scales),
        _findings(findings, compared(scales)),
        Chapter("gains", "Gains with intervals", [], gained, more=[READING] if gained else []),
        Chapter("sweeps", "The paper's tables, and other sweeps", [SWEPT] if swept else [], swept),
        pictures.fewer_examples(scales),
        pictures.layer_weights(scales),
        pictures.over_epochs(scales),
        pictures.training(scales),
        Chapter("scores", "Scores", [PERCENT] if scored else [], scored),
        cost(scales),
        Chapter("studies", "Studies of the biLM", [], [*map(section, studies)], pictures.what_layers_hold(studies)),
    ]
    full = (each._replace(tables=[table for table in each.tables if not table.is_empty]) for each in chapters)
    return [chapter for chapter in full if chapter.words or chapter.tables or chapter.charts]


def _findings(by_scale: Sequence[Sequence[Evaluated]], mains: Mapping[str, Sequence[Comparison]]) -> Chapter:
    """Each finding of the paper, ours, and a verdict; the numbers open to the runs behind them."""
    corrected = ((found[0].scale, replication.families(found, mains.get(found[0].scale, []))) for found in by_scale)
    families = (said and f"Scale {scale}. {said}" for scale, said in corrected)
    tested = [[each for each in found if any(row.verdict != UNTESTED for row in each.rows)] for found in by_scale]
    pictured = [replication.glance(found)._replace(shown=True) for found in tested if found]
    return Chapter(
        "findings",
        replication.TITLE,
        [f"Scale {found[0].scale}: {replication.counts(found)}." for found in by_scale],
        [*pictured, *map(_untested, by_scale)],
        more=[RULE.replace("*", ""), *said] if (said := [*filter(None, families)]) else [],
    )


def _untested(found: Sequence[Evaluated]) -> Section:
    """The findings of a scale of which no run speaks yet, with the paper's figures and the command that tests them."""
    rows = [
        (
            f"{each.finding.finding} ({each.finding.where})",
            "; ".join(f"{task or 'biLM'} {said}" for task, said in each.finding.paper.items()),
            each.command,
        )
        for each in found
        if all(row.verdict == UNTESTED for row in each.rows)
    ]
    return Section(f"Scale {found[0].scale}: not tested", "", ("finding", "the paper", "command"), rows)


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
