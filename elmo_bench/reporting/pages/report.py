"""The files of a report; the same records give the same bytes.

README.md (the overview), replication.md (the paper's findings), a page a task, the tables of sweeps, studies.md,
report.html, report.json and the picture of gains.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from elmo_bench.configuration.tables import in_order
from elmo_bench.records import studies
from elmo_bench.records.record import Record
from elmo_bench.records.store import read_all, whole
from elmo_bench.reporting.pages import html
from elmo_bench.reporting.pages.chapters import chapters
from elmo_bench.reporting.section import Section, inert, pipes
from elmo_bench.reporting.statistics.findings import UNTESTED, Evaluated, evaluated
from elmo_bench.reporting.statistics.gains import READING
from elmo_bench.reporting.statistics.outcomes import SCALES, by_scale, compared
from elmo_bench.reporting.tables import paper, replication, tables
from elmo_bench.reporting.tables.studies import section as of_study
from elmo_bench.system import places
from elmo_bench.system.errors import UserError
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
    records = whole(read_all(results_root))
    report = made(records, results_root)
    files = {Path(results_root) / name: text for name, text in report.files.items()}
    if readme is not None:
        text = embedded(readme.read_text(encoding="utf-8"), report.overview)
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
        files: their contents by their path below `results_root`.
    """

    overview: list[Section]
    sections: list[Section]
    findings: list[list[Evaluated]]
    files: dict[str, str]


def made(records: Sequence[Record], results_root: str | Path) -> Report:
    """The report of some records. Raises `UserError` as `refresh` does."""
    runs, of_bilm = by_scale(records), studies.read_all(results_root)
    tabled = paper.of_scales(runs)
    swept, studied = [table for of_sweep in tabled.values() for table in of_sweep], [*map(of_study, of_bilm)]
    spoken = {*runs, *(study.scale for study in of_bilm)}
    scales = [*(scale for scale in SCALES if scale in spoken), *sorted(spoken - {*SCALES})]
    said = (_spoken_of(evaluated(runs.get(scale, []), scale, of_bilm), results_root) for scale in scales)
    found = [of_scale for of_scale in said if of_scale]
    overview, read = tables.overview(runs), tables.read(of_bilm)
    outcomes = [outcome for here in runs.values() for outcome in here]
    of_tasks = [(outcome.task, tables.sections_of(outcome, read)) for outcome in outcomes]
    by_task = {
        task: [section for name, sections in of_tasks if name == task for section in sections]
        for task in in_order({name for name, _ in of_tasks})
    }
    pages = {f"tasks/{task}.md": markdown(task, "", sections) for task, sections in by_task.items()}
    pages |= {name: paper.markdown(of_sweep) for name, of_sweep in tabled.items()}
    if of_bilm:
        pages["studies.md"] = markdown("Studies of the biLM", "", studied)
    if found:
        pages["replication.md"] = replication.markdown(found, compared(runs))
    tables_of = [sections for _, sections in of_tasks]
    parts = chapters(runs, swept, of_bilm, found, tables_of) if runs or of_bilm else []
    files = {"README.md": _front(overview, pages), **pages, **html.pages(parts, runs)}
    others = [section for sections in by_task.values() for section in sections]
    return Report(overview, [*overview, *others, *swept, *studied], found, files)


def _spoken_of(found: list[Evaluated], results_root: str | Path) -> list[Evaluated]:
    """The findings of which a user's own runs speak; of the reference runs, all."""
    if places.is_evidence(results_root):
        return found
    rows = ((each, [row for row in each.rows if row.verdict != UNTESTED]) for each in found)
    return [each._replace(rows=kept) for each, kept in rows if kept]


# Markdown.


def _front(overview: Sequence[Section], pages: Iterable[str]) -> str:
    """results/README.md: the overview, and where the rest stands."""
    if not overview:
        return "\n\n".join(["# Results", INTRODUCTION, "No run is recorded yet."]) + "\n"
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
