"""What a biLM has read of dev and test: `elmo-bench analysis.overlap scale=open data_root=FOLDER`."""

from __future__ import annotations

import sys

from elmo_bench.commands import usage
from elmo_bench.commands.analysis.usage import keys, show
from elmo_bench.commands.command import Command

COMMAND = Command(
    (usage.SCALE, *usage.ROOTS),
    (
        ("scale=open data_root=FOLDER", "the open biLM's text and all six tasks"),
        ("scale=open data_root=FOLDER task=squad text=corpus.txt.gz", "a text of your own and one task"),
    ),
    (
        "Prints the table and writes it as a record, results/own/analysis/SCALE/overlap/ID.json, for the report, which "
        "also warns of it beside the dev figures of a task.",
        usage.OVERRIDES,
    ),
    overrides=True,
    more=lambda: keys("OverlapConfig")[1:],
    page="bilms",
)


def main() -> None:
    """The entry point."""
    from elmo_bench.analysis import overlap

    show(*overlap.write(sys.argv[1:]))
