"""The figure of word senses by layer: `elmo-bench analysis.senses`, or `make figure N=senses`."""

from __future__ import annotations

import json
import sys

from elmo_bench.commands import usage
from elmo_bench.configuration import pages, schema
from elmo_bench.system.terminal.command import Argument, Command

COMMAND = Command(
    "analysis.senses",
    "how well each layer of a biLM tells the senses of a word apart",
    (
        Argument("scale", "only mini has text with known senses", "mini"),
        Argument("bilm", "a page of conf/bilm/", "mini"),
        *usage.PLACES[1:],
    ),
    (("", "the biLM of the mini scale"), ("bilm=untrained", "the same sizes with random weights")),
    ("Writes figures/senses-BILM.json and .png in the results folder, for the report.", usage.OVERRIDES),
    overrides=True,
    more=lambda: usage.of_pages(["bilm"]),
    page="bilms",
)


def main() -> None:
    """The entry point."""
    from elmo_bench.analysis import word_senses

    path = word_senses.run(schema.typed(pages.compose(sys.argv[1:])))
    page = json.loads(path.read_text(encoding="utf-8"))
    print("  ".join(page["header"]))
    print("\n".join("  ".join(row) for row in page["rows"]))
    print(f"written: {path}, {page['picture']}")
