"""The speed of the biLM compared with the best that this machine can do, and of what is built on it: `make bench`.

Random weights in the official format, fp32, all cores, batches of 32 sentences of 5 to 50 tokens. The upper bound is
the best rate of an fp32 matrix product in the same run, divided by the operations that a batch needs (`flops`). Nothing
else should run at the same time: ratios are robust to a busy machine, shares of the bound are not.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple

import torch

from elmo_bench.bilm import BiLM
from elmo_bench.bilm.options import Options
from elmo_bench.speed import (
    cases,
    device_part,
    gemm,
    growth,
    layer_sweep,
    measure,
    reading,
    released,
    stack,
    verification,
)
from elmo_bench.speed.text import Sentence, read_sentences


class Plan(NamedTuple):
    """What is measured: sizes with their numbers of batches, and the amounts for the other parts."""

    sizes: dict[str, tuple[Options, int]]
    rounds: int = 3
    cached: int = 320  # sentences
    corpus: int = 500  # sentences of the corpus; the longer corpus has four times as many
    stack: tuple[stack.Size, int] = (stack.Size(), 2)  # of the recurrent stack of SRL, and number of batches
    contexts: Sequence[int] = (400, 800)  # words of a paragraph, for the memory of attention
    pretraining: Sequence[str] = ("open",)  # pages of conf/pretrain; with a GPU the paper's size too
    updates: int = 150  # of each pretraining
    waiting: Sequence[str] = ("squad", "snli")  # tasks at scale=open
    heads: bool = True  # the memory of each task's model at scale=paper
    device: str = "cpu"  # of the parts that run on a GPU too
    device_parts: Sequence[str] | None = None  # None: all
    growth: int = 16  # sentences, for the smallest of four sizes, each twice the one before


PLAN = Plan({"small": (released.small(), 6), "original": (released.original(), 3)})


def bench(plan: Plan, data_root: Path | None, only: Sequence[str], step: Callable[[str], None]) -> dict[str, Any]:
    """The figures of some parts, methods of `Bench`, and the seconds that each took; `step` is called before each."""
    with tempfile.TemporaryDirectory() as folder:
        parts = Bench(plan, data_root, Path(folder))
        figures: dict[str, Any] = {"text": parts.text[1], "seconds": {}}
        for part in only:
            step(part)
            started = time.perf_counter()
            figures |= getattr(parts, part)()
            figures["seconds"][part] = time.perf_counter() - started
    return figures


class Bench:
    """The parts of the benchmark: each method measures one, and returns its figures by the names that are saved."""

    def __init__(self, plan: Plan, data_root: Path | None, folder: Path):
        self.plan, self.data_root, self.folder = plan, data_root, folder
        self.first, self.last = next(iter(plan.sizes)), list(plan.sizes)[-1]
        self.bilm = cache(lambda size: BiLM.from_files(*self.files(size), state="zero"))

    @property
    def scale(self) -> str:
        """Whose data the rows of tasks come from."""
        return "open" if self.data_root else "mini"

    @property
    def data(self) -> list[str]:
        """Overrides that choose these data."""
        return [f"scale={self.scale}", *([f"data_root={self.data_root}"] if self.data_root else [])]

    @cached_property
    def text(self) -> tuple[list[Sentence], str]:
        """The sentences of all parts, and where they come from."""
        batches = [self.plan.stack[1], *(number for _, number in self.plan.sizes.values())]
        return read_sentences(self.data_root, max(self.plan.cached, measure.BATCH * max(batches)))

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
            rates += gemm.rates()
            batches = measure.batches_of(self.text[0])[:number]
            sizes[size] = measure.speed(self.bilm(size), batches, self.plan.rounds)
            sizes[size]["bf16"] = measure.halves(self.bilm(size), batches, self.plan.rounds)
            sizes[size]["threads"] = measure.threads(self.bilm(size), batches, self.plan.rounds)
        best = max(rates)
        for row in sizes.values():
            row["share_of_bound"] = row["best_tokens_a_second"] * row["mflop_a_token"] * 1e6 / best.flops
        listed = [{"gflops": rate.flops / 1e9, "kernel": rate.kernel, "shape": rate.shape} for rate in rates]
        return {"gemm": listed, "best_gemm_gflops": best.flops / 1e9, "sizes": sizes}

    def verification(self) -> dict[str, Any]:
        """What it costs to compare files with their checksums."""
        opening = {size: verification.opening(*self.files(size), self.plan.rounds) for size in self.plan.sizes}
        return {"verification": {"opening": opening, "runs": verification.shares(self.folder)}}

    def cache(self) -> dict[str, Any]:
        """An epoch over cached layers compared with computing them."""
        sentences, folder = self.text[0][: self.plan.cached], self.folder / "cache"
        return {
            "cache": {"size": self.last, **measure.cached(self.bilm(self.last), sentences, folder, self.plan.rounds)}
        }

    def sweep(self) -> dict[str, Any]:
        """A sweep over four ways to mix the layers, with an empty cache."""
        sentences = self.text[0][: self.plan.cached]
        return {"sweep": {"size": self.first, **layer_sweep.cost(self.bilm(self.first), sentences, self.folder)}}

    def growth(self) -> dict[str, Any]:
        """How costs grow."""
        return {"growth": growth.measured(self.bilm(self.first), self.plan.growth)}

    def memory(self) -> dict[str, Any]:
        """Of a corpus, and of one four times as long."""
        peaks = measure.memory(*self.files(self.first), self.data_root, self.plan.corpus)
        return {"memory": {"size": self.first, **peaks}}

    def attention(self) -> dict[str, Any]:
        """The memory of attention over long paragraphs."""
        return {"attention": {task: measure.attention(task, self.plan.contexts) for task in reading.tasks()}}

    def heads(self) -> dict[str, Any]:
        """The memory of a training step of each task."""
        names = cases.tasks(self.scale) if self.plan.heads else ()
        return {"heads": {task: measure.head(task, self.data) for task in names}}

    def steps(self) -> dict[str, Any]:
        """The training steps of each task; of the open data."""
        if self.data_root is None or not self.plan.heads:
            return {"steps": []}
        return {"steps": [measure.steps(task, self.data_root) for task in cases.tasks("open")]}

    def loading(self) -> dict[str, Any]:
        """Reading the largest of the open data."""
        return {"loading": [measure.loading("squad", self.data_root)] if self.data_root and self.plan.heads else []}

    def stack(self) -> dict[str, Any]:
        """The recurrent stack of SRL."""
        size, number = self.plan.stack
        lengths = [[len(sentence) for sentence in batch] for batch in measure.batches_of(self.text[0])[:number]]
        return {"stack": stack.speed(lengths, self.plan.rounds, size)}

    def waiting(self) -> dict[str, Any]:
        """Training steps that wait for layers; of the open data."""
        return {"waiting": measure.waiting(self.plan.waiting, self.data_root) if self.data_root else []}

    def gpu(self) -> dict[str, Any]:
        """What a GPU is for, on a device."""
        kind, names = self.plan.device, self.plan.device_parts
        names = device_part.names(kind, self.scale) if names is None else names
        return {"gpu": {name: device_part.run(name, kind, None, self.data) for name in names}}

    def pretraining(self) -> dict[str, Any]:
        """Training a biLM."""
        sizes = [*self.plan.pretraining, *(["original"] if self.plan.pretraining and torch.cuda.is_available() else [])]
        return {"pretraining": [measure.pretraining(page, self.plan.updates, self.data_root) for page in sizes]}
