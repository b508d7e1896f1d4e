"""The settings of a task by the rule of docs/statistics.md: `python -m tests.settle task=ner scale=mini KEY=V1,V2`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean
from typing import ClassVar

from hydra._internal.core_plugins.basic_sweeper import BasicSweeper

import elmo_bench
from elmo_bench.commands.command import Command, Examples, Folder
from elmo_bench.commands.run import Thousand
from elmo_bench.configuration.composing import parse
from elmo_bench.records.record import Record
from elmo_bench.reporting.gains import Group
from elmo_bench.reporting.report import between
from elmo_bench.reporting.section import pipes
from elmo_bench.system import places
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage.files import write_text

LEAST, FIFTH = 0.2, 5  # points on dev that neither arm may gain in the last fifth of its epochs
HEADER = ("setting", "arm", "seeds", "dev {}", "gained in the last fifth of the epochs")


def late(record: Record) -> float:
    """The points that a run gained on dev in the last fifth of the epochs that it was allowed."""
    allowed = record.config["task"]["fit"]["epochs"]
    return max(record.dev_scores) - max(record.dev_scores[: allowed - math.ceil(allowed / FIFTH)], default=0.0)


def settled(task: str, scale: str, seeds: int, root: str, tried: Sequence[str]) -> str:
    """What was tried, what is chosen, and whether the epochs are enough, as Markdown."""
    (points,) = BasicSweeper.split_arguments([parse(each) for each in tried], max_batch_size=None)

    def arm(name: str, point: Sequence[str]) -> list[Record]:
        given = [f"scale={scale}", f"arm={name}", f"results_root={root}", *point]
        return [elmo_bench.train(task, [*given, f"seed={seed}"]) for seed in range(1, seeds + 1)]

    def dev(records: list[Record]) -> float:
        return fmean(Group(records).scores("dev"))

    baselines = [arm("baseline", point) for point in points]
    best = max(baselines, key=dev)
    shared = [one for one in points[0] if len(points) > 1 and all(one in each for each in points)]
    names = [" ".join(one for one in each if one not in shared) or "that of its files" for each in points]
    chosen = names[baselines.index(best)]
    arms = [*baselines, arm("elmo", points[baselines.index(best)])]
    rows = [
        (name, each[0].arm, str(len(each)), Group(each).mean("dev"), f"{_late(each):.2f}")
        for name, each in zip([*names, chosen], arms, strict=True)
    ]
    rising = [each[0].arm for each in (best, arms[-1]) if _late(each) >= LEAST]
    files = f"conf/task/{task}/{scale}.yaml"
    said = [
        f"The baseline's best dev score chooses {chosen}" + (f"; {files} has another." if best[0].variant else "."),
        f"More epochs are needed: {', '.join(rising)} gained {LEAST} points or more in the last fifth of them."
        if rising
        else f"The epochs are enough: neither arm gained {LEAST} points on dev in the last fifth of them.",
    ]
    return "\n\n".join([pipes([cell.format(best[0].monitor) for cell in HEADER], rows), " ".join(said)])


def _late(records: Sequence[Record]) -> float:
    return fmean(map(late, records))


def write(task: str, scale: str, text: str) -> None:
    """Puts a table between the marks of the task's page, at its end if they are not there yet."""
    path = places.ROOT / "tasks" / task / "README.md"
    page, marks = (
        path.read_text(encoding="utf-8"),
        (f"<!-- settings at {scale}: python -m tests.settle -->", "<!-- /settings -->"),
    )
    if marks[0] not in page:
        page = f"{page.rstrip()}\n\n## Settings at {scale}\n\n{marks[0]}\n{marks[1]}\n"
    write_text(path, between(page, marks, [text]))


class Settle(Command):
    """Choose the settings of a task by the rule of docs/statistics.md.

    Trains the baseline with every combination of the values that are given, and +ELMo with the setting of the best
    baseline on dev. Runs that have a record are not run again, and an interrupted one goes on.
    """

    page: ClassVar[str] = "statistics"
    overrides: ClassVar[bool] = True
    calls: ClassVar[tuple[str, str]] = ("python -m tests.settle {given}", ".venv/bin/python -m tests.settle {given}")
    examples: ClassVar[Examples] = {
        "task=ner scale=mini task.optimizer.lr=0.001,0.002 task.fit.epochs=16,32": "four settings",
    }
    task: str = "ner"
    """the benchmark, a file in conf/task/"""
    scale: str = "mini"
    """data and biLM: mini (generated here), open or paper"""
    seeds: Thousand = 1
    """means over the seeds from 1 to this number"""
    results_root: Folder = str(places.OWN / "settle")
    """folder of the runs that are tried"""
    write: bool = False
    """put the table into tasks/TASK/README.md, too"""

    def run(self) -> None:
        if wrong := next((each for each in self.typed if "=" not in each), None):
            raise UserError(f"{wrong}: arguments are written key=value")
        text = settled(self.task, self.scale, self.seeds, self.results_root, self.typed)
        print(text)
        if self.write:
            write(self.task, self.scale, text)


if __name__ == "__main__":
    Settle.main("settle")
