"""Groups of recorded runs that differ only in their seed, each with a distinct name, and their statistics in words."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from statistics import fmean, stdev
from typing import Any

from elmo_bench.configuration.keys import flat
from elmo_bench.records import store
from elmo_bench.records.frame import rows_of
from elmo_bench.records.record import Record, without_seed
from elmo_bench.reporting.section import Run
from elmo_bench.system.errors import UserError, as_typed

RISES = "↑"
RISING = f"N {RISES}: N of these runs had their best dev score in the last epoch; more epochs might raise the score."


@dataclass(frozen=True, eq=False)
class Group:
    """Runs that differ only in their seed, sorted by seed, and the name of their row.

    `among` are all groups of the task at the scale, whose seeds tell how far a score varies.
    """

    records: list[Record]
    name: str
    among: Sequence[Group] = field(default=(), repr=False)

    @property
    def first(self) -> Record:
        return self.records[0]


def in_groups(records: Sequence[Record]) -> list[Group]:
    """The groups of one task at one scale; runs with another biLM or other data are in another group.

    If groups would have the same name, it includes how they differ.

    Raises:
        UserError: runs of one group have different metrics or layers: one of their records is wrong.
    """
    found = []
    for _, alike in rows_of(records).groupby(["label", "bilm"], sort=False, dropna=False):
        parts = alike.groupby(["group", "weights", "inputs"], sort=False)
        groups = [[*runs.sort_values("seed", kind="stable").record] for _, runs in parts]
        settings = differences([flat(without_seed(runs[0].settings)) for runs in groups])
        files = differences([{"biLM": runs[0].weights, "data": runs[0].data_sha256} for runs in groups])
        for runs, changed, digests in zip(groups, settings, files, strict=True):
            for other in runs:
                if _columns(other) != _columns(runs[0]):
                    raise UserError(
                        f"the records {runs[0].run} and {other.run} ({other.task}, scale {other.scale}) differ "
                        "only in their seed, but have other metrics or layers; restore or remove the wrong one"
                    )
            words = in_words(changed)
            unsaid = [f"{kind} {short(each)}" for kind, each in digests.items() if short(each) not in "; ".join(words)]
            found.append(Group(runs, "; ".join([alike.label.iloc[0], *words, *unsaid]), found))
    return found


def _columns(record: Record) -> list[Any]:
    """The names of the metrics, and how many layers are weighted at each place: what a table averages."""
    layers = {place: len(rows[0]) for place, rows in record.layer_weights.items()}
    return [layers, *map(set, record.metrics.values())]


def differences(settings: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What differs between several settings: of each its own values, by dotted key; None where it lacks the key."""
    keys = sorted({key for each in settings for key in each})
    different = [key for key in keys if any(each.get(key) != settings[0].get(key) for each in settings)]
    return [{key: each.get(key) for key in different} for each in settings]


def weight(group: Group) -> tuple[bool, bool, int, str, str]:
    """Sorts groups: last those on the scale's own data, then without a change, with most seeds, the newest."""
    newest = max(record.finished for record in group.records)
    return not group.first.own_data, not group.first.variant, len(group.records), newest, group.first.group


def weight_of_pair(pair: tuple[Group, Group]) -> tuple:
    """The same for the groups of a comparison, by the one with fewer seeds."""
    one, other = map(weight, pair)
    return (*min(one[:2], other[:2]), *sorted((one[2:], other[2:])))


# In words.


def in_words(settings: Mapping[str, Any], most: int = 4) -> list[str]:
    """Settings as key=value, a sha256 cut to eight digits; after `most` of them, only the number of the rest."""
    shown = [f"{key}={short(value)}" for key, value in list(settings.items())[:most]]
    return shown + ([f"{len(settings) - most} more settings"] if len(settings) > most else [])


def short(value: Any) -> str:
    """A value in words, each sha256 cut to eight digits."""
    return re.sub(r"\b(sha256:)?([0-9a-f]{8})[0-9a-f]{56}\b", r"\2", as_typed(value))


def score(records: Sequence[Record], split: str, metric: str) -> tuple[float, float | None]:
    """Mean and sample deviation of a metric, in percent; no deviation for a single run."""
    values = [record.metrics[split][metric] for record in records]
    return fmean(values), stdev(values) if len(values) > 1 else None


def scores(records: Sequence[Record], split: str, metric: str) -> str:
    """The same as "90.00 ± 1.00"."""
    mean, deviation = score(records, split, metric)
    return f"{mean:.2f}" + ("" if deviation is None else f" ± {deviation:.2f}")


def rising(records: Sequence[Record]) -> str:
    """Behind a number of runs, how many had their best dev score in the last epoch, "; 3 ↑"; empty if none had."""
    number = sum(record.rises for record in records)
    return f"; {number} {RISES}" if number else ""


def rising_in_words(rows: Sequence[Sequence[str]]) -> list[str]:
    """What the mark means, for a table that has it."""
    return [RISING] if any(RISES in cell for row in rows for cell in row) else []


def of_paper(record: Record, metric: str) -> tuple[float | None, float | None]:
    """The paper's figures for the baseline and +ELMo."""
    given = (record.paper.get(arm) for arm in ("baseline", "elmo"))
    before, after = (each.get(metric) if isinstance(each, dict) else each for each in given)
    return before, after


def gain_of_paper(record: Record) -> float | None:
    """The paper's gain of ELMo in the monitored metric."""
    before, after = of_paper(record, record.monitor)
    return None if before is None or after is None else round(after - before, 2)


def mean_weights(records: Sequence[Record], place: str) -> list[float]:
    """The mean of each s_j over the seeds, then that of gamma."""
    chosen = [[*record.weights_at(place), record.gamma[place][record.epoch - 1]] for record in records]
    return [fmean(column) for column in zip(*chosen, strict=True)]


def ranges(seeds: Sequence[int]) -> str:
    """[1, 2, 3, 7] -> "1-3, 7"."""
    alike = groupby(enumerate(sorted(seeds)), key=lambda pair: pair[1] - pair[0])  # in a range both grow by one
    parts = [[seed for _, seed in pairs] for _, pairs in alike]
    return ", ".join(str(part[0]) if len(part) == 1 else f"{part[0]}-{part[-1]}" for part in parts)


def linked(record: Record, value: str) -> Run:
    """A run and what it contributes to a number, as "seed 1: 68.12"."""
    path = store.place(".", record.scale, record.task, record.run)
    return Run(record.run, f"seed {record.seed}: {value}", path.as_posix())


def runs_of(*groups: Group) -> list[Run]:
    """The runs behind a number that is computed from several groups."""
    return [linked(record, group.name) for group in groups for record in group.records]


def mean_in_words(records: Sequence[Record], key: str, text: str) -> str:
    """The mean of a number over the runs that have one, written as `text` says; empty if none has."""
    known = [value for record in records if (value := getattr(record, key))]
    return text.format(fmean(known)) if known else ""
