"""Recorded runs at Weights & Biases: `python -m elmo_bench publish`. One W&B run for every record, without doubles."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from elmo_bench.commands.command import Argument, Command
from elmo_bench.system import places
from elmo_bench.system.errors import UserError

if TYPE_CHECKING:  # --help is quick without it
    from elmo_bench.records.record import Record

COMMAND = Command(
    (
        Argument("results_root", "folder with runs/; by default results/own/, or if that has none, the reference runs",
                 None, "FOLDER"),
        Argument("project", "of W&B; also the variable WANDB_PROJECT", os.environ.get("WANDB_PROJECT") or "elmo_bench"),
        Argument("entity", "of W&B; by default the key's own", None, "NAME"),
    ),
    (
        ("", "your own runs"),
        ("results_root=results", "the reference runs"),
        ("project=mine entity=team", "into the project of a team"),
    ),
    (
        "Online with a key (WANDB_API_KEY or `wandb login`), else offline below results/own/wandb/, to be uploaded by "
        "`wandb sync`. A run's id is that of its record, so that a record is published once. The workspace and the "
        "report are made online, and need the extra `dashboards`.",
    ),
    again="running the command again goes on",
    page="wandb",
)  # fmt: skip


def main() -> None:
    """The entry point."""
    given = COMMAND.parse()
    results_root = _chosen(given["results_root"])
    try:
        import wandb  # noqa: F401
    except ImportError:
        raise UserError("wandb is not installed: pip install wandb") from None
    from elmo_bench.records.store import read_all, whole
    from elmo_bench.reporting.pages import publishing
    from elmo_bench.system.storage.locks import held
    from elmo_bench.system.wandb_runs import has_key

    records = whole(read_all(results_root))
    if not records:
        raise UserError("no run is recorded here; `elmo-bench reproduce` makes records", results_root)
    folder = places.OWN if places.is_evidence(results_root) else results_root
    project, entity = given["project"], given["entity"]
    with held(folder / "wandb", "another process is publishing these runs"):
        counts = publishing.publish(records, results_root, folder, project, entity, _with_progress)
    print(f"W&B, project {project}: runs: " + ", ".join(f"{number} {outcome}" for outcome, number in counts.items()))
    if publishing.unsynced(folder):
        print(f"offline; to upload, with a key: wandb sync {folder}/wandb/offline-run-*")
    if counts[publishing.LOGGED]:
        print(f"logged offline while they trained; to upload: wandb sync {results_root}/work/*/*/*/wandb/offline-run-*")
    if counts[publishing.FAILED]:
        raise UserError("some runs were not published, as said above; the same command goes on")
    if has_key():
        for name, url in publishing.publish_dashboards(records, folder, project, entity).items():
            print(f"{name}: {url}")


def _chosen(given: str | None) -> Path:
    """The folder of the records: the user's own, or where there are none, the reference runs."""
    if given is not None:
        return Path(given)
    if any(places.OWN.glob("runs/*/*/*.json")):
        return places.OWN
    print(f"no run is recorded in {places.OWN} yet: these are the reference runs")
    return places.RECORDED


def _with_progress(records: Sequence[Record]) -> Iterator[Record]:
    """The records that are written: with a progress bar on a terminal, else with a line on how long the rest takes."""
    from rich.console import Console
    from rich.progress import track

    from elmo_bench.records.times import in_time

    console, begun = Console(stderr=True), monotonic()
    bar = track(records, "publishing", console=console, transient=True, disable=not console.is_terminal)
    for done, record in enumerate(bar):
        if done == 1 and not console.is_terminal:
            rest = len(records) - 1
            print(f"1 of {rest + 1} runs took {in_time(monotonic() - begun)}: the others take about "
                  f"{in_time((monotonic() - begun) * rest)}", file=sys.stderr)  # fmt: skip
        yield record
