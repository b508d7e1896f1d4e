"""Tables of results, whose numbers name their runs."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import NamedTuple


class Run(NamedTuple):
    """A run behind a number: its id, what the link to its record says, and where the record is, from the page."""

    run: str
    label: str
    href: str


class Number(str):
    """A cell that names the runs it was computed from.

    Attributes:
        runs: these runs, to which the cell opens on the page.
        below: what stands below it there.
        fold: lines above the runs to which it opens.
        verdict: gives the cell a colour; empty: none.
    """

    runs: Sequence[Run]
    below: Sequence[str]
    fold: Sequence[str]
    verdict: str

    def __new__(
        cls, text: str, runs: Sequence[Run] = (), below: Sequence[str] = (), fold: Sequence[str] = (), verdict: str = ""
    ) -> Number:
        made = super().__new__(cls, text)
        made.runs, made.below, made.fold, made.verdict = runs, below, fold, verdict
        return made


class Section(NamedTuple):
    """A table with a title, a note above it and remarks below it; the first cell of a row names the row.

    Attributes:
        rows: of texts, some of which are `Number`s.
        narrow: whether it fits a phone as it is; any other becomes there a list of cards, one a row.
        shown: whether the page shows it at once; any other is in a fold with its title.
    """

    title: str
    note: str
    header: tuple[str, ...]
    rows: list[tuple[str, ...]]
    remarks: Sequence[str] = ()
    narrow: bool = False
    shown: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether no row says anything beside its name."""
        return not any(cell.strip(" -–") for row in self.rows for cell in row[1:])

    def markdown(self, level: int = 2) -> str:
        """The section as Markdown, below a heading of this level."""
        parts = [f"{'#' * level} {self.title}", self.note, pipes(self.header, self.rows)]
        return "\n\n".join(parts + (["\n".join(f"- {line}" for line in self.remarks)] if self.remarks else []))


def pipes(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; a line break in a cell is a space."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(map(_cell, cells)) + " |" for cells in lines)


def _cell(text: str) -> str:
    return text.replace("\n", " ").replace("|", "\\|")


def inert(markdown: str) -> str:
    """Markdown in which tags are shown as text: what records and studies say may be anything."""
    return re.sub("<(?=[a-zA-Z/!?])", "&lt;", markdown)


def show(sections: Sequence[Section]) -> None:
    """Prints the tables, without wrapping lines when the output is not a terminal."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console(width=None if sys.stdout.isatty() else 200, highlight=False)
    for section in sections:
        table = Table(*map(escape, section.header), title=escape(section.title), title_justify="left")
        for row in section.rows:
            table.add_row(*map(escape, row))
        console.print(table)
        for line in (section.note, *section.remarks):
            console.print(line, markup=False, soft_wrap=True)
