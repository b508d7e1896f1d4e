"""Groups of recorded runs that differ only in their seed, each with a distinct name."""

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
    """Runs that differ only in their seed, sorted by seed.

    Attributes:
        name: of their row in tables.
        among: all groups of the task at the scale, whose seeds show how far a score varies.
        metric: the one that is shown; by default the one that the first run monitors.
    """

    records: list[Record]
    name: str = ""
    among: Sequence[Group] = field(default=(), repr=False)
    metric: str = ""

    @property
    def first(self) -> Record:
        return self.records[0]

    def scores(self, split: str = "test", metric: str = "") -> list[float]:
        """The score of each seed, in percent."""
        return [record.metrics[split][metric or self.metric or self.first.monitor] for record in self.records]

    def mean(self, split: str = "test", metric: str = "") -> str:
        """The mean and sample deviation of the scores, "90.00 ± 1.00"; no deviation for a single run."""
        scores = self.scores(split, metric)
        return f"{fmean(scores):.2f}" + (f" ± {stdev(scores):.2f}" if len(scores) > 1 else "")

    def mean_of(self, key: str, form: str) -> str:
        """The mean of another number over the runs that have one, in this form; empty if none has."""
        known = [value for record in self.records if (value := getattr(record, key))]
        return form.format(fmean(known)) if known else ""

    def weights(self, place: str) -> list[float]:
        """The mean over the seeds of each s_j at the selected epoch, then that of gamma."""
        chosen = [[*record.weights_at(place), record.gamma[place][record.epoch - 1]] for record in self.records]
        return [fmean(column) for column in zip(*chosen, strict=True)]

    @property
    def rising(self) -> str:
        """How many runs had their best dev score in the last epoch, "; 3 ↑"; empty if none had."""
        number = sum(record.rises for record in self.records)
        return f"; {number} {RISES}" if number else ""

    @property
    def seeds(self) -> str:
        """The seeds, and how many of them were `rising`: "1-3, 7; 2 ↑"."""
        return ranges([record.seed for record in self.records]) + self.rising

    def runs(self, *values: str) -> list[Run]:
        """Links to the records; each run with its value, by default the name of the group."""
        paths = (store.place(".", record.scale, record.task, record.run) for record in self.records)
        return [
            Run(record.run, f"seed {record.seed}: {value}", path.as_posix())
            for record, path, value in zip(self.records, paths, values or [self.name] * len(self.records), strict=True)
        ]


def in_groups(records: Sequence[Record], metric: str = "") -> list[Group]:
    """The groups of one task at one scale; runs with another biLM or other data are in another group.

    If groups would have the same name, it includes how they differ. Records of one group that have different metrics
    or layers are refused, as one of them must be wrong.
    """
    found = []
    for _, alike in rows_of(records).groupby(["label", "bilm"], sort=False, dropna=False):
        parts = alike.groupby(["group", "weights", "inputs"], sort=False)
        groups = [[*runs.sort_values("seed", kind="stable").record] for _, runs in parts]
        settings = differences([flat(without_seed(runs[0].settings)) for runs in groups])
        files = differences([{"biLM": runs[0].weights, "data": runs[0].data_sha256} for runs in groups])
        for runs, changed, digests in zip(groups, settings, files, strict=True):
            columns = [  # what a table averages: how many layers are weighted at each place, and the metrics
                [
                    {place: len(rows[0]) for place, rows in record.layer_weights.items()},
                    *map(set, record.metrics.values()),
                ]
                for record in runs
            ]
            for other, each in zip(runs, columns, strict=True):
                if each != columns[0]:
                    raise UserError(
                        f"the records {runs[0].run} and {other.run} ({other.task}, scale {other.scale}) differ "
                        "only in their seed, but have other metrics or layers; restore or remove the wrong one"
                    )
            words = settings_text(changed)
            digests = [f"{kind} {short(each)}" for kind, each in digests.items() if short(each) not in "; ".join(words)]
            found.append(Group(runs, "; ".join([alike.label.iloc[0], *words, *digests]), found, metric))
    return found


def differences(settings: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """For each of several settings, its values of the dotted keys in which they differ; None where it lacks the key."""
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


def settings_text(settings: Mapping[str, Any], most: int = 4) -> list[str]:
    """Settings as key=value, a sha256 cut to eight digits; beyond `most` of them, only how many more there are."""
    shown = [f"{key}={short(value)}" for key, value in list(settings.items())[:most]]
    return shown + ([f"{len(settings) - most} more settings"] if len(settings) > most else [])


def short(value: Any) -> str:
    """A value as text, each sha256 cut to eight digits."""
    return re.sub(r"\b(sha256:)?([0-9a-f]{8})[0-9a-f]{56}\b", r"\2", as_typed(value))


def rising_remark(rows: Sequence[Sequence[str]]) -> list[str]:
    """An explanation of the mark ↑ for a table that has it."""
    return [RISING] if any(RISES in cell for row in rows for cell in row) else []


def paper_scores(record: Record, metric: str = "") -> tuple[float | None, float | None]:
    """The paper's figures for the baseline and +ELMo."""
    given = (record.paper.get(arm) for arm in ("baseline", "elmo"))
    before, after = (each.get(metric or record.monitor) if isinstance(each, dict) else each for each in given)
    return before, after


def paper_gain(record: Record) -> str:
    """The paper's gain of ELMo in the monitored metric, "+2.07"; empty without figures."""
    before, after = paper_scores(record)
    return "" if before is None or after is None else f"{round(after - before, 2):+.2f}"


def ranges(seeds: Sequence[int]) -> str:
    """[1, 2, 3, 7] -> "1-3, 7"."""
    alike = groupby(enumerate(sorted(seeds)), key=lambda pair: pair[1] - pair[0])  # in a range both grow by one
    parts = [[seed for _, seed in pairs] for _, pairs in alike]
    return ", ".join(str(part[0]) if len(part) == 1 else f"{part[0]}-{part[-1]}" for part in parts)
