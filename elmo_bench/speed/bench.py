"""The speed of the biLM and of training with it, compared with the best that this machine can do: `make bench`.

Random weights in the official format, fp32, all cores, batches of 32 sentences of 5 to 50 tokens. The upper bound is
the best rate of an fp32 matrix product in the same run, divided by the operations that a batch needs. Nothing else
should run at the same time: ratios are robust to a busy machine, shares of the bound are not.
"""

from __future__ import annotations

import csv
import random
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import cycle, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from rich.console import Console
from rich.table import Column, Table

from elmo_bench.bilm import BiLM
from elmo_bench.bilm.options import Options
from elmo_bench.bilm.pretraining.parallel import choose_device
from elmo_bench.bilm.pretraining.recipe import Recipe
from elmo_bench.bilm.pretraining.run import make_recipe
from elmo_bench.bilm.pretraining.trainer import Trainer
from elmo_bench.configuration import composing
from elmo_bench.layers.bilm import BilmLayers
from elmo_bench.layers.cache import ActivationCache
from elmo_bench.nn.numerics import bfloat16_pays
from elmo_bench.records.settings import Identity
from elmo_bench.speed import PARTS, encode, measuring, steps
from elmo_bench.speed.measuring import (
    Sentence,
    best_product,
    device_name,
    encoder_flops,
    generated,
    in_own_process,
    in_turn,
    lstm_flops,
    read_sentences,
)
from elmo_bench.system import places
from elmo_bench.system.errors import UserError
from elmo_bench.system.machine import peak_mib

STEPS = 6  # batches of each task
PASSES = 3  # a forward product, and one for each of its two gradients
VOCABULARY = places.CONF / "pretrain" / "open.words.txt"
EPOCH = 768_648_884  # tokens of the 1B Word Benchmark that the release read ten times
SIZES, ROUNDS = 4, 3  # for the part growth
Rows = list[dict[str, Any]]


class BenchPlan(NamedTuple):
    """The scope of the measurement: sizes with their numbers of batches, and the amounts for the other parts."""

    sizes: dict[str, tuple[Options, int]]
    rounds: int = 3
    corpus: int = 500  # sentences of the corpus; the longer corpus has four times as many
    pretraining: Sequence[str] = ("open",)  # files in conf/pretrain; with a GPU the paper's size too
    updates: int = 150  # of each pretraining
    tasks: bool = True  # the training steps of each task
    growth: int = 16  # sentences, for the smallest of four sizes, each twice the one before


PLAN = BenchPlan({"small": (measuring.SMALL, 4), "original": (measuring.ORIGINAL, 2)})


def bench(plan: BenchPlan, data_root: Path | None, only: Sequence[str], step: Callable[[str], None]) -> dict[str, Any]:
    """The rows of some parts, methods of `Bench`, and the seconds that each took; `step` is called before each."""
    with tempfile.TemporaryDirectory() as folder:
        parts = Bench(plan, data_root, Path(folder))
        figures: dict[str, Any] = {"text": parts.source, "seconds": {}}
        for part in only:
            step(part)
            started = time.perf_counter()
            try:
                figures[part] = getattr(parts, part)()
            except subprocess.CalledProcessError as error:
                if error.returncode != UserError.status:
                    raise
                reason = error.stderr.strip().rpartition("error: ")[2]
                raise UserError(f"{part}: {reason}") from None
            figures["seconds"][part] = time.perf_counter() - started
    return figures


