"""The cost of a run, the same number everywhere: the median of the computing time of recorded runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from statistics import median
from typing import TYPE_CHECKING

from elmo_bench.records.record import Record

if TYPE_CHECKING:
    from elmo_bench.configuration.schema import RunConfig

COMPUTING = (
    "A time is the median of the runs' computing: CPU time summed over the cores, or for runs on a GPU the time of "
    "their training there. Other work on the machine lengthens it, because it shares caches and clock: docs/costs.md "
    "has the ranges."
)


def typical(records: Sequence[Record]) -> float:
    """The median of the seconds of computing of one or more runs."""
    return median(record.device_seconds for record in records)


def expected(run: RunConfig, records: Sequence[Record]) -> float:
    """The expected seconds of computing of a run: the median of recorded runs of its task and arm.

    Each is scaled to the run's epochs and training batches.
    """
    return median(record.device_seconds * _proportion(run, record) for record in records)


def _proportion(run: RunConfig, record: Record) -> float:
    fit, limit = run.task.fit, run.trainer.limit_batches
    epochs = fit.epochs / (record.most_epochs or fit.epochs)
    share = run.fraction / record.fraction
    if run.fraction < 1:
        share = max(share, min(1.0, fit.least_updates / record.updates))
    if limit:
        share = min(share, limit if limit < 1 else limit * record.epochs / record.updates)
    training, whole = (sum(record.history.get(key, ())) for key in ("training_seconds", "seconds"))
    return epochs * (1 + (share - 1) * (training / whole if whole else 1.0))


def start(records: Sequence[Record]) -> float:
    """The median CPU seconds of one or more runs before their epochs, without making files; 0 if none is recorded."""
    return median([record.preparing["start"] for record in records if record.preparing] or [0.0])


def making(records: Sequence[Record], tasks: Collection[str]) -> float:
    """The CPU seconds that the first runs of these tasks need for making inputs: the maximum over recorded runs.

    Layers belong to a task. Files, such as data and word vectors, are made by the very first run; their task is "".
    """
    most: dict[tuple[str, str], float] = {}
    for record in records:
        if not record.preparing or any(key.startswith("bilm") for key in record.variant):
            continue
        for part, seconds in (record.preparing or {}).items():
            of = record.task if part == "layers" else ""
            most[of, part] = max(seconds, most.get((of, part), 0.0))
    return sum(seconds for (task, part), seconds in most.items() if task in tasks and part != "start")


def on_one_processor(*groups: Sequence[Record]) -> tuple[str, list[list[Record]]]:
    """The runs that can be compared in time: those on the most frequent kind of processor that every group has.

    Returns:
        The kind, and the groups' runs on it; "" and the unchanged groups if they have none in common.
    """
    kinds = [Counter(record.machine.get("cpu", "") for record in group) for group in groups]
    shared = set.intersection(*map(set, kinds)) - {""}
    if not shared:
        return "", [*map(list, groups)]
    kind = max(sorted(shared), key=lambda name: sum(each[name] for each in kinds))
    return kind, [[record for record in group if record.machine.get("cpu") == kind] for group in groups]


def in_time(seconds: float) -> str:
    """ "119 s", "57 min", "2.1 h"."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
