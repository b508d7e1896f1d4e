"""How many updates ELMo saves (paper, section 5.4), from the histories of recorded runs.

The paper's example is SRL: without ELMo the best dev F1 comes after 486 epochs, and with ELMo the tenth epoch exceeds
it: 98 % fewer updates. Dev is scored once an epoch, so that both numbers are known to an epoch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from elmo_bench.records.record import Record


class Reached(NamedTuple):
    """The point of a run's training at which a score was reached."""

    epoch: int  # from 1
    updates: int


class Saving(NamedTuple):
    """A baseline and a run with ELMo of one seed.

    Attributes:
        seed: of both runs.
        best: the baseline's best dev score, in percent.
        baseline: where the baseline first has it.
        elmo: where the run with ELMo first exceeds it; None if it never does.
    """

    seed: int
    best: float
    baseline: Reached
    elmo: Reached | None

    @property
    def saved(self) -> float | None:
        """The percentage of the baseline's updates that are saved, negative if more were needed; None if `elmo` is."""
        return None if self.elmo is None else 100 * (1 - self.elmo.updates / self.baseline.updates)


def passed(record: Record, score: float) -> Reached | None:
    """Where a run's dev score first exceeds a score; None if it never does."""
    return _first(record, [dev > score for dev in record.dev_scores])


def saving(baseline: Record, elmo: Record) -> Saving:
    """Compares two runs of one seed.

    Raises:
        ValueError: the runs differ in seed, task, version, scale, data, fraction, or the size of an update.
    """
    ours, theirs = _compared(elmo), _compared(baseline)
    if different := [key for key in ours if ours[key] != theirs[key]]:
        raise ValueError(f"the runs {baseline.run} and {elmo.run} differ in {', '.join(different)}")
    scores = baseline.dev_scores
    first = _first(baseline, [dev == max(scores) for dev in scores])
    assert first is not None
    return Saving(baseline.seed, max(scores), first, passed(elmo, max(scores)))


def savings(baselines: Iterable[Record], elmos: Iterable[Record]) -> list[Saving]:
    """`saving` of the seeds that both groups of runs have, in their order."""
    by_seed = {record.seed: record for record in elmos}
    pairs = [(record, by_seed[record.seed]) for record in baselines if record.seed in by_seed]
    return sorted(saving(*pair) for pair in pairs)


def _compared(record: Record) -> dict[str, Any]:
    """What two runs must have in common for their updates to compare."""
    task, trainer = record.config["task"], record.config.get("trainer", {})
    return {
        **{key: getattr(record, key) for key in ("seed", "task", "scale", "version", "data_sha256", "fraction")},
        "batch": task.get("batch", {}).get("batch_size"),
        "devices": trainer.get("devices", 1),
    }


def _first(record: Record, reached: Sequence[bool]) -> Reached | None:
    if True not in reached:
        return None
    epoch = reached.index(True)
    return Reached(epoch + 1, record.history["updates"][epoch])
