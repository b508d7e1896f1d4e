"""The files of a report; the same records give the same bytes.

README.md (the overview), replication.md (the paper's findings), a page a task, the tables of sweeps, studies.md,
report.html (one page without a script, which needs no other file), report.json and the picture of gains.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from elmo_bench.configuration.tables import in_order
from elmo_bench.records import studies
from elmo_bench.records.record import Record
from elmo_bench.records.store import full_runs, read_all
from elmo_bench.reporting import charts
from elmo_bench.reporting.pages.chapters import Chapter, chapters
from elmo_bench.reporting.section import Number, Section, inert, pipes
from elmo_bench.reporting.statistics.findings import UNTESTED, Evaluated, evaluated
from elmo_bench.reporting.statistics.gains import READING
from elmo_bench.reporting.statistics.outcomes import SCALES, by_scale, compared
from elmo_bench.reporting.tables import paper, replication, tables
from elmo_bench.reporting.tables.tables import of_study
from elmo_bench.system import places
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage import json_text
from elmo_bench.system.storage.files import read_text, write_text

WRITTEN = "Written by `elmo-bench report`"
INTRODUCTION = (
    f"{WRITTEN} from the records under `runs/`, one a finished run. Figures are percent, mean ± "
    "sample standard deviation over the seeds; dev is that of the selected epoch. A number belongs to its scale: "
    "numbers of different scales, or of different biLMs, do not compare."
)
MARKS = "<!-- tables: written by make report -->", "<!-- /tables -->"
VERDICTS = "<!-- verdicts -->", "<!-- /verdicts -->"


def refresh(results_root: str | Path, readme: Path | None = None) -> list[Section]:
    """Writes the files of the report from all records, and the tables and verdicts between `readme`'s markers.

    Raises:
        UserError: a record, table or figure that cannot be read, a readme without the markers; then nothing is written.
    """
    records = full_runs(read_all(results_root))
    report = made(records, results_root)
    files = {Path(results_root) / name: text for name, text in report.files.items()}
    if readme is not None:
        text = embedded(read_text(readme), report.overview)
        files[readme] = between(text, VERDICTS, [replication.summary(report.findings)])
    front = Path(results_root) / "README.md"
    if front.is_file() and WRITTEN not in read_text(front):
        raise UserError(f"not {WRITTEN[0].lower()}{WRITTEN[1:]}; move it away, or give another results_root", front)
    for path, text in files.items():
        write_text(path, text)
    return report.sections


class Report(NamedTuple):
    """A report before it is written.

    Attributes:
        overview, sections: the tables of the overview, and all tables.
        findings: of each scale.
        pictures: the paper's figures, by the names of their files without the ending.
        files: their contents by their path below `results_root`.
    """

    overview: list[Section]
    sections: list[Section]
    findings: list[list[Evaluated]]
    pictures: dict[str, charts.Chart]
    files: dict[str, str]


def made(records: Sequence[Record], results_root: str | Path) -> Report:
    """The report of some records; of a user's own with the reference runs of the same settings beside them.

    Raises `UserError` as `refresh` does.
    """
    runs, of_bilm = by_scale(records), studies.read_all(results_root)
    contents = paper.of_scales(runs)
    tabled = {name: paper.sections(content) for name, content in contents.items()}
    swept, studied = [table for of_sweep in tabled.values() for table in of_sweep], [*map(of_study, of_bilm)]
    own, scales, found = not places.is_evidence(results_root), {*runs, *(study.scale for study in of_bilm)}, []
    for scale in sorted(scales, key=lambda scale: ([*SCALES, scale].index(scale), scale)):
        rows = (
            (each, [row for row in each.rows if not own or row.verdict != UNTESTED])
            for each in evaluated(runs.get(scale, []), scale, of_bilm)
        )  # of a user's own runs, what they speak of
        said = [each._replace(rows=kept) for each, kept in rows if kept or not own]
        found += [said] if said else []
    overview, read, mains = tables.overview(runs), tables.read(of_bilm), compared(runs)
    beside = [each for each in tables.beside(records) if tables.ALONE not in each.remarks] if own else []
    outcomes = [outcome for here in runs.values() for outcome in here]
    scored = [(outcome.task, tables.sections_of(outcome, read)) for outcome in outcomes]
    of_tasks = {task: [*chain(*(parts for name, parts in scored if name == task))] for task in in_order(dict(scored))}
    pages = {f"tasks/{task}.md": markdown(task, "", sections) for task, sections in of_tasks.items()}
    pages |= {name: paper.markdown(of_sweep) for name, of_sweep in tabled.items()}
    if of_bilm:
        pages["studies.md"] = markdown("Studies of the biLM", "", studied)
    if found:
        pages["replication.md"] = replication.markdown(found, mains)
    pictures, parts = charts.pictures(contents), []
    if scales:
        parts = chapters(runs, swept, of_bilm, found, [sections for _, sections in scored], beside, pictures.items())
    files = {"README.md": _front([*overview, *beside], pages), **pages, "report.json": data(parts)}
    files["report.html"] = html(parts, [here[0].note for here in runs.values()])
    if mains:
        picture = charts.gains("Gain of +ELMo over the baseline", mains)
        files["figures/gains.svg"] = charts.saved(picture, "svg").decode()
    return Report(overview, [*overview, *beside, *chain(*of_tasks.values()), *swept, *studied], found, pictures, files)


# Markdown.


def _front(overview: Sequence[Section], pages: Iterable[str]) -> str:
    """results/README.md: the overview, and where the rest stands."""
    if not overview:
        return markdown("Results", f"{INTRODUCTION}\n\nNo run is recorded yet.", [])
    listed = "\n".join(f"- [{name}]({name})" for name in (*pages, "report.html"))
    return markdown("Results", f"{INTRODUCTION}\n\n{READING}\n\n{listed}", overview)


def markdown(title: str, words: str, sections: Sequence[Section]) -> str:
    """A page of tables."""
    parts = [f"# {title}", *([words] if words else []), *(section.markdown() for section in sections)]
    return inert("\n\n".join(parts) + "\n")


def embedded(text: str, sections: Sequence[Section]) -> str:
    """A page whose text between the markers of tables is replaced by these. Raises `UserError` as `between` does."""
    return between(
        text, MARKS, [part for each in sections for part in (each.note, pipes(each.header, each.rows), *each.remarks)]
    )


def between(text: str, marks: tuple[str, str], parts: Sequence[str]) -> str:
    """A page whose text between two markers is replaced by these paragraphs.

    Raises:
        UserError: the page lacks the markers.
    """
    before, first, rest = text.partition(marks[0])
    _, last, after = rest.partition(marks[1])
    if not (first and last):
        raise UserError(f"lacks the markers {marks[0]} and {marks[1]}, between which the report writes")
    return before + "\n\n".join([first, *map(inert, parts), last]) + after


# HTML and JSON.


def html(chapters: Sequence[Chapter], notes: Sequence[str]) -> str:
    """results/report.html; the notes say what the scales are."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("elmo_bench.reporting.pages"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip
    environment.filters |= {"drawn": charts.inline, "code": _code}
    return environment.get_template("report.html").render(chapters=chapters, notes=notes)


def _code(text: str) -> Any:
    """A text in which what stands between backticks is code."""
    from markupsafe import Markup, escape

    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))


def data(chapters: Sequence[Chapter]) -> str:
    """results/report.json: tables with the ids of the runs behind each number, and the frames of the pictures."""
    listed = {
        chapter.anchor: {
            "title": chapter.title,
            "words": [*chapter.words, *chapter.more],
            "tables": [
                dict(zip(Section._fields[:5], table, strict=False))
                | {"rows": [[_cell(cell) if isinstance(cell, Number) else cell for cell in row] for row in table.rows]}
                for table in chapter.tables
            ],
            "charts": [
                {"title": chart.title, "alt": chart.alt, "data": json_text.parse(chart.data.to_json(orient="split"))}
                for chart in chapter.charts
            ],
        }
        for chapter in chapters
    }
    return json_text.dumps(listed, ensure_ascii=False, indent=1) + "\n"


def _cell(cell: Number) -> dict[str, Any]:
    return {"text": cell, "below": cell.below, "runs": [each.run for each in cell.runs]}
