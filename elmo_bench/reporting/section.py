"""Tables of results whose numbers name their runs, shown as Markdown and on the terminal."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from elmo_bench.system.console import tables


class Run(NamedTuple):
    """A run behind a number: its id, the text of the link to its record, and the record's path from the page."""

    run: str
    label: str
    href: str


class Number(str):
    """A cell that names the runs it was computed from.

    Attributes:
        runs: the runs, listed on the page when the cell is opened.
        below: lines below the number.
        fold: lines above the list of runs.
        verdict: determines the colour of the cell; empty: none.
    """

    runs: Sequence[Run]
    below: Sequence[str] = ()
    fold: Sequence[str] = ()
    verdict: str = ""

    def __new__(cls, text: str, runs: Sequence[Run] = (), **about: Any) -> Number:
        number = super().__new__(cls, text)
        vars(number).update(about, runs=runs)
        return number


class Section(NamedTuple):
    """A table with a title, a note above it and remarks below it; the first cell of a row names the row.

    Attributes:
        rows: texts, some of them `Number`s.
        narrow: whether a phone shows it unchanged; it shows other tables as a list of cards, one per row.
        shown: whether the page shows it at once; other tables are in a fold with their title.
    """

    title: str
    note: str
    header: tuple[str, ...]
    rows: list[tuple[str, ...]]
    remarks: Sequence[str] = ()
    narrow: bool = False
    shown: bool = False


def pipes(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; a line break in a cell is a space."""
    lines = ([cell.replace("\n", " ").replace("|", "\\|") for cell in row] for row in rows)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (header, ["---"] * len(header), *lines))


def page(*parts: str | Section, title: bool = False) -> str:
    """A Markdown page of texts and tables; empty texts are left out.

    HTML tags are shown as text, because records may contain any.

    Args:
        parts: the parts of the page.
        title: whether the title of the first table is the title of the page.
    """
    texts = []
    for i, part in enumerate(parts):
        if isinstance(part, Section):
            heading = f"{'#' if title and i == 0 else '##'} {part.title}"
            remarks = ["\n".join(f"- {line}" for line in part.remarks)] if part.remarks else []
            texts += ["\n\n".join([heading, part.note, pipes(part.header, part.rows), *remarks])]
        else:
            texts += [part] if part else []
    return re.sub("<(?=[a-zA-Z/!?])", "&lt;", "\n\n".join(texts) + "\n")


def show(sections: Sequence[Section]) -> None:
    """Prints the tables, without wrapping lines when the output is not a terminal."""
    from rich.markup import escape
    from rich.table import Table

    output = tables()
    for section in sections:
        table = Table(*map(escape, section.header), title=escape(section.title), title_justify="left")
        for row in section.rows:
            table.add_row(*map(escape, row))
        output.print(table)
        for line in (section.note, *section.remarks):
            output.print(line, markup=False, soft_wrap=True)