class Bench:
    """The parts of the benchmark: each method measures one, and returns the rows of its table."""

    def __init__(self, plan: BenchPlan, data_root: Path | None, folder: Path):
        self.plan, self.data_root = plan, None if data_root is None else str(data_root)
        self.folder, self.files = folder, cache(self._files)
        self.bilm = cache(lambda size: BiLM.from_files(*self.files(size), state="zero"))
        self.first = next(iter(plan.sizes))
        batches = max(number for _, number in plan.sizes.values())
        self.sentences, self.source = read_sentences(data_root, encode.BATCH * batches)

    def _files(self, size: str) -> tuple[Path, Path]:
        """The files of an untrained biLM of this size, in the official format."""
        files = self.folder / f"{size}.json", self.folder / f"{size}.hdf5"
        torch.manual_seed(0)
        BiLM(self.plan.sizes[size][0]).export(*files)
        return files

    def encode(self) -> Rows:
        """Words to layers at each size."""
        size, sizes = encode.BATCH, self.plan.sizes.items()
        batches = [self.sentences[i : i + size] for i in range(0, len(self.sentences) - size + 1, size)]
        tables = [encode.speed(size, self.bilm(size), batches[:n], self.plan.rounds) for size, (_, n) in sizes]
        return [row for table in tables for row in table]

    def steps(self) -> Rows:
        """The training steps of each task on open data."""
        names = steps.tasks("open") if self.data_root and self.plan.tasks else []
        return [in_own_process(steps.measured, task, self.data_root, STEPS) for task in names]

    def pretraining(self) -> Rows:
        """Training a biLM, by files in conf/pretrain: rate, share of the bound, peak memory."""
        pages = [*self.plan.pretraining, *(["original"] if self.plan.pretraining and torch.cuda.is_available() else [])]
        return [in_own_process(measured_pretraining, page, self.plan.updates, self.data_root) for page in pages]

    def growth(self) -> Rows:
        """How costs grow."""
        return growth(self.bilm(self.first), self.plan.growth)

    def memory(self) -> Rows:
        """Peak memory of encoding a corpus and one four times as long, and of a training step of each task with ELMo at
        the paper's sizes.

        One process chooses the rows and another trains on them, so that reading a data set does not count.
        """
        files, rows = list(map(str, self.files(self.first))), []
        for number in (self.plan.corpus, 4 * self.plan.corpus):
            peak = in_own_process(peak_of_corpus, *files, self.data_root, number)
            rows.append({"work": f"encode ({self.first})", "rows": number, "words": None, "peak_mib": peak})
        scale = "open" if self.data_root else "mini"  # the source of the tasks' rows
        data = [f"scale={scale}", *([f"data_root={self.data_root}"] if self.data_root else [])]
        for task in steps.tasks(scale) if self.plan.tasks else ():
            rows.append({"work": f"train {task}", **in_own_process(steps.peak, steps.choose(task, data))})
        return rows


# How costs grow.


