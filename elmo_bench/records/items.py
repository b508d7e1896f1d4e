"""The per-example results of a run, in a small file beside its record: reading, writing, and checking its metrics."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from elmo_bench.metrics.items import Items, smallest
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage.files import write_bytes
from elmo_bench.system.storage.integrity import damage

if TYPE_CHECKING:
    from elmo_bench.task import Metric, Prediction, Row

FORMAT = 1
SPLITS = ("dev", "test")
DEV, PREDICTIONS = "dev.items.npz", "predictions.test.jsonl"  # in a run's work folder
TOLERANCE = 1e-6  # for a metric in percent
REMEDY = "remove it and its record, and run again"
RESTART = "start the run again with force=true"  # for a run without a record


def path_of(record: Path) -> Path:
    """The path of a run's per-example results, from the path of its record."""
    return record.with_suffix(".items.npz")


def write(path: Path, items: Mapping[str, Items]) -> None:
    """Writes the per-example results of each split atomically."""
    write_bytes(path, packed(items))


def packed(items: Mapping[str, Items]) -> bytes:
    """The content of a file with the per-example results of each split; equal results give equal bytes.

    Arrays that count 0, 1, 2, ... are left out: `rows` if each row is an example, `clusters` if each example is one.
    """
    arrays: dict[str, np.ndarray] = {"format": np.array(FORMAT, dtype=np.uint8)}
    for split, part in items.items():
        arrays |= {f"{split}/statistics/{name}": values for name, values in part.statistics.items()}
        for name, numbers in (("rows", part.rows), ("clusters", part.clusters)):
            if not np.array_equal(numbers, np.arange(len(part))):
                arrays[f"{split}/{name}"] = numbers
        if part.names:
            arrays[f"{split}/names"] = np.array(part.names, dtype=np.str_)
    content = io.BytesIO()
    np.savez_compressed(content, **arrays)  # type: ignore[arg-type]
    return content.getvalue()


def read(path: Path, remedy: str = REMEDY) -> dict[str, Items]:
    """The per-example results of every split in a file; `remedy` ends the messages."""
    if not path.is_file():
        raise UserError(f"no such file of per-example results; {remedy}", path)
    if found := damage(path):
        raise UserError(f"not a readable file of per-example results ({found}); {remedy}", path)
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = dict(file)
        if (file_format := int(arrays.pop("format"))) != FORMAT:
            raise UserError(
                f"per-example results in format {file_format}, written by another version of elmo_bench; {remedy}", path
            )
        found = {}
        for split in SPLITS:
            own = {key.removeprefix(f"{split}/"): each for key, each in arrays.items() if key.startswith(f"{split}/")}
            if own:
                prefix, names = "statistics/", tuple(own["names"].tolist()) if "names" in own else ()
                statistics = {key.removeprefix(prefix): each for key, each in own.items() if key.startswith(prefix)}
                counting = smallest(np.arange(len(next(iter(statistics.values())))))
                found[split] = Items(statistics, own.get("rows", counting), own.get("clusters", counting), names)
        return found
    except UserError:
        raise
    except Exception as error:  # zip and numpy raise many kinds for a damaged file
        raise UserError(
            f"not a readable file of per-example results ({type(error).__name__}: {error}); {remedy}", path
        ) from None


def difference(computed: Mapping[str, float], given: Mapping[str, float]) -> str | None:
    """The scores computed from examples and the given scores, in words; None if they are equal."""
    if computed.keys() == given.keys():
        ours = [computed[name] for name in given]
        if np.allclose(ours, [*given.values()], rtol=0, atol=TOLERANCE, equal_nan=True):
            return None
    one, other = (", ".join(f"{name} {value}" for name, value in sorted(each.items())) for each in (computed, given))
    return f"{one}, and not {other}"


def check(
    items: Mapping[str, Items],
    metrics: Mapping[str, Mapping[str, float]],
    from_totals: Callable[[Mapping[str, float]], Mapping[str, float]],
) -> None:
    """Raises `ValueError` if the examples do not give the metrics in a record."""
    if set(items) != set(metrics):
        raise ValueError(f"per-example results of {', '.join(items)} for metrics of {', '.join(metrics)}")
    for split, recorded in metrics.items():
        if apart := difference(from_totals(items[split].totals()), recorded):
            raise ValueError(f"{split}: the examples give {apart}")


def rehearse_metric(make: Callable[[], Metric], predictions: Sequence[Prediction], rows: Sequence[Row]) -> None:
    """Compares a metric with its own examples before training.

    An untrained model may have no correct answer. So the metric is also tried with the values in the rows, such as gold
    answers; values that it does not accept are skipped.
    """
    alike = [key for key, value in rows[0].items() if type(value) is type(predictions[0])]
    for answers in (predictions, *([row.get(key) for row in rows] for key in alike)):
        metric = make()
        try:
            with warnings.catch_warnings(action="ignore"):  # about values that are no answers
                metric.update(answers, rows)
                apart = difference(metric.from_totals(metric.items().totals()), metric.compute())
        except Exception:  # in a task's own code: no answer, or too few answers to score
            continue
        if apart:
            raise UserError(f"task.metric: the items of {type(metric).__name__} give {apart}, as its compute() has it")


def collect(folder: Path, test: Items | None) -> dict[str, Items]:
    """The per-example results to save beside a run's record: of dev at the selected epoch, and of test.

    The results of dev are in the run's work folder, the results of test in the module after its test.
    """
    if test is None:
        raise ValueError("the module has not been tested")
    dev = read(folder / DEV, RESTART)
    if "dev" not in dev:
        raise UserError(f"contains no per-example results of dev; {RESTART}", folder / DEV)
    return {"dev": dev["dev"], "test": test}
