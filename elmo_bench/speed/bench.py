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

from elmo_bench.bilm import BiLM
from elmo_bench.bilm.options import Options
from elmo_bench.speed import cases, device, encode, growth, inputs, memory
from elmo_bench.speed.bound import best_product

STEPS = 6  # batches of each task


class BenchPlan(NamedTuple):
    """What is measured: sizes with their numbers of batches, and the amounts for the other parts."""

    sizes: dict[str, tuple[Options, int]]
    rounds: int = 3
    corpus: int = 500  # sentences of the corpus; the longer corpus has four times as many
    pretraining: Sequence[str] = ("open",)  # files in conf/pretrain; with a GPU the paper's size too
    updates: int = 150  # of each pretraining
    tasks: bool = True  # the training steps of each task
    growth: int = 16  # sentences, for the smallest of four sizes, each twice the one before


PLAN = BenchPlan({"small": (inputs.SMALL, 6), "original": (inputs.ORIGINAL, 3)})


def bench(plan: BenchPlan, data_root: Path | None, only: Sequence[str], step: Callable[[str], None]) -> dict[str, Any]:
    """The figures of some parts, methods of `Bench`, and the seconds that each took; `step` is called before each."""
    with tempfile.TemporaryDirectory() as folder:
        parts = Bench(plan, data_root, Path(folder))
        figures: dict[str, Any] = {"text": parts.source, "seconds": {}}
        for part in only:
            step(part)
            started = time.perf_counter()
            figures |= getattr(parts, part)()
            figures["seconds"][part] = time.perf_counter() - started
    return figures


class Bench:
    """The parts of the benchmark: each method measures one, and returns its figures by the names that are saved."""

    def __init__(self, plan: BenchPlan, data_root: Path | None, folder: Path):
        self.plan, self.data_root, self.folder = plan, data_root, folder
        self.first = next(iter(plan.sizes))
        self.bilm = cache(lambda size: BiLM.from_files(*self.files(size), state="zero"))
        batches = max(number for _, number in plan.sizes.values())
        self.sentences, self.source = inputs.read_sentences(data_root, encode.BATCH * batches)

    def files(self, size: str) -> tuple[Path, Path]:
        """A biLM of this size as it is before training, in the official format."""
        options, weights = self.folder / f"{size}.json", self.folder / f"{size}.hdf5"
        if not weights.exists():
            torch.manual_seed(0)
            BiLM(self.plan.sizes[size][0]).export(options, weights)
        return options, weights

    def encode(self) -> dict[str, Any]:
        """Words to layers at each size, and the best matrix product of the same time."""
        rates, sizes = [], {}
        for size, (_, number) in self.plan.sizes.items():
            rates.append(best_product())
            bilm, batches = self.bilm(size), encode.batches_of(self.sentences)[:number]
            sizes[size] = encode.speed(bilm, batches, self.plan.rounds)
            sizes[size]["bf16"] = encode.halves(bilm, batches, self.plan.rounds)
            sizes[size]["threads"] = encode.threads(bilm, batches, self.plan.rounds)
        best = max(rates)
        for row in sizes.values():
            row["share_of_bound"] = row["best_tokens_a_second"] * row["mflop_a_token"] * 1e6 / best.flops
        listed = [{"gflops": rate.flops / 1e9, "shape": rate.shape} for rate in rates]
        return {"gemm": listed, "best_gemm_gflops": best.flops / 1e9, "sizes": sizes}

    def steps(self) -> dict[str, Any]:
        """The training steps of each task; of the open data."""
        names = cases.tasks("open") if self.data_root and self.plan.tasks else []
        return {"steps": [device.in_own_process("steps", task, self.data_root, STEPS) for task in names]}

    def pretraining(self) -> dict[str, Any]:
        """Training a biLM, by files in conf/pretrain: rate, share of the bound, peak memory."""
        sizes = [*self.plan.pretraining, *(["original"] if self.plan.pretraining and torch.cuda.is_available() else [])]
        given = self.plan.updates, self.data_root, "auto"
        return {"pretraining": [device.in_own_process("pretraining", page, *given) for page in sizes]}

    def growth(self) -> dict[str, Any]:
        """How costs grow."""
        return {"growth": growth.measured(self.bilm(self.first), self.plan.growth)}

    def memory(self) -> dict[str, Any]:
        """Of a corpus, and of one four times as long; of a training step of each task."""
        peaks = memory.corpora(*self.files(self.first), self.data_root, self.plan.corpus)
        scale = "open" if self.data_root else "mini"  # whose data the rows of tasks come from
        data = [f"scale={scale}", *([f"data_root={self.data_root}"] if self.data_root else [])]
        names = cases.tasks(scale) if self.plan.tasks else ()
        return {
            "memory": {"size": self.first, "sentences_and_peak_mib": peaks},
            "heads": {task: memory.step(task, data) for task in names},
        }
