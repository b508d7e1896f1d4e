"""The types of the values in a record that reports and commands rely on."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

Check = Callable[[Any], bool]


def fault(record: Mapping[str, Any], told: bool = False) -> str | None:
    """What is wrong with the first value of a wrong type, in words; None if there is none.

    Args:
        told: whether the record must also have what tables and messages tell of a run; the oldest records lack some.
    """
    needed = {*REQUIRED, *TOLD} if told else {*REQUIRED}
    for key, (check, wanted) in {**REQUIRED, **TOLD, **OPTIONAL}.items():
        there, value = _found(record, key)
        if not there and key in needed:
            return f"it lacks {key}"
        if there and not check(value):
            return f"{key} is not {wanted}"
    return _epoch_fault(record)


def _found(record: Mapping[str, Any], key: str) -> tuple[bool, Any]:
    """Whether there is a value at a dotted key, and the value."""
    value: Any = record
    for part in key.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return False, None
        value = value[part]
    return True, value


def _epoch_fault(record: Mapping[str, Any]) -> str | None:
    """What is wrong between keys: the monitored metric, and the weights of the selected epoch."""
    monitor, epoch = record["config"]["task"]["monitor"], record["epoch"]
    if any(monitor not in record["metrics"][split] for split in ("dev", "test")):
        return f"metrics lack {monitor}, by which the epoch is selected"
    if record["layer_weights"].keys() != record["gamma"].keys():
        return "layer_weights and gamma are of different places"
    columns = [*record["layer_weights"].values(), *record["gamma"].values()]
    if not all(1 <= epoch <= len(column) for column in columns):
        return "layer_weights or gamma lack the selected epoch"
    return None


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _whole(value: Any) -> bool:
    return type(value) is int


def _number(value: Any) -> bool:
    return type(value) in (int, float) and -math.inf < value < math.inf


def _table(check: Check | None = None) -> Check:
    """A table, all of whose values pass the check."""
    return lambda value: isinstance(value, Mapping) and (check is None or all(map(check, value.values())))


def _list(check: Check) -> Check:
    return lambda value: isinstance(value, list) and all(map(check, value))


def _rows(value: Any) -> bool:
    """Rows of numbers, all of one length."""
    return _list(_list(_number))(value) and len({len(row) for row in value}) < 2


def _or_none(check: Check) -> Check:
    return lambda value: value is None or check(value)


def _paper(value: Any) -> bool:
    """The paper's scores: numbers, or tables of numbers by metric."""
    return _table(lambda each: each is None or _number(each) or _table(_or_none(_number))(each))(value)


REQUIRED: dict[str, tuple[Check, str]] = {
    **dict.fromkeys(("task", "scale", "arm", "run", "group"), (_text, "a text")),
    **dict.fromkeys(("seed", "version", "epoch", "epochs"), (_whole, "a whole number")),
    "seconds": (_number, "a number"),
    **dict.fromkeys(("variant", "settings"), (_table(), "a table")),
    **dict.fromkeys(("metrics.dev", "metrics.test"), (_table(_number), "a table of numbers")),
    "layer_weights": (_table(_rows), "a table of rows of numbers"),
    "gamma": (_table(_list(_number)), "a table of lists of numbers"),
    **dict.fromkeys(("bilm.name", "bilm.sha256"), (_or_none(_text), "a text or null")),
    **dict.fromkeys(("config.task.monitor", "config.scale.note", "config.elmo.where"), (_text, "a text")),
}
TOLD: dict[str, tuple[Check, str]] = {
    **dict.fromkeys(("finished", "machine.cpu", "machine.accelerator"), (_text, "a text")),
    **dict.fromkeys(("machine.cores", "machine.threads"), (_whole, "a whole number")),
}
OPTIONAL: dict[str, tuple[Check, str]] = {
    "data_sha256": (_text, "a text"),
    "generated_sha256": (_table(_text), "a table of texts"),
    **dict.fromkeys(
        ("peak_memory_mib", "tokens_per_second", "parameters", "selected_updates", "config.fraction"),
        (_number, "a number"),
    ),
    **dict.fromkeys(("bilm.parameters", "bilm.token_bytes"), (_number, "a number")),
    "history": (_table(_list(_or_none(_number))), "a table of lists of numbers"),
    "machine.gpu": (_text, "a text"),
    "config.task.paper": (_or_none(_paper), "a table of the paper's scores"),
}
