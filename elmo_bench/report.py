"""Ours beside the paper's, from the records: `python -m elmo_bench.report` writes results/README.md and report.html.

After the tables of the runs come the figures, each a JSON file beside its picture in results/figures. The same records
and figures give the same bytes. The project's own README.md shows the first tables, between its marks.
"""

from __future__ import annotations

import base64
import html
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from elmo_bench.experiment.store import read_all, write_text
from elmo_bench.reporting.tables import Section, figures, overview, sections
from elmo_bench.system import console, places
from elmo_bench.system.errors import UserError

INTRODUCTION = (
    "Written by `make report` from the records under `runs/`, one a finished run. Figures are percent, mean ± sample "
    "standard deviation over the seeds; dev is that of the selected epoch. A number belongs to its scale: numbers of "
    "different scales, or of different biLMs, do not compare."
)


MARKS = "<!-- tables: written by make report -->", "<!-- /tables -->"


def markdown(tables: list[Section]) -> str:
    """results/README.md."""
    parts = ["# Results", INTRODUCTION]
    for table in tables:
        parts += [f"## {table.title}", table.note, _pipes(table)]
        if table.remarks:
            parts.append("\n".join(f"- {line}" for line in table.remarks))
        if table.picture:
            parts.append(f"![{table.title}](figures/{table.picture.name})")
    return "\n\n".join(parts if tables else [*parts, "No run is recorded yet."]) + "\n"


def embedded(text: str, tables: list[Section]) -> str:
    """A page with these tables between its marks, in place of what stood there.

    Raises:
        UserError: the page lacks the marks.
    """
    before, first, rest = text.partition(MARKS[0])
    _, last, after = rest.partition(MARKS[1])
    if not (first and last):
        raise UserError(f"lacks the marks {MARKS[0]} and {MARKS[1]}, between which the tables stand")
    parts = [first, *(part for table in tables for part in (table.note, _pipes(table))), last]
    return before + "\n\n".join(parts) + after


def _pipes(table: Section) -> str:
    return "\n".join([_pipe(table.header), _pipe(["---"] * len(table.header)), *map(_pipe, table.rows)])


def _pipe(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem;color:#222}"
    "table{border-collapse:collapse;font-variant-numeric:tabular-nums}td,th{padding:.3rem .7rem;text-align:left;"
    "border-bottom:1px solid #ddd}th{border-bottom:2px solid #888}h2{margin-top:2.5rem}.note{color:#555}"
)


def page(tables: list[Section]) -> str:
    """results/report.html: one page that needs no other file."""
    body = [f"<h1>Results</h1><p>{html.escape(INTRODUCTION.replace('`', ''))}</p>"]
    for table in tables:
        head = "".join(f"<th>{html.escape(cell)}</th>" for cell in table.header)
        rows = "\n".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in table.rows
        )
        remarks = "".join(f"<li>{html.escape(line)}</li>" for line in table.remarks)
        picture = _embedded(table.picture) if table.picture else ""
        body.append(
            f'<h2>{html.escape(table.title)}</h2>\n<p class="note">{html.escape(table.note)}</p>\n'
            f"<table>\n<tr>{head}</tr>\n{rows}\n</table>\n<ul>{remarks}</ul>{picture}"
        )
    return (
        '<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8"><title>elmo_bench: results</title>'
        f"<style>{STYLE}</style></head>\n<body>\n" + "\n".join(body) + "\n</body>\n</html>\n"
    )


def _embedded(picture: Path) -> str:
    """The picture within the page. Raises `UserError` where it is missing."""
    try:
        data = base64.b64encode(picture.read_bytes()).decode()
    except OSError as error:
        raise UserError(f"cannot be read ({error.strerror}); make the figure again", picture) from None
    return f'<img alt="{html.escape(picture.stem)}" src="data:image/png;base64,{data}" style="max-width:100%">'


def show(tables: list[Section]) -> None:
    """Prints the tables; whole lines where the output is no terminal."""
    from rich.console import Console
    from rich.table import Table

    console = Console(width=None if sys.stdout.isatty() else 200, highlight=False)
    for section in tables:
        table = Table(*section.header, title=section.title, title_justify="left")
        for row in section.rows:
            table.add_row(*row)
        console.print(table)
        for line in (section.note, *section.remarks):
            console.print(line, markup=False, soft_wrap=True)


def refresh(results_root: str | Path, readme: Path | None = None) -> list[Section]:
    """Writes README.md and report.html anew from all records, and the first tables between the marks of `readme`."""
    found = read_all(results_root)
    first = overview(found)
    tables = [*first, *sections(found), *figures(results_root)]
    if readme is not None:
        write_text(readme, embedded(readme.read_text(encoding="utf-8"), first))
    write_text(Path(results_root) / "README.md", markdown(tables))
    write_text(Path(results_root) / "report.html", page(tables))
    return tables


def main() -> None:
    """The entry point."""
    given: dict[str, Any] = console.arguments(sys.argv[1:], (), ("results_root",))
    elsewhere = given.get("results_root")
    results_root = elsewhere or places.ROOT / "results"
    show(refresh(results_root, None if elsewhere else places.ROOT / "README.md"))
    print(f"written: {Path(results_root) / 'README.md'}, report.html")


if __name__ == "__main__":
    console.report(main)
