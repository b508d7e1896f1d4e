"""Our results beside the paper's, from the records: `elmo-bench report` writes README.md, report.html, report.json.

It also draws figures/gains.svg. In a checkout, it writes the first tables into the project's own README.md, between two
markers.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from elmo_bench.reporting.page import MARKS, contents, embedded, markdown, refresh
from elmo_bench.reporting.section import Section
from elmo_bench.system import places
from elmo_bench.system.command import Argument, Command

__all__ = ["COMMAND", "MARKS", "contents", "embedded", "main", "markdown", "refresh", "show"]

COMMAND = Command(
    "report",
    "write the tables and figures of all recorded runs",
    (Argument("results_root", "folder with runs/ and figures/; by default results/", None, "FOLDER"),),
    (("", "all recorded runs"), ("results_root=FOLDER", "those of another folder")),
    (
        "Prints the tables, our results beside the paper's, and writes README.md, report.html (a self-contained page) "
        "and report.json (the same numbers as data) into the folder, and the gains as a picture, figures/gains.svg. "
        "The same records give the same bytes.",
    ),
)


def show(sections: Sequence[Section]) -> None:
    """Prints the tables, without wrapping lines when the output is not a terminal."""
    from rich.console import Console
    from rich.table import Table

    console = Console(width=None if sys.stdout.isatty() else 200, highlight=False)
    for section in sections:
        table = Table(*section.header, title=section.title, title_justify="left")
        for row in section.rows:
            table.add_row(*row)
        console.print(table)
        for line in (section.note, *section.remarks):
            console.print(line, markup=False, soft_wrap=True)


def main() -> None:
    """The entry point."""
    elsewhere = COMMAND.parse()["results_root"]
    results_root = Path(elsewhere or places.ROOT / "results")
    ours = places.CHECKOUT and not elsewhere
    show(refresh(results_root, places.ROOT / "README.md" if ours else None))
    print(f"written: {results_root / 'README.md'}, report.html, report.json")


if __name__ == "__main__":
    COMMAND.run(main)
