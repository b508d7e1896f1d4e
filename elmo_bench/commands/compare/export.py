"""Records and tables for a paper: `elmo-bench export output=FOLDER`."""

from __future__ import annotations

from pathlib import Path

from elmo_bench.commands.command import Argument, Command
from elmo_bench.system import places
from elmo_bench.system.errors import UserError

COMMAND = Command(
    (
        Argument("output", "folder that is written into; it is made", value="FOLDER"),
        Argument("results_root", "folder with runs/; by default results/own/", None, "FOLDER"),
    ),
    (("output=paper", "your own runs"), ("output=paper results_root=results", "the reference runs")),
    (
        "runs.csv and runs.parquet have a row for each run, split and metric: task scale arm variant vectors bilm data "
        "seed split metric headline value group run, as elmo_bench.results() gives them to pandas. tables/ has every "
        "table of the report as .tex, for \\usepackage{booktabs}, and as .md.",
    ),
    page="python",
)


def main() -> None:
    """The entry point."""
    from elmo_bench.records.store import read_all, whole
    from elmo_bench.reporting.pages.export import export

    given = COMMAND.parse()
    root = Path(given["results_root"] or places.OWN)
    records = whole(read_all(root))
    if not records:
        raise UserError("no run is recorded here; `elmo-bench reproduce` makes records", root)
    written = export(records, root, Path(given["output"]))
    print(f"written: {len(written)} files in {given['output']}: runs.csv, runs.parquet, tables/")
