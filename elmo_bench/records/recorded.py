"""The runs that the project's authors recorded and committed, which stand beside a user's own."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from elmo_bench.configuration.schema import RunConfig
from elmo_bench.identity.arms import placed
from elmo_bench.records import store
from elmo_bench.records.run_names import label
from elmo_bench.records.store import Record
from elmo_bench.system import places

Kind = tuple[str, str, str | None, int]  # arm, variant, biLM, version of the task


class Recorded(NamedTuple):
    """The recorded runs of some arms, of every seed; and what was asked for and is not recorded: seeds by name."""

    records: list[Record]
    missing: dict[str, list[int]]


def is_evidence(results_root: str | Path) -> bool:
    """Whether a folder of results is that of the authors."""
    return Path(results_root).resolve() == places.RECORDED


def evidence(task: str, scale: str) -> list[Record]:
    """The authors' records of a task at a scale. Raises `UserError` for one that cannot be read."""
    folder = places.RECORDED / "runs" / scale / task
    return [store.read(path) for path in sorted(folder.glob("*.json"))]


def recorded(runs: Iterable[RunConfig]) -> Recorded:
    """The authors' records of the arms and variants that these runs of one task name; neither data nor biLM is read.

    Raises:
        UserError: a record that cannot be read.
    """
    asked = list(runs)
    kinds = {_kind(run): None for run in asked}
    found = [each for each in evidence(asked[0].task.name, asked[0].scale.name) if _kind_of(each) in kinds]
    seeds = {(_kind_of(each), each["seed"]) for each in found}
    missing: dict[str, list[int]] = {}
    for run in asked:
        if (_kind(run), run.seed) not in seeds:
            missing.setdefault(_name(run), []).append(run.seed)
    return Recorded(found, missing)


def _kind(run: RunConfig) -> Kind:
    arm, variant = placed(run)
    return arm, json.dumps(variant, sort_keys=True), None if run.baseline else run.bilm.name, run.task.version


def _kind_of(record: Record) -> Kind:
    variant = json.dumps(record["variant"], sort_keys=True)
    return record["arm"], variant, record["bilm"]["name"], record["version"]


def _name(run: RunConfig) -> str:
    arm, variant = placed(run)
    return f"{run.task.name}/{run.scale.name} {label(arm, run.elmo.where, variant)}"
