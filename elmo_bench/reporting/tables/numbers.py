"""Numbers of a report, with the runs they were computed from."""

from __future__ import annotations

from elmo_bench.records import store
from elmo_bench.records.record import Record
from elmo_bench.reporting.section import Number, Run
from elmo_bench.reporting.statistics import scores
from elmo_bench.reporting.statistics.groups import Group


def linked(record: Record, value: str) -> Run:
    """A run and what it contributes to a number, as "seed 1: 68.12"."""
    path = store.place(".", record.scale, record.task, record.run)
    return Run(record.run, f"seed {record.seed}: {value}", path.as_posix())


def seeds(group: Group, metric: str) -> Number:
    """The seeds of a group, each with its score on test."""
    runs = [linked(record, f"{record.metrics['test'][metric]:.2f}") for record in group.records]
    return Number(scores.ranges([record.seed for record in group.records]) + scores.rising(group.records), runs)


def runs_of(*groups: Group) -> list[Run]:
    """The runs behind a number that is computed from several groups."""
    return [linked(record, group.name) for group in groups for record in group.records]
