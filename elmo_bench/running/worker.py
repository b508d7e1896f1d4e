"""The process of a further device of a run, which rank 0 starts (`ranks.started`); not a command of its own."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from elmo_bench.configuration import schema
from elmo_bench.running.ranks import Rank
from elmo_bench.running.run import follow
from elmo_bench.system import children
from elmo_bench.system.terminal import console


def main() -> None:
    """Reads the run from standard input, trains and scores its share of the batches, and writes nothing."""
    task = json.load(sys.stdin)
    children.end_with_parent(task["parent"])
    vectors = None if task["vectors"] is None else Path(task["vectors"])
    follow(schema.from_plain(task["config"]), Path(task["folder"]), Rank(*task["rank"]), vectors)


if __name__ == "__main__":
    console.report(main)
