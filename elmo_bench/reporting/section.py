"""Tables of results, whose numbers name their runs; and how they are shown as Markdown and on the terminal."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from elmo_bench.system.terminal.console import tables


class Run(NamedTuple):
    """A run behind a number: its id, the text of the link to its record, and the record's path from the page."""

    run: str
    label: str
    href: str


class Number(str):
    """A cell that names the runs it was computed from.

    Attributes:
        runs: these runs, which the page lists when the cell is opened.
        below: lines below the number.
        fold: lines above the list of runs.
        verdict: gives the cell a colour; empty: none.
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
        rows: of texts, some of which are `Number`s.
        narrow: whether a phone shows it as it is; it shows any other table as a list of cards, one a row.
        shown: whether the page shows it at once; any other is in a fold with its title.
    """

    title: str
    note: str
    header: tuple[str, ...]
    rows: list[tuple[str, ...]]
    remarks: Sequence[str] = ()
    narrow: bool = False
    shown: bool = False

    def markdown(self, level: int = 2) -> str:
        """The section as Markdown, below a heading of this level."""
        parts = [f"{'#' * level} {self.title}", self.note, pipes(self.header, self.rows)]
        return "\n\n".join(parts + (["\n".join(f"- {line}" for line in self.remarks)] if self.remarks else []))


def pipes(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; a line break in a cell is a space."""
    lines = ([cell.replace("\n", " ").replace("|", "\\|") for cell in row] for row in rows)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (header, ["---"] * len(header), *lines))


def page(*parts: str | Section) -> str:
    """A Markdown page of texts and tables; empty texts are left out."""
    texts = (part.markdown() if isinstance(part, Section) else part for part in parts)
    return inert("\n\n".join(filter(None, texts)) + "\n")


def inert(markdown: str) -> str:
    """Markdown in which HTML tags are shown as text: records and studies may contain any text."""
    return re.sub("<(?=[a-zA-Z/!?])", "&lt;", markdown)


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
