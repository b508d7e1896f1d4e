"""The report as one self-contained HTML page without a script, and as JSON."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from pathlib import Path

from elmo_bench.records.store import Record
from elmo_bench.reporting.charts.forest import forest
from elmo_bench.reporting.charts.svg import drawn
from elmo_bench.reporting.pages import layers, learning, results
from elmo_bench.reporting.pages.answer import answer
from elmo_bench.reporting.pages.findings import findings
from elmo_bench.reporting.pages.parts import Chapter, Image, Table, as_json
from elmo_bench.reporting.pages.sweeps import sweeps
from elmo_bench.reporting.section import TEMPLATES, Section
from elmo_bench.reporting.statistics.claims import Finding
from elmo_bench.reporting.statistics.differences import Earlier
from elmo_bench.reporting.tables.numbers import Number
from elmo_bench.reporting.tables.outcomes import Scales, by_scale, compared
from elmo_bench.system.errors import UserError


def chapters(
    scales: Scales, figures: Sequence[Section], tables: Sequence[Earlier] = (), claims: Sequence[Sequence[Finding]] = ()
) -> list[Chapter]:
    """The chapters of the page, the answer and the findings first; those without content are left out."""
    chapters = [
        answer(scales),
        findings(claims),
        results.gains(scales),
        sweeps(tables),
        learning.fewer_examples(scales),
        layers.layer_weights(scales),
        layers.over_epochs(scales),
        learning.training(scales),
        results.scores(scales),
        results.further_metrics(scales),
        results.cost(scales),
        *map(_picture, figures),
    ]
    return [chapter for chapter in chapters if chapter.words or chapter.tables or chapter.charts]


def _picture(section: Section) -> Chapter:
    """The chapter of a figure of the folder figures/."""
    images = [Image(section.title, section.picture)] if section.picture else []
    anchor = section.picture.stem if section.picture else section.title.replace(" ", "-")
    table = Table("", "", section.header, [list(row) for row in section.rows])
    return Chapter(anchor, section.title, [section.note], [table], images=images)


def pages(
    records: Sequence[Record],
    tables: Sequence[Earlier],
    figures: Sequence[Section],
    claims: Sequence[Sequence[Finding]] = (),
) -> dict[str, str]:
    """The contents of report.html, report.json and, where something is compared, figures/gains.svg, by name.

    Args:
        records: of all runs.
        tables: of sweeps.
        figures: those of the folders figures/ and analysis/.
        claims: the findings of the paper at each scale.

    Raises:
        UserError: a record or a picture that cannot be read.
    """
    scales = by_scale(records)
    found = chapters(scales, figures, tables, claims) if records or figures else []
    made = {"report.html": html(found, _notes(scales)), "report.json": data(found)}
    if mains := compared(scales):
        picture = forest("gains", "Gain of +ELMo over the baseline", mains)
        made["figures/gains.svg"] = drawn(picture, page=False) + "\n"
    return made


def _notes(scales: Scales) -> list[str]:
    """What each scale is, as the configuration says it."""
    return [outcomes[0].records[0]["config"]["scale"]["note"] for outcomes in scales.values()]


def data(chapters: Sequence[Chapter]) -> str:
    """results/report.json: tables with the ids of the runs behind each number, and the data of the charts."""
    listed = {chapter.anchor: as_json(chapter) for chapter in chapters}
    return json.dumps(listed, ensure_ascii=False, indent=1) + "\n"


def html(chapters: Sequence[Chapter], notes: Sequence[str]) -> str:
    """results/report.html.

    Args:
        notes: what each scale is.

    Raises:
        UserError: a picture that cannot be read.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip
    environment.filters |= {"data_url": _data_url, "drawn": drawn, "unbroken": _unbroken}
    environment.tests["number"] = lambda cell: isinstance(cell, Number)
    return environment.get_template("report.html").render(chapters=chapters, notes=notes)


def _unbroken(text: str) -> str:
    """A short text with spaces at which no line breaks, so that long texts beside it give way."""
    return text.replace(" ", "\N{NO-BREAK SPACE}") if len(text) <= len("100.00 ± 10.00") else text


def _data_url(picture: Path) -> str:
    try:
        return f"data:image/png;base64,{base64.b64encode(picture.read_bytes()).decode()}"
    except OSError as error:
        raise UserError(f"cannot be read ({error.strerror}); make the figure again", picture) from None
