"""Training steps of a task on a device: time, memory, waits, share of the best product, projected hours.

ELMo's layers are random numbers, rounded as the cache stores them.
"""

import operator
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch

from elmo_bench.running.callbacks import averaging
from elmo_bench.running.module import BenchModule
from elmo_bench.speed.measuring import CPU
from elmo_bench.speed.steps import Case, update
from elmo_bench.sweeps.request import points
from elmo_bench.task import Batch
from tests.gpu import measure, standin

WARM = 2  # passes over the batches of a device before the measurement
Row = dict[str, Any]


def on_device(case: Case, place: torch.device, precision: str, rounds: int) -> Row:
    """Of one arm in one precision: the largest batch for memory and waits, the others for time."""
    module = case.module(place)
    optimizer = module.configure_optimizers()
    largest, *others = case.batches

    def train(batches: Sequence[Batch]) -> None:
        for batch in batches:
            update(module, case.task, optimizer, loss_of(module, moved(module, batch), precision))

    for _ in range(WARM):
        train(case.batches)
    training = measure.seconds(lambda: train(others), rounds)
    rows = sum(len(batch.rows) for batch in others)
    row = {
        "task": case.task.name, "arm": case.arm, "precision": precision, "rows_a_step": rows / len(others),
        "seconds_a_step": training / len(others), "peak_mib": measure.memory(lambda: train([largest]), place),
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
    onto: Callable[[Any], Any] = operator.methodcaller("to", place)  # Lightning's `to`, which sets `module.device`
    counted: Callable[[Callable[[], None]], int] = partial(_waits_of_gpu, device=place)
    if place.type == "cpu":
        onto, counted, precision = standin.on_it, standin.waits, "32-true"  # there is no autocast of a GPU
    module, average = onto(module), None if average is None else onto(average)
    optimizer = module.configure_optimizers()

    def step() -> None:
        batch = moved(module, case.batches[0].each(torch.Tensor.pin_memory))
        update(module, case.task, optimizer, loss_of(module, batch, precision))
        if average is not None:
            average.update_parameters(module)

    counted(step)  # the first step makes what the others use
    return counted(step)


def loss_of(module: BenchModule, batch: Batch, precision: str = "32-true") -> torch.Tensor:
    """The loss of a batch that is on the module's device, in a precision as Lightning computes it."""
    with autocast(module.device, precision):
        return module(batch).loss


def autocast(device: torch.device, precision: str) -> torch.autocast:
    """What Lightning computes the forward pass in: 32-true or bf16-mixed."""
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=precision == "bf16-mixed")


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

    return measure.seconds(work, rounds)


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
    total = dict.fromkeys(measure.DTYPES, 0.0)
    for task in dict.fromkeys(row["task"] for row in rows):
        runs = [
            dict(one.split("=", 1) for one in run)["arm"] for run in points("table1", [f"task={task}", "scale=paper"])
        ]
        for row in rows:
            total[row["precision"]] += row["hours"] * runs.count(row["arm"]) if row["task"] == task else 0.0
    return total


def _waits_of_gpu(work: Callable[[], Any], device: torch.device) -> int:
    """How often a call waits for a GPU, copies included; `standin.waits` counts the same on a CPU."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            work()
        finally:
            torch.cuda.set_sync_debug_mode("default")
    return sum("synchroniz" in str(each.message) for each in told)
