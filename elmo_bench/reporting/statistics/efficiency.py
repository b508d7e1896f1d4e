"""How many updates ELMo saves (paper, section 5.4), from the histories of recorded runs.

The paper's example is SRL: without ELMo the best dev F1 comes after 486 epochs, and with ELMo the tenth epoch exceeds
it: 98 % fewer updates. Dev is scored once an epoch, so that both numbers are known to an epoch.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from elmo_bench.records.record import Record


def saved(baseline: Record, elmo: Record) -> float | None:
    """The percentage of a baseline's updates that a run with ELMo of the same seed saves.

    It is of the updates until the baseline's best dev score: until the baseline first has it, and until the run with
    ELMo first exceeds it.

    Returns:
        a negative number if more updates were needed; None if the run with ELMo never exceeds the score.

    Raises:
        ValueError: the runs differ in seed, task, version, scale, data, fraction, or the size of an update.
    """
    ours, theirs = _compared(elmo), _compared(baseline)
    if different := [key for key in ours if ours[key] != theirs[key]]:
        raise ValueError(f"the runs {baseline.run} and {elmo.run} differ in {', '.join(different)}")
    best = max(baseline.dev_scores)
    exceeding = [dev > best for dev in elmo.dev_scores]
    if not any(exceeding):
        return None
    needed = elmo.history["updates"][exceeding.index(True)]
    return 100 * (1 - needed / baseline.history["updates"][baseline.dev_scores.index(best)])


def savings(baselines: Iterable[Record], elmos: Iterable[Record]) -> list[float | None]:
    """`saved` of the seeds that both groups of runs have, in their order."""
    by_seed = {record.seed: record for record in elmos}
    return [
        saved(record, by_seed[record.seed])
        for record in sorted(baselines, key=lambda record: record.seed)
        if record.seed in by_seed
    ]


def _compared(record: Record) -> dict[str, Any]:
    """What two runs must have in common for their updates to compare."""
    task, trainer = record.config["task"], record.config.get("trainer", {})
    return {
        **{key: getattr(record, key) for key in ("seed", "task", "scale", "version", "data_sha256", "fraction")},
        "batch": task.get("batch", {}).get("batch_size"),
        "devices": trainer.get("devices", 1),
    }
