"""A run from Python: `elmo_bench.train("ner", ["arm=baseline", "seed=2"])`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from elmo_bench.records.record import Record
from elmo_bench.system.errors import UserError


def train(task: str = "ner", overrides: Sequence[str] | None = None) -> Record:
    """The record of a run, as `elmo-bench train task=TASK OVERRIDES` makes it or finds it.

    Args:
        task: a file in conf/task/.
        overrides: as typed after the command, such as ["arm=baseline", "scale=open", "seed=2"].

    Raises:
        UserError: overrides that are no list of texts, or a sweep; a key or a configuration file that does not exist,
            a value that is not allowed, missing data, malformed files.
    """
    given = _listed(overrides)
    if sweep := next((each for each in given if each.lstrip("+").startswith("sweep=")), None):
        raise UserError(f"{sweep}: a sweep is many runs, and train makes one; `elmo-bench sweep {sweep}` runs them")
    from elmo_bench.running.launch import train_task

    return train_task(task, given)


def _listed(overrides: Any) -> list[str]:
    if overrides is None:
        return []
    several = isinstance(overrides, Iterable) and not isinstance(overrides, str | Mapping)
    given: list[Any] = list(overrides) if several else [overrides]
    if not several or not all(isinstance(each, str) for each in given):
        raise UserError(f'overrides are {overrides!r}: give a list of texts, as in ["arm=baseline", "seed=2"]')
    return given
