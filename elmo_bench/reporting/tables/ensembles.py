"""The rows of seed ensembles in a task's table."""

from __future__ import annotations

from elmo_bench.records.store import Record, Stored
from elmo_bench.reporting.statistics import scores as statistics
from elmo_bench.reporting.statistics.groups import Group
from elmo_bench.trained import ensemble_store


def rows(group: Group, metric: str) -> list[tuple[str, ...]]:
    """A row for each ensemble of runs of this group, with the columns of the group's own row.

    Raises:
        UserError: the record of an ensemble is damaged.
    """
    return [_row(group, each, metric) for each in of_group(group)]


def of_group(group: Group) -> list[Record]:
    """The ensembles of runs of this group, the smallest first; without those that have runs no longer recorded."""
    if not isinstance(group.first, Stored):
        return []
    runs = {record["run"] for record in group.records}
    folder = ensemble_store.place(group.first.path.parents[3], [group.first]).parent
    found = [ensemble_store.read(path) for path in sorted(folder.glob("*.json"))]
    return sorted((each for each in found if runs.issuperset(each["runs"])), key=lambda each: len(each["seeds"]))


def _row(group: Group, ensemble: Record, metric: str) -> tuple[str, ...]:
    dev, test = (f"{ensemble['metrics'][split][metric]:.2f}" for split in ("dev", "test"))
    name = f"{group.name}: an ensemble ({ensemble['method']})"
    return name, group.bilm or "-", statistics.ranges(ensemble["seeds"]), dev, test, "", "", ""
