"""Training steps of a task: on a device, time, memory, share of the best product, projected hours of a run and of
Table 1; on one core, the speed at scale=open: `... TASK DATA_ROOT N`.

ELMo's layers are random numbers, rounded as the cache stores them. The bound is the best matrix product in the same
process, divided by three times the products that the rows need in a forward pass, each row alone: no padding.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from elmo_bench.configuration import pages, schema
from elmo_bench.devices import standin
from elmo_bench.running.callbacks import averaging
from elmo_bench.running.module import BenchModule
from elmo_bench.speed import cases, device
from elmo_bench.speed.bound import CPU, best_product
from elmo_bench.speed.cases import Case, RandomLayers, autocast, update
from elmo_bench.sweeps.pages import points
from elmo_bench.system.storage import json_text
from elmo_bench.task import Batch

ROUNDS = 3  # on one core, of which the best counts
ROWS = 4  # of a batch, whose products are counted
WARM = 2  # passes over the batches of a device before the measurement
PASSES = 3  # the work of forward and backward pass, in forward passes
Row = dict[str, Any]


def on_device(case: Case, place: torch.device, precision: str, rounds: int) -> Row:
    """Of one arm in one precision: the largest batch for memory and waits, the others for time."""
    module = case.module(place)
    optimizer = module.configure_optimizers()
    largest, *others = case.batches

    def train(batches: Sequence[Batch]) -> None:
        for batch in batches:
            update(module, case.task, optimizer, moved(module, batch), precision)

    for _ in range(WARM):
        train(case.batches)
    training = device.seconds(lambda: train(others), place, rounds)
    rows = sum(len(batch.rows) for batch in others)
    row = {
        "task": case.task.name, "arm": case.arm, "precision": precision, "rows_a_step": rows / len(others),
        "seconds_a_step": training / len(others), "peak_mib": device.memory(lambda: train([largest]), place),
        "waits_a_step": waits(case, place, precision),
        "answering_seconds_a_row": _answering(module, others, place, precision, rounds) / rows,
    }  # fmt: skip
    return {**row, **hours(case, training / rows, row["answering_seconds_a_row"])}


def waits(case: Case, place: torch.device = CPU, precision: str = "32-true") -> int:
    """How often a GPU is waited for in a whole step: copies, update, averages of weights; on a CPU by a stand-in."""
    module: Any = case.module()
    average: Any = None
    if case.task.average is not None:
        averages: Any = averaging(case.task.average, "cpu")
        averages.setup(None, module, "fit")
        average = averages._average_model
    onto: Callable[[Any], Any] = partial(nn.Module.to, device=place)
    counted: Callable[[Callable[[], None]], int] = partial(device.waits, device=place)
    if place.type == "cpu":
        onto, counted, precision = standin.on_it, standin.waits, "32-true"  # there is no autocast of a GPU
    module, average = onto(module), None if average is None else onto(average)
    optimizer = module.configure_optimizers()

    def step() -> None:
        update(module, case.task, optimizer, moved(module, case.batches[0].each(torch.Tensor.pin_memory)), precision)
        if average is not None:
            average.update_parameters(module)

    counted(step)  # the first step makes what the others use
    return counted(step)


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


def hours(case: Case, training: float, answering: float) -> Row:
    """A run's projected hours for all epochs of the configuration file, at these seconds a row, and of what rows.

    The rows are the paper's if the task's file has their numbers (task.paper.train_rows, dev_rows), else those here.
    """
    paper, here = case.task.paper or {}, case.chosen["rows"]
    train, dev = (paper.get(f"{split}_rows") or here[split] for split in ("train", "dev"))
    epoch = train * training + dev * answering
    return {"train_rows": train, "dev_rows": dev, "hours": case.task.fit.epochs * epoch / 3600}


def table1(rows: Sequence[Row]) -> dict[str, float]:
    """The projected hours of all runs of Table 1, by precision: of these tasks, with the seeds of the sweep's file."""
    total = dict.fromkeys(device.DTYPES, 0.0)
    for task in dict.fromkeys(row["task"] for row in rows):
        runs = [
            dict(one.split("=", 1) for one in run)["arm"] for run in points("table1", [f"task={task}", "scale=paper"])
        ]
        for row in rows:
            total[row["precision"]] += row["hours"] * runs.count(row["arm"]) if row["task"] == task else 0.0
    return total


def on_one_core(case: Case) -> Row:
    """Tokens a second, MFLOP a token, the share of the bound; operations and waits of a step.

    Time is the process's own, so that other work on the machine matters little.
    """
    module, batches = case.module(), case.batches
    optimizer, took = module.configure_optimizers(), []
    for _ in range(ROUNDS + 1):
        started = time.process_time()
        for batch in batches:
            update(module, case.task, optimizer, batch)
        took.append(time.process_time() - started)
    seconds = min(took[1:])  # the first round is a warm-up
    with device.Operations() as operations:
        update(module, case.task, optimizer, batches[0])
    tokens = sum(len(s) for batch in batches for text in batch.texts.values() for s in text.sentences)
    work, best = flops(case, batches), best_product(clock=time.process_time).flops
    return {
        "tokens_a_second": tokens / seconds,
        "mflop_a_token": work / tokens / 1e6,
        "share_of_bound": work / seconds / best,
        "operations_a_step": operations.number,
        "waits_a_step": waits(case),
    }


def flops(case: Case, batches: Sequence[Batch]) -> float:
    """The products that updates on these batches need, each row alone, from some rows of each; counted on the CPU."""
    module, total = case.module(), 0.0
    for batch in batches:
        some = batch.rows[:: max(1, len(batch.rows) // ROWS)]
        total += products(module, (case.batch([row]) for row in some)) * len(batch.rows) / len(some)
    return total


def products(module: BenchModule, batches: Iterable[Batch]) -> float:
    """The operations of the products of a forward and a backward pass over batches on the CPU."""
    counted = FlopCounterMode(display=False, custom_mapping=PRODUCTS)
    with counted:
        for batch in batches:
            module(batch)
    return PASSES * counted.get_total_flops()


def _recurrent(x: torch.Size, *weights: torch.Size, out_shape: Any, **_: Any) -> int:
    """oneDNN's LSTM: every row of x times the input's and the state's weights."""
    return 2 * x[0] * x[1] * (weights[0].numel() + weights[1].numel())


def _pointwise(x: torch.Size, *_: Any, out_shape: torch.Size, **__: Any) -> int:
    return 2 * x.numel() * out_shape[-1]


PRODUCTS = {torch.ops.aten.mkldnn_rnn_layer: _recurrent, torch.ops.mkldnn._linear_pointwise: _pointwise}


def open_width(data: Sequence[str]) -> int:
    """Numbers of a layer of the biLM that scale=open names."""
    scale = schema.typed(pages.compose(["task=ner", "arm=baseline", *data])).scale
    assert scale.options is not None
    return 2 * json_text.read(scale.options)["lstm"]["projection_dim"]


def main(task: str, data_root: str, number: str) -> None:
    """Measures steps on some batches of scale=open and prints the figures as JSON."""
    torch.set_num_threads(1)
    data = ["scale=open", f"data_root={data_root}"]
    case = Case(cases.choose(task, data, "open", int(number)), "elmo", RandomLayers(open_width(data)), data)
    print(json_text.dumps({"task": task, **on_one_core(case)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
