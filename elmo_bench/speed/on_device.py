"""Encoding, and a training step of each task, on a device: time, memory, share of its best product, projected hours.

On a GPU at the sizes of scale=paper, with ELMo from the cache; on a CPU the same code at the sizes of scale=mini, which
shows that it runs and nothing about a GPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from elmo_bench.bilm import BiLM
from elmo_bench.running.module import BenchModule
from elmo_bench.speed import cases, device
from elmo_bench.speed.cases import Case, Chosen, RandomLayers, autocast, update
from elmo_bench.speed.flops import batch_flops
from elmo_bench.speed.steps import products
from elmo_bench.speed.text import read_sentences
from elmo_bench.sweeps.pages import points
from elmo_bench.task import Batch

ROWS = 4  # of a batch, for counting operations
WARM = 2  # passes over the batches before the measurement
Row = dict[str, Any]


class Amount(NamedTuple):
    """How much is measured."""

    scale: str  # of the models
    width: int  # of the layers
    product: int  # rows of the square matrices
    sentences: int  # to encode
    budgets: tuple[int, ...]  # tokens that the biLM computes at once
    batches: int  # of a task, besides the largest
    rounds: int


PAPER = Amount("paper", 1024, 8192, 2048, (2048, 16384), 6, 5)
REDUCED = Amount("mini", 16, 256, 32, (2048,), 2, 1)


def amount(place: torch.device) -> Amount:
    """The paper's sizes on a GPU, reduced ones on a CPU."""
    return PAPER if place.type == "cuda" else REDUCED


def roof(place: torch.device) -> Row:
    """The best rates of this device: FLOP a second of a matrix product by precision, bytes a second of a copy."""
    size = amount(place).product
    return {"flops": device.best_products(place, size), "copied_bytes": device.copied_bytes(place, 4 * size**2)}


def encode(files: tuple[Path, Path], place: torch.device, best: Row) -> list[Row]:
    """Words to layers in float32, for every budget; words are encoded afresh each time.

    Args:
        files: options and weights of a biLM.
        place: the device.
        best: what `roof` found.
    """
    sentences, _ = read_sentences(None, amount(place).sentences)
    tokens, rows = sum(map(len, sentences)), []
    for budget in amount(place).budgets:
        bilm = BiLM.from_files(*files, state="warm", token_budget=budget).to(place)

        def work(bilm: BiLM = bilm) -> None:
            bilm.forget_words()
            for _ in bilm.batches(sentences):
                pass

        seconds = device.seconds(work, place, amount(place).rounds)
        share = batch_flops(bilm.options, sentences) / seconds / best["flops"]["32-true"]
        row = {"token_budget": budget, "tokens_a_second": tokens / seconds, "share_of_bound": share}
        rows.append({**row, "peak_mib": device.memory(work, place)})
    return rows


def choose(task: str, place: torch.device, data: Sequence[str]) -> Chosen:
    """Batches of a task for this device."""
    return cases.choose(task, data, amount(place).scale, amount(place).batches)


def steps(chosen: Chosen, place: torch.device, best: Row) -> list[Row]:
    """The training steps of a task, a row for each arm of Table 1 and each precision."""
    source, rows = RandomLayers(amount(place).width), []
    for arm in ("baseline", "elmo"):
        case = Case(chosen, arm, source)
        work = flops(case, case.batches[1:])
        for precision, rate in best["flops"].items():
            row = _measured(case, place, precision)
            share = work / len(case.batches[1:]) / row["seconds_a_step"] / rate
            rows.append({**row, "share_of_bound": share})
    return rows


def _measured(case: Case, place: torch.device, precision: str) -> Row:
    """Of one arm in one precision: the largest batch for memory and waits, the others for time."""
    module, rounds = case.module(place), amount(place).rounds
    optimizer = module.configure_optimizers()
    largest, *others = case.batches

    def train(batches: Sequence[Batch]) -> None:
        for batch in batches:
            update(module, case.task, optimizer, moved(module, batch), precision)

    for _ in range(WARM):
        train(case.batches)
    training = device.seconds(lambda: train(others), place, rounds)
    resident = moved(module, largest)
    waits = device.waits(lambda: update(module, case.task, optimizer, resident, precision), place)
    rows = sum(len(batch.rows) for batch in others)
    row = {
        "task": case.task.name, "arm": case.arm, "precision": precision, "rows_a_step": rows / len(others),
        "seconds_a_step": training / len(others), "peak_mib": device.memory(lambda: train([largest]), place),
        "waits_a_step": waits,
        "answering_seconds_a_row": _answering(module, others, place, precision, rounds) / rows,
    }  # fmt: skip
    return {**row, **hours(case, training / rows, row["answering_seconds_a_row"])}


def moved(module: BenchModule, batch: Batch) -> Batch:
    """A batch on the module's device, as Lightning moves it."""
    return module.transfer_batch_to_device(batch, module.device, 0)


def _answering(
    module: BenchModule, batches: Sequence[Batch], place: torch.device, precision: str, rounds: int
) -> float:
    """Seconds to predict the rows of the batches."""
    module.eval()

    @torch.no_grad()
    def work() -> None:
        for batch in batches:
            with autocast(place, precision):
                module.predict_step(moved(module, batch))

    return device.seconds(work, place, rounds)


def flops(case: Case, batches: Sequence[Batch]) -> float:
    """The products that updates on these batches need, each row alone, from some rows of each; counted on the CPU."""
    module, total = case.module(), 0.0
    for batch in batches:
        some = batch.rows[:: max(1, len(batch.rows) // ROWS)]
        total += products(module, (case.batch([row]) for row in some)) * len(batch.rows) / len(some)
    return total


def hours(case: Case, training: float, answering: float) -> Row:
    """A run's projected hours for all epochs of the page, at these seconds a row, and of what rows.

    The rows are the paper's where the page has their numbers (task.paper.train_rows and dev_rows), else those at hand.
    """
    paper, here = case.task.paper or {}, case.chosen["rows"]
    train, dev = (paper.get(f"{split}_rows") or here[split] for split in ("train", "dev"))
    epoch = train * training + dev * answering
    return {"train_rows": train, "dev_rows": dev, "hours": case.task.fit.epochs * epoch / 3600}


def table1(rows: Sequence[Row]) -> dict[str, float]:
    """The projected hours of all runs of Table 1, by precision: of the tasks of the rows, with the page's seeds."""
    total = dict.fromkeys(device.DTYPES, 0.0)
    for task in dict.fromkeys(row["task"] for row in rows):
        runs = [
            dict(one.split("=", 1) for one in run)["arm"] for run in points("table1", [f"task={task}", "scale=paper"])
        ]
        for row in rows:
            total[row["precision"]] += row["hours"] * runs.count(row["arm"]) if row["task"] == task else 0.0
    return total
