"""Names of runs in messages and tables."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from elmo_bench.records.record import Record, Started
from elmo_bench.system.errors import as_typed

PATH = re.compile(r"(<\w+>)?/?[\w.+ -]+(/[\w.+ -]+)*")  # also one that begins with the mark of a folder, as <data_root>


def label(where: str, variant: Mapping[str, Any]) -> str:
    """An arm and a run's changes to it, as typed: "baseline", "+ELMo (input)", "+ELMo (input; layers=last)".

    Args:
        where: ELMo enters; "none": nowhere.
        variant: the changes, by dotted key.
    """
    arm, places = ("baseline", []) if where == "none" else ("+ELMo", [where])
    details = "; ".join([*places, *filter(None, [_changes(variant)])])
    return with_changes(arm, details)


def _changes(variant: Mapping[str, Any]) -> str:
    known = {"vectors": "{} vectors", "bilm": "biLM {}"}
    changes = {key: words for key, words in changes_in_words(variant).items() if key != "elmo.where"}
    return ", ".join(
        known[key].format(words) if key in known else f"{key.removeprefix('elmo.')}={words}"
        for key, words in changes.items()
    )


def changes_in_words(variant: Mapping[str, Any]) -> dict[str, str]:
    """A run's changes, each value in words; of a class its name, and its arguments by keys of their own."""
    found = {}
    for key, value in variant.items():
        block = value if isinstance(value, Mapping) else {}
        if "_target_" in block or (block and all(isinstance(each, Mapping) for each in block.values())):
            found |= {key: in_words(block["_target_"])} if "_target_" in block else {}
            found |= changes_in_words({f"{key}.{name}": block[name] for name in block if name != "_target_"})
        else:
            named = key in ("vectors", "bilm") or key.startswith("task.data.")
            whole = named or key.endswith(".monitor")  # the name of a metric is no path
            found[key] = str(value) if whole else in_words(value)
    return found


def in_words(value: Any) -> str:
    """A value as one types it: false, null, the last part of a path or of the name of a class."""
    if isinstance(value, str):
        dotted = "." in value and all(part.isidentifier() for part in value.split("."))
        return value.rpartition(".")[2] if dotted else value.rpartition("/")[2] if PATH.fullmatch(value) else value
    if isinstance(value, list):
        return f"[{','.join(map(in_words, value))}]"
    if isinstance(value, Mapping):
        return f"{{{','.join(f'{key}:{in_words(value[key])}' for key in value)}}}"
    return as_typed(value)


def label_of(run: Started) -> str:
    """The arm and the changes of a run in words, and the user's own files of data."""
    return label(run.where, run.variant | run.own_data)


def changes_of(run: Started) -> str:
    """What a run has that is not the scale's: "biLM mine, task.data.train=a.txt"; "" if there is nothing."""
    return _changes(run.variant | run.own_data)


def with_changes(name: str, changes: str) -> str:
    """ "ner (biLM mine)", or the name alone."""
    return f"{name} ({changes})" if changes else name


def run_name(task: str, scale: str, arm: str, seed: int) -> str:
    """A run in words."""
    return f"{task}/{scale} {arm}, seed {seed}"


def title(record: Record) -> str:
    """The name of the run that a record describes."""
    return run_name(record.task, record.scale, label_of(record), record.seed)


def summary(record: Record) -> str:
    """The scores of a record in a few words."""
    dev, test = (record.metrics[split][record.monitor] for split in ("dev", "test"))
    monitor = record.monitor
    last = " (dev best in the last one)" if record.rises else ""
    return f"dev {monitor} {dev:.2f}, test {monitor} {test:.2f}, {record.epochs} epochs{last}, {record.seconds:.0f} s"
