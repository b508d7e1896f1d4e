"""The speed of the biLM on this machine: `elmo-bench bench data_root=FOLDER`. `speed.bench` does the measuring."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from elmo_bench.system import files, machine, places
from elmo_bench.system.command import Argument, Command, flag
from elmo_bench.system.errors import UserError

COMMAND = Command(
    "bench",
    "measure the biLM's speed against this machine's best matrix product",
    (
        Argument(
            "data_root", "folder of the open data; without it, made-up words are used; also DATA_ROOT", None,
            "FOLDER",
        ),
        Argument("write", "save the figures as bench.json in the results", False, parse=flag),
        Argument("results_root", "where bench.json is saved; by default results/", None, "FOLDER"),
    ),
    (("", "prints the figures"), ("data_root=FOLDER write=true", "on real text, and saves the figures")),
    (
        "Random weights of the official sizes, fp32, all cores, batches of 32 sentences of 5 to 50 tokens; also the "
        "recurrent stack of SRL, the memory of attention, memory and training steps of each task's model, and "
        "pretraining. It takes minutes. "
        "Run nothing else meanwhile: on a busy machine, ratios stay meaningful, but shares of the best product do not.",
    ),
)  # fmt: skip


def main() -> None:
    """The entry point."""
    given = COMMAND.parse()
    place = given["data_root"] or os.environ.get("DATA_ROOT")
    if place and not Path(place).is_dir():
        raise UserError("data_root is not a folder", place)
    figures = measured(Path(place) if place else None)
    if given["write"]:
        target = Path(given["results_root"] or places.ROOT / "results") / "bench.json"
        write(target, figures)
        print(f"written to {target}", file=sys.stderr)


def measured(data_root: Path | None) -> dict[str, Any]:
    """Measures and prints all figures, with a progress bar."""
    import torch
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from elmo_bench.speed.bench import PLAN, bench, show

    cores = machine.cores()
    torch.set_num_threads(cores)
    progress = Console(stderr=True)
    columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    with Progress(*columns, console=progress, transient=True, disable=not progress.is_terminal) as bar:
        steps = 12 + 4 * len(PLAN.sizes) + PLAN.rounds * sum(number for _, number in PLAN.sizes.values())
        task = bar.add_task("starting", total=steps)
        figures = bench(PLAN, data_root, lambda text: bar.update(task, description=text, advance=1))
    show(figures, Console())
    return figures


def write(target: Path, figures: dict[str, Any]) -> None:
    """Saves the figures with the machine and the code version that they were measured on."""
    files.write_text(target, json.dumps({**figures, **machine.circumstances("cpu")}, indent=1) + "\n")


if __name__ == "__main__":
    COMMAND.run(main)