def growth(bilm: BiLM, least: int) -> list[dict[str, Any]]:
    """How costs grow: CPU seconds at four sizes, each twice the one before, and the slope of their logarithms.

    A slope of 1 means that a cost grows in proportion to the size; a fixed part makes the slope smaller, and needlessly
    repeated work larger. For each cost: the sizes, CPU seconds (the minimum of some rounds) and the slope.

    "tokens": `encode` of sentences with the lengths of English ones; "words a sentence": the same number of sentences,
    of equal length; "vocabulary": encoding distinct words; "corpus, sentences": written to the cache and read once;
    "points of a sweep": composed and given their ids.
    """
    sentences = generated(least << SIZES, random.Random(3))
    words = [word for sentence in sentences for word in sentence]

    costs: dict[str, tuple[int, Callable[[int], Any]]] = {
        "tokens": (least, lambda size: encode.afresh(bilm, sentences[:size])),
        "words a sentence": (
            8,
            lambda size: encode.afresh(bilm, [words[at : at + size] for at in range(0, least * size, size)]),
        ),
        "vocabulary": (8 * least, lambda size: encode.afresh(bilm, [[f"word{i}" for i in range(size)]])),
        "corpus, sentences": (least, lambda size: _cached(bilm, sentences[:size])),
        "points of a sweep": (max(least // 2, 1), _points),
    }
    rows = []
    for name, (smallest, work) in costs.items():
        ways = {smallest << i: partial(work, smallest << i) for i in range(SIZES)}
        seconds = [min(taken) for taken in in_turn(ways, ROUNDS, time.process_time).values()]  # of all threads
        sizes = [sum(map(len, sentences[:size])) for size in ways] if name == "tokens" else list(ways)
        slope = float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
        rows.append({"cost": name, "sizes": sizes, "cpu_seconds": seconds, "slope": slope})
    return rows


def peak_of_corpus(options: str, weights: str, data_root: str | None, number: int) -> float:
    """Peak MiB of this process after computing the layers of a number of sentences, without keeping them."""
    sentences, _ = read_sentences(data_root, number)
    for _ in BiLM.from_files(options, weights).batches(list(islice(cycle(sentences), number))):
        pass
    return peak_mib()


def _cached(bilm: BiLM, sentences: list[Sentence]) -> None:
    bilm.forget_words()
    with tempfile.TemporaryDirectory() as folder:
        cache = ActivationCache(BilmLayers.of(bilm), folder)
        cache.console.quiet = True
        cache.prepare(sentences)
        for start in range(0, len(sentences), 32):
            cache.layers(sentences[start : start + 32])


def _points(number: int) -> None:
    arms = cycle(("baseline", "elmo"))
    for seed in range(number):
        Identity(composing.run_config(["task=ner", f"arm={next(arms)}", f"seed={seed}"]))


# Training a biLM, against the best product of the same run.


def update_flops(options: Options, words: Sequence[str], tokens: int, negatives: int) -> float:
    """Products of one update, forward and backward, both directions: each distinct word once, no padding."""
    softmax = 2 * 2 * tokens * options.lstm.projection_dim * negatives
    return PASSES * (encoder_flops(options, words) + tokens * lstm_flops(options) + softmax)


def pretraining_speed(
    recipe: Recipe, sentences: Sequence[Sequence[str]], updates: int, device: torch.device, compile: bool
) -> dict[str, Any]:
    """Trains on the sentences for some updates; the rate is measured over the last fifty.

    Returns:
        tokens a second (counted once for both directions), the operations for a token, and the share of the bound,
        the rate allowed by the best product of the recipe's type.
    """
    size = recipe.rows * recipe.steps
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        text = "".join(" ".join(sentence) + "\n" for sentence in sentences)
        (folder / "text.txt").write_text(text, encoding="utf-8")
        recipe = recipe.model_copy(update={"text": [("text.txt", None)], "heldout": [], "tokens": updates * size})
        trainer = Trainer(recipe, folder, folder / "run", 1e9, compile, device=device)
        given = [np.unique(np.concatenate([chunk.inputs for chunk in pair])) for pair in islice(trainer._chunks(), 20)]
        words = [[trainer.corpus.types[i] for i in types] for types in given]
        flops = [update_flops(trainer.lm.bilm.options, each, size, recipe.negatives) for each in words]
        best = best_product(device, trainer.lm.dtype)
        trainer.fit()
        with open(folder / "run" / "log.csv", encoding="utf-8") as file:
            rate = float(list(csv.DictReader(file))[-1]["tokens_a_second"])
        best = max(best, best_product(device, trainer.lm.dtype))
    mflop = sum(flops) / len(flops) / size / 1e6
    return {
        "tokens_a_second": rate,
        "mflop_a_token": mflop,
        "best_gflops": best / 1e9,
        "dtype": str(trainer.lm.dtype).removeprefix("torch."),
        "share_of_bound": rate * mflop * 1e6 / best,
        "threads": torch.get_num_threads(),
        "rows": recipe.rows,
        "device": device_name(device),
    }


def measured_pretraining(
    page: str, updates: int, data_root: str | None, device: str = "auto", compile: bool = True
) -> dict[str, Any]:
    """The speed of a file in conf/pretrain, on the open text or on made-up words; float32 if bfloat16 is no faster.

    Returns:
        The results of `speed`, the peak memory of this process or GPU in MiB, and the hours that the release's ten
        epochs of the 1B Word Benchmark would take at this rate.
    """
    place = choose_device(device)
    sentences, _ = read_sentences(data_root, 5000)
    overrides = [f"pretrain={page}", "root=."]
    if page in ("small", "medium", "original"):  # one GPU's rows, and a word list instead of a billion tokens
        overrides += ["recipe.rows=128", "recipe.vocabulary=65536", f"+recipe.words={VOCABULARY}"]
    recipe = make_recipe(composing.compose(overrides, "pretrain").recipe)
    if recipe.bfloat16 and not bfloat16_pays(place):
        recipe = recipe.model_copy(update={"bfloat16": False})
    found = pretraining_speed(recipe, sentences, updates, place, compile)
    peak = torch.cuda.max_memory_allocated(place) / 2**20 if place.type == "cuda" else peak_mib()
    hours = 10 * EPOCH / found["tokens_a_second"] / 3600
    return {"page": page, **found, "peak_mib": peak, "hours_of_ten_epochs": hours}


# The tables.


def show(figures: dict[str, Any], console: Console) -> None:
    """Prints a table for each measured part."""
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
