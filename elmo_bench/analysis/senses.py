"""The figure of word senses by layer: `elmo-bench analysis.senses`, or `make figure N=senses`."""

from __future__ import annotations

import json
import sys

from elmo_bench.configuration import pages, schema
from elmo_bench.experiment.usage import SENSES as COMMAND


def main() -> None:
    """The entry point."""
    from elmo_bench.analysis import word_senses

    path = word_senses.run(schema.typed(pages.compose(sys.argv[1:])))
    page = json.loads(path.read_text(encoding="utf-8"))
    print("  ".join(page["header"]))
    print("\n".join("  ".join(row) for row in page["rows"]))
    print(f"written: {path}, {page['picture']}")


if __name__ == "__main__":
    COMMAND.run(main)
