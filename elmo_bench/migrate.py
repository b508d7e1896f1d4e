"""Renames old records to their current names: `python -m elmo_bench.migrate data_root=FOLDER`. Nothing is trained."""

from __future__ import annotations

import sys
from pathlib import Path

from elmo_bench.system.command import Argument, Command

COMMAND = Command(
    "migrate",
    "rename the records of an earlier version; nothing is trained",
    (
        Argument("results_root", "folder with runs/; by default results/own/", None, "FOLDER"),
        Argument("data_root", "folder of the data, to check that the records were made with it", None, "FOLDER"),
        Argument("models_root", "folder of biLMs; by default models/", None, "FOLDER"),
    ),
    (("data_root=../shared/data", "your own records"), ("results_root=results", "those of the authors")),
    (
        "A record keeps its former id as `former`. A record whose data or biLM are not on this machine is left "
        "unchanged; the command reports it and exits with status 2.",
    ),
)


def main() -> None:
    """The entry point."""
    from elmo_bench.configuration import pages
    from elmo_bench.configuration.schema import Places
    from elmo_bench.experiment.migration import migrate
    from elmo_bench.system.errors import UserError

    given = {key: value for key, value in COMMAND.parse().items() if value is not None}
    cfg = pages.compose([f"{key}={value}" for key, value in given.items()])
    places = Places(cfg.data_root, cfg.models_root, cfg.cache_root, cfg.results_root)
    renamed, left = 0, 0
    for path, outcome in migrate(Path(cfg.results_root), places):
        if isinstance(outcome, Path):
            renamed += 1
        else:
            left += 1
            print(f"{path}: left unchanged: {outcome}", file=sys.stderr)
    print(f"{renamed} records renamed")
    if left:
        raise UserError(f"{left} records left unchanged; see above")


if __name__ == "__main__":
    COMMAND.run(main)
