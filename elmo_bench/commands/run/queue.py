"""The sweeps on a cluster: `python -m elmo_bench queue` shows how far they are, `cancel=true` ends what is queued."""

from __future__ import annotations

from pathlib import Path

from elmo_bench.commands.command import Argument, Command
from elmo_bench.sweeps import queued
from elmo_bench.system import places

COMMAND = Command(
    (
        Argument("results_root", "folder of the records", str(places.OWN)),
        Argument("cancel", "end what runs and what is queued", False, kind=bool),
    ),
    (("", "how far they are"), ("cancel=true", "ends them; typing a sweep again goes on")),
    ("Of a failed run it shows the last line of its log, and where the log lies.",),
    page="clusters",
)


def main() -> None:
    """The entry point."""
    values = COMMAND.parse()
    root = Path(values["results_root"])
    if values["cancel"]:
        print(f"{queued.cancel(root)} jobs ended; typing the sweep again goes on")
        return
    sweeps = queued.status(root)
    for sweep in sweeps:
        print("\n".join(sweep.lines()))
    if not sweeps:
        print(f"no sweep was queued from here ({root}); elmo-bench sweep ... on=slurm queues one")
