"""Statistics of a group of runs, formatted for the tables, and the runs that they were computed from."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from statistics import fmean, stdev

from elmo_bench.records import store
from elmo_bench.records.record import Record
from elmo_bench.reporting.section import Number, Run
from elmo_bench.reporting.statistics.groups import Group

RISES = "↑"
RISING = f"N {RISES}: N of these runs had their best dev score in the last epoch; more epochs might raise the score."


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


def layer_weights(records: Sequence[Record]) -> str:
    """Mean layer weights and gamma, for each place where ELMo enters."""
    cells = []
    for place in records[0].layer_weights:
        *weights, gamma = (f"{mean:.2f}" for mean in mean_weights(records, place))
        cells.append(f"{place}: {' '.join(weights)}; {gamma}")
    return ", ".join(cells)


def ranges(seeds: Sequence[int]) -> str:
    """[1, 2, 3, 7] -> "1-3, 7"."""
    alike = groupby(enumerate(sorted(seeds)), key=lambda pair: pair[1] - pair[0])  # in a range both grow by one
    parts = [[seed for _, seed in pairs] for _, pairs in alike]
    return ", ".join(str(part[0]) if len(part) == 1 else f"{part[0]}-{part[-1]}" for part in parts)


def linked(record: Record, value: str) -> Run:
    """A run and what it contributes to a number, as "seed 1: 68.12"."""
    path = store.place(".", record.scale, record.task, record.run)
    return Run(record.run, f"seed {record.seed}: {value}", path.as_posix())


def seeds(group: Group, metric: str) -> Number:
    """The seeds of a group, each with its score on test."""
    runs = [linked(record, f"{record.metrics['test'][metric]:.2f}") for record in group.records]
    return Number(ranges([record.seed for record in group.records]) + rising(group.records), runs)


def runs_of(*groups: Group) -> list[Run]:
    """The runs behind a number that is computed from several groups."""
    return [linked(record, group.name) for group in groups for record in group.records]


def mean_in_words(records: Sequence[Record], key: str, text: str) -> str:
    """The mean of a number over the runs that have one, written as `text` says; empty if none has."""
    known = [value for record in records if (value := getattr(record, key))]
    return text.format(fmean(known)) if known else ""
