"""How many updates ELMo saves (paper, section 5.4), from the histories of recorded runs.

The paper's example is SRL: without ELMo the best dev F1 comes after 486 epochs, and with ELMo the tenth epoch exceeds
it: 98 % fewer updates. Dev is scored once an epoch, so that both numbers are known to an epoch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import Any, NamedTuple

from elmo_bench.records.record import Record
from elmo_bench.reporting.statistics.groups import Group

STILL = 0.2  # points of dev in two epochs: what gains so much has not finished


class Saved(NamedTuple):
    """The percentage of a baseline's updates that a run saves, and what share of them an epoch is, in percent."""

    percent: float
    epoch: float


def unfinished(groups: Sequence[Group]) -> list[str]:
    """At most one sentence: that all runs of an arm end at the cap of epochs, and the lesser arm still gains more."""
    last = [[record.dev_scores for record in group.records] for group in groups]
    gained = [fmean(dev[-1] - dev[-3] for dev in scores) if min(map(len, scores)) > 2 else 0.0 for scores in last]
    capped = [all(r.epochs == r.config["task"].get("fit", {}).get("epochs") for r in group.records) for group in groups]
    if not any(capped) or gained[-1] <= max(STILL, gained[0]):
        return []
    ends = " and ".join(f"{still:+.2f}" for still in gained)
    return [f"all runs of an arm end at the cap of epochs, where dev still gains {ends} in two epochs"]


def saved(baseline: Record, elmo: Record) -> Saved | None:
    """The percentage of a baseline's updates that a run with ELMo of the same seed saves.

    It is of the updates until the baseline's best dev score: until the baseline first has it, and until the run with
    ELMo first exceeds it.

    Returns:
        a negative percentage if more updates were needed; None if the run with ELMo never exceeds the score.

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
    theirs = baseline.history["updates"][baseline.dev_scores.index(best)]
    return Saved(100 * (1 - needed / theirs), 100 * baseline.history["updates"][0] / theirs)


def savings(baselines: Iterable[Record], elmos: Iterable[Record]) -> list[Saved | None]:
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
