"""Gives recorded per-example results the clusters that their data tell now: `elmo-bench regroup task=ner scale=open`.

They lie in the order of the rows of the data, and a record has the digest of its data. So documents that
were not known when it was recorded become its clusters without training again. Counts, scores and records stay.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

from elmo_bench.commands import usage
from elmo_bench.configuration import pages, schema
from elmo_bench.configuration.schema import RunConfig
from elmo_bench.identity.identity import data_of
from elmo_bench.identity.makers import Makers
from elmo_bench.identity.missing import check_text
from elmo_bench.identity.settings import settings
from elmo_bench.records import items, store
from elmo_bench.records.record import Record
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage.files import write_bytes
from elmo_bench.system.terminal.command import Command

COMMAND = Command(
    (usage.TASK, usage.SCALE, *usage.ROOTS),
    (
        ("task=ner scale=open data_root=FOLDER", "your runs, recorded before FOLDER had *.documents files"),
        ("task=srl scale=mini results_root=results", "the project's evidence"),
    ),
    (
        "Intervals draw whole clusters of test examples, such as documents. A run records the clusters that its data "
        "name; this command takes them again from the data as they are now. Only runs on exactly the same data are "
        "changed, and only their clusters.",
        usage.OVERRIDES,
    ),
    overrides=True,
    page="statistics",
)
Keys = Mapping[str, Sequence[Hashable]]  # of the rows, by split


def main() -> None:
    """The entry point."""
    run = schema.typed(pages.compose([*sys.argv[1:], "arm=baseline"]))
    check_text(run)
    if maker := Makers.of(run).scale:
        maker.make()
    data = data_of(settings(run))
    recorded = store.read_all(run.results_root, run.scale.name, run.task.name)
    places = [(each, items.path_of(each.path)) for each in recorded if each.path and each.data_sha256 == data]
    here = [(each, path) for each, path in places if path.is_file()]
    keys, from_totals = _read(run)
    contents = {path: _regrouped(path, each, keys, from_totals) for each, path in here}
    changed = {path: content for path, content in contents.items() if path.read_bytes() != content}
    for path, content in changed.items():
        write_bytes(path, content)
    told = ", ".join(f"{split} {len({*each})}" for split, each in keys.items() if None not in each)
    print(
        f"{run.task.name}/{run.scale.name}: clusters by the data: {told or 'single rows'}; {len(changed)} of "
        f"{len(recorded)} runs changed, {len(recorded) - len(here)} are of other data or without per-example results"
    )


def _read(run: RunConfig) -> tuple[Keys, Callable[[Mapping[str, float]], Mapping[str, float]]]:
    """The keys of the clusters that the rows of dev and test belong to, and the metric as a function of sums."""
    from hydra.utils import instantiate

    metric: Any = instantiate(run.task.metric)
    splits = instantiate(run.task.reader).load()
    return {split: [metric.cluster(row) for row in splits[split]] for split in items.SPLITS}, metric.from_totals


def _regrouped(path: Path, record: Record, keys: Keys, from_totals: Any) -> bytes:
    """The new file of a run's per-example results. Raises `UserError` for those that are not of its record and data."""
    try:
        found = {split: part.clustered(keys[split]) for split, part in items.read(path).items()}
        items.check(found, record.metrics, from_totals)
    except ValueError as error:
        raise UserError(f"{error}; {items.REMEDY}", path) from error
    return items.packed(found)
