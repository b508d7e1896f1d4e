"""Commands that measure this machine."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar

from elmo_bench.commands.command import Command, Examples, Folder, HelpSection, several
from elmo_bench.speed import PARTS
from elmo_bench.system import machine, places
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage import files, json_text


class Bench(Command):
    """Measure the biLM's speed against this machine's best matrix product.

    Random weights of the official sizes, fp32, all cores, batches of 32 sentences of 5 to 50 tokens; also memory and
    training steps of each task's model, and pretraining. It takes six to fifteen minutes. Run nothing else at the same
    time: on a busy machine, ratios stay meaningful, but shares of the best product do not.
    """

    page: ClassVar[str] = "development"
    examples: ClassVar[Examples] = {
        "": "prints the figures", "only=encode,growth": "two parts of it",
        "data_root=FOLDER write=true": "on real text, and saves the figures",
    }  # fmt: skip
    data_root: Folder | None = None
    """folder of the open data, also from DATA_ROOT; without it, made-up words are used"""
    only: Annotated[str, several(PARTS)] | None = None
    """parts, separated by commas; by default all"""
    write: bool = False
    """save the figures as bench.json in the results"""
    results_root: Folder | None = None
    """folder for bench.json; by default results/own/"""

    @classmethod
    def sections(cls) -> Sequence[HelpSection]:
        return [HelpSection("Parts", [*PARTS.items()])]

    def run(self) -> None:
        place = self.data_root or os.environ.get("DATA_ROOT")
        if place and not Path(place).is_dir():
            raise UserError("data_root is not a folder", place)
        if self.write and self.only:
            raise UserError("write=true saves the figures of all parts; leave out only=")
        figures = measured(Path(place) if place else None, self.only)
        if self.write:
            target = Path(self.results_root or places.OWN) / "bench.json"
            circumstances = machine.circumstances("cpu")  # of the measurement
            files.write_text(target, json_text.dumps({**figures, **circumstances}, indent=1) + "\n")
            print(f"written to {target}", file=sys.stderr)


def measured(data_root: Path | None, only: Sequence[str] | None) -> dict[str, Any]:
    """Measures and prints the figures of some parts (None: all), with a progress bar."""
    import torch
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from elmo_bench.speed.bench import PLAN, bench, show
    from elmo_bench.system.console import tables

    torch.set_num_threads(machine.cores())
    only, progress = only or list(PARTS), Console(stderr=True)
    columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    with Progress(*columns, console=progress, transient=True, disable=not progress.is_terminal) as bar:
        task = bar.add_task("starting", total=len(only))
        figures = bench(PLAN, data_root, only, lambda part: bar.update(task, description=part, advance=1))
    show(figures, tables())
    return figures
