"""The speed of the biLM compared with the best that this machine can do, and of what is built on it: `make bench`.

Random weights in the official format, fp32, all cores, batches of 32 sentences of 5 to 50 tokens. The upper bound is
the best rate of an fp32 matrix product in the same run, divided by the operations that a batch needs (`bound`). Nothing
else should run at the same time: ratios are robust to a busy machine, shares of the bound are not.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import torch
from rich.console import Console
from rich.table import Column, Table

from elmo_bench.bilm import BiLM
from elmo_bench.bilm.options import Options
from elmo_bench.speed import PARTS, cases, encode, growth, inputs, pretraining, steps
from elmo_bench.speed.measuring import in_own_process

STEPS = 6  # batches of each task
Rows = list[dict[str, Any]]


class BenchPlan(NamedTuple):
    """What is measured: sizes with their numbers of batches, and the amounts for the other parts."""

    sizes: dict[str, tuple[Options, int]]
    rounds: int = 3
    corpus: int = 500  # sentences of the corpus; the longer corpus has four times as many
    pretraining: Sequence[str] = ("open",)  # files in conf/pretrain; with a GPU the paper's size too
    updates: int = 150  # of each pretraining
    tasks: bool = True  # the training steps of each task
    growth: int = 16  # sentences, for the smallest of four sizes, each twice the one before


PLAN = BenchPlan({"small": (inputs.SMALL, 4), "original": (inputs.ORIGINAL, 2)})


def bench(plan: BenchPlan, data_root: Path | None, only: Sequence[str], step: Callable[[str], None]) -> dict[str, Any]:
    """The rows of some parts, methods of `Bench`, and the seconds that each took; `step` is called before each."""
    with tempfile.TemporaryDirectory() as folder:
        parts = Bench(plan, data_root, Path(folder))
        figures: dict[str, Any] = {"text": parts.source, "seconds": {}}
        for part in only:
            step(part)
            started = time.perf_counter()
            figures[part] = getattr(parts, part)()
            figures["seconds"][part] = time.perf_counter() - started
    return figures


class Bench:
    """The parts of the benchmark: each method measures one, and returns the rows of its table."""

    def __init__(self, plan: BenchPlan, data_root: Path | None, folder: Path):
        self.plan, self.data_root = plan, None if data_root is None else str(data_root)
        self.files = cache(lambda size: _made(plan.sizes[size][0], folder / size))
        self.bilm = cache(lambda size: BiLM.from_files(*self.files(size), state="zero"))
        self.first = next(iter(plan.sizes))
        batches = max(number for _, number in plan.sizes.values())
        self.sentences, self.source = inputs.read_sentences(data_root, encode.BATCH * batches)

    def encode(self) -> Rows:
        """Words to layers at each size."""
        batches, sizes = encode.batches_of(self.sentences), self.plan.sizes.items()
        tables = [encode.speed(size, self.bilm(size), batches[:n], self.plan.rounds) for size, (_, n) in sizes]
        return [row for table in tables for row in table]

    def steps(self) -> Rows:
        """The training steps of each task; of the open data."""
        names = cases.tasks("open") if self.data_root and self.plan.tasks else []
        return [in_own_process(steps.measured, task, self.data_root, STEPS) for task in names]

    def pretraining(self) -> Rows:
        """Training a biLM, by files in conf/pretrain: rate, share of the bound, peak memory."""
        pages = [*self.plan.pretraining, *(["original"] if self.plan.pretraining and torch.cuda.is_available() else [])]
        return [in_own_process(pretraining.measured, page, self.plan.updates, self.data_root) for page in pages]

    def growth(self) -> Rows:
        """How costs grow."""
        return growth.measured(self.bilm(self.first), self.plan.growth)

    def memory(self) -> Rows:
        """Of encoding a corpus, and one four times as long; of a training step of each task with ELMo at the paper's
        sizes.

        Another process chooses the rows than trains on them, so that reading a data set does not count.
        """
        files, rows = list(map(str, self.files(self.first))), []
        for number in (self.plan.corpus, 4 * self.plan.corpus):
            peak = in_own_process(growth.peak_of_corpus, *files, self.data_root, number)
            rows.append({"work": f"encode ({self.first})", "rows": number, "words": None, "peak_mib": peak})
        scale = "open" if self.data_root else "mini"  # whose data the rows of tasks come from
        data = [f"scale={scale}", *([f"data_root={self.data_root}"] if self.data_root else [])]
        for task in cases.tasks(scale) if self.plan.tasks else ():
            rows.append({"work": f"train {task}", **in_own_process(steps.peak, cases.choose(task, data))})
        return rows


def _made(options: Options, place: Path) -> tuple[Path, Path]:
    """The files of a biLM of this size as it is before training, in the official format."""
    files = place.with_suffix(".json"), place.with_suffix(".hdf5")
    torch.manual_seed(0)
    BiLM(options).export(*files)
    return files


def show(figures: dict[str, Any], console: Console) -> None:
    """Prints a table of each part that was measured."""
    console.print(f"text: {figures['text']}; tokens are counted without <S> and </S>")
    for part, title in PARTS.items():
        if rows := figures.get(part):
            first, *others = (key.replace("_", " ") for key in rows[0])
            table = Table(first, *(Column(name, justify="right") for name in others))
            for row in rows:
                table.add_row(*map(_cell, row.values()))
            console.print(f"\n{part}: {title}", table)
    console.print("seconds: " + ", ".join(f"{part} {seconds:.0f}" for part, seconds in figures["seconds"].items()))


def _cell(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_cell, value))
    if isinstance(value, float):
        return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
    return "" if value is None else str(value)
