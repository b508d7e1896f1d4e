"""The files of a report: README.md, report.html, report.json and the picture. The same records give the same bytes."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from elmo_bench.records.store import Record, read_all
from elmo_bench.reporting.pages import html as page
from elmo_bench.reporting.section import Section
from elmo_bench.reporting.statistics.gains import READING
from elmo_bench.reporting.statistics.groups import conflicts
from elmo_bench.reporting.tables import files as table_files
from elmo_bench.reporting.tables import tables
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage.files import write_text

INTRODUCTION = (
    "Written by `elmo-bench report` from the records under `runs/`, one a finished run. Figures are percent, mean ± "
    "sample standard deviation over the seeds; dev is that of the selected epoch. A number belongs to its scale: "
    "numbers of different scales, or of different biLMs, do not compare."
)
MARKS = "<!-- tables: written by make report -->", "<!-- /tables -->"


def refresh(results_root: str | Path, readme: Path | None = None) -> list[Section]:
    """Writes the files of the report from all records, and the tables between `readme`'s markers.

    Records that claim one cell of a table with different biLMs or data are named on stderr.

    Raises:
        UserError: a record, table or figure that cannot be read, a readme without the markers; then nothing is written.
    """
    records = read_all(results_root)
    sections, texts = _made(records, results_root)
    files = {Path(results_root) / name: text for name, text in texts.items()}
    if readme is not None:
        files[readme] = embedded(readme.read_text(encoding="utf-8"), tables.overview(records))
    for path, text in files.items():
        write_text(path, text)
    for line in conflicts(records):
        print(line, file=sys.stderr)
    return sections


def contents(records: Sequence[Record], results_root: str | Path) -> dict[str, str]:
    """The files of the report, by their path below `results_root`. Raises `UserError` as `refresh` does."""
    return _made(records, results_root)[1]


def _made(records: Sequence[Record], results_root: str | Path) -> tuple[list[Section], dict[str, str]]:
    """The sections of the report, and its files."""
    swept = table_files.written(results_root, records)
    sections = tables.everything(records, results_root, swept)
    return sections, {"README.md": markdown(sections), **page.pages(records, swept, tables.figures(results_root))}


# Markdown.


def markdown(sections: Sequence[Section]) -> str:
    """results/README.md."""
    parts = ["# Results", INTRODUCTION, READING]
    for section in sections:
        parts += [f"## {section.title}", section.note, _pipes(section)]
        if section.remarks:
            parts.append("\n".join(f"- {line}" for line in section.remarks))
        if section.picture:
            parts.append(f"![{section.title}](figures/{section.picture.name})")
    return "\n\n".join(parts if sections else [*parts, "No run is recorded yet."]) + "\n"


def embedded(text: str, sections: Sequence[Section]) -> str:
    """A page whose text between the markers is replaced by these tables.

    Raises:
        UserError: the page lacks the markers.
    """
    before, first, rest = text.partition(MARKS[0])
    _, last, after = rest.partition(MARKS[1])
    if not (first and last):
        raise UserError(f"lacks the markers {MARKS[0]} and {MARKS[1]}, between which the tables are written")
    parts = [first, *(part for each in sections for part in (each.note, _pipes(each), *each.remarks)), last]
    return before + "\n\n".join(parts) + after


def _pipes(section: Section) -> str:
    return "\n".join([_pipe(section.header), _pipe(["---"] * len(section.header)), *map(_pipe, section.rows)])


def _pipe(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
