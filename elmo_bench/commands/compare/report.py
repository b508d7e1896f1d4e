"""Our results beside the paper's, from the records: `elmo-bench report`.

It also draws figures/gains.svg. For the project's evidence, results_root=results, it also writes the first tables into
the project's README.md, between two markers.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from elmo_bench.commands.command import Argument, Command
from elmo_bench.reporting.section import Section
from elmo_bench.system import places
from elmo_bench.system.errors import UserError

COMMAND = Command(
    (Argument("results_root", "folder with runs/; by default results/own/", None, "FOLDER"),),
    (("", "your own runs"), ("results_root=results", "the reference runs, the project's evidence")),
    (
        "Prints the tables, our results beside the paper's, and writes README.md, replication.md (the paper's findings "
        "with a verdict each), tasks/TASK.md, tables/SWEEP.SCALE.md, studies.md, report.html (a self-contained page) "
        "and report.json (the same numbers as data) into the folder, and the gains as a picture, figures/gains.svg. "
        "The same records give the same bytes.",
    ),
    page="sweeps",
)


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


def main() -> None:
    """The entry point."""
    from elmo_bench.reporting.pages.report import refresh

    given = COMMAND.parse()["results_root"]
    results_root = Path(given or places.OWN)
    reference = "results" if places.is_evidence("results") else places.RECORDED
    if given and not (results_root.is_dir() or results_root.is_symlink()):  # a link is told of where it is followed
        raise UserError(f"there is no such folder; results_root={reference} reports the reference runs", results_root)
    ours = places.CHECKOUT and places.is_evidence(results_root)
    sections = refresh(results_root, places.ROOT / "README.md" if ours else None)
    show(sections)
    if not sections:
        print(f"no run is recorded in {results_root} yet; results_root={reference} reports the reference runs")
    print(f"written: {results_root / 'README.md'}, report.html, report.json")
