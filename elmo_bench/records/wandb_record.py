"""What W&B shows of a run, from its record: the same while it trains (`logger=wandb`) and later (`publish`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from elmo_bench.metrics.items import Items
from elmo_bench.records.frame import table_of
from elmo_bench.records.record import Record, Started
from elmo_bench.records.run_names import label_of
from elmo_bench.records.store import dumps
from elmo_bench.system.storage.files import open_text
from elmo_bench.system.storage.hashing import fingerprint
from elmo_bench.system.wandb_runs import WandbRun

MOST_ROWS = 10_000  # of a W&B table
ABOUT = ("run", "group", "version", "commit", "dirty", "finished", "data_sha256", "machine", "versions")
FIGURES = ("epochs", "seconds", "device_seconds", "tokens_per_second", "peak_memory_mib", "parameters")

LONGEST = 128  # characters of a W&B name or group


# The start of a run.


def arguments(record: Started, group: str) -> dict[str, Any]:
    """The arguments of `wandb.init`: names, tags and configuration."""
    return {
        "id": record.run,
        "name": cut(f"{record.task} {record.scale} {label_of(record)}", f", seed {record.seed}"),
        "group": cut(group),
        "job_type": record.arm,
        "tags": tags(record),
        "config": configuration(record) | {"table": group},
    }


def cut(name: str, end: str = "") -> str:
    """A name with its end, in the 128 characters that the server takes."""
    room = LONGEST - len(end)
    return (name if len(name) <= room else f"{name[: room - 3]}...") + end


def group(record: Started, sweep: str | None = None) -> str:
    """The W&B group of a run: the sweep that it is a run of, else the first table in which it stands."""
    return f"{sweep or table_of(record)}/{record.scale}/{record.task}"


def tags(record: Started) -> list[str]:
    """The task, the scale, the biLM and the commit; a W&B tag has at most 64 characters."""
    bilm, commit = record.bilm_name, record.commit
    found = [record.task, record.scale]
    found += [f"biLM {bilm}"] if bilm else []
    found += [f"commit {commit[:12]}"] if commit else []
    return [tag[:64] for tag in found]


def configuration(record: Started) -> dict[str, Any]:
    """The run's configuration, and what identifies the run; paths of a machine are in neither.

    Charts group by the label: runs with the same arm may differ in all else.
    """
    left_out = ("logger", "launcher", "sweeper")
    config = {key: value for key, value in record.config.items() if key not in left_out}
    named = {"arm": record.arm, "variant": record.variant, "label": label_of(record)}
    return config | named | {"record": about(record)}


def about(record: Started) -> dict[str, Any]:
    """What a record says of its origin, with its own digest when it is finished."""
    origin = {key: getattr(record, key) for key in ABOUT if hasattr(record, key)}
    origin["bilm_sha256"] = record.bilm.get("sha256")
    return origin | ({"digest": digest(record)} if isinstance(record, Record) else {})


def digest(record: Record) -> str:
    """Identifies the content of a record, in which epochs count from 0 here: what is published has such a digest."""
    epochs = [epoch - 1 for epoch in record.history["epoch"]]
    return fingerprint(dumps(replace(record, history=record.history | {"epoch": epochs})), digits=64)


# Epochs.


def history(record: Record) -> dict[str, list[Any]]:
    """The columns of a record's epochs, with the layer weights and gamma of each place."""
    mixes = {"layer_weights": record.layer_weights, "gamma": record.gamma}
    return record.history | {f"{key}.{place}": values for key, mix in mixes.items() for place, values in mix.items()}


def rows(epochs: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """One row for each epoch, from columns as in a record (`store.columns`); values that are missing are left out."""
    number = len(epochs["epoch"])
    return [_row({key: column[i] for key, column in epochs.items() if column[i] is not None}) for i in range(number)]


def _row(epoch: Mapping[str, Any]) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for key, value in epoch.items():
        kind, _, name = key.partition(".")
        if kind == "dev":
            row[f"dev/{name}"] = value
        elif kind == "layer_weights":
            row |= {f"elmo/{name}/s{j}": weight for j, weight in enumerate(value)}
        elif kind == "gamma":
            row[f"elmo/{name}/gamma"] = value
        else:
            row[{"loss": "train/loss", "learning_rate": "train/learning_rate"}.get(key, key)] = value
    return row


# The end of a run.


def conclude(run: WandbRun, record: Record, items: Items | None, predictions: Path) -> None:
    """Logs the final values of a run, and the table of its test set.

    Args:
        run: after the last epoch was logged.
        record: of the finished run.
        items: of the test set; None: there is no table.
        predictions: file with a JSON value for each row of the test set; it may be missing.
    """
    if items is not None:
        run.table("predictions", *table(items, predictions), step=record.updates + 1)
    run.conclude(summary(record), {"record": about(record)})


def summary(record: Record) -> dict[str, Any]:
    """The scores, layer weights and gamma at the selected epoch, and what the run cost."""
    chosen = rows(history(record))[record.epoch - 1]
    mixes = {key: value for key, value in chosen.items() if key.startswith("elmo/")}
    scores = {f"{split}/{name}": value for split, metrics in record.metrics.items() for name, value in metrics.items()}
    costs = {key: value for key in FIGURES if (value := getattr(record, key)) is not None}
    return scores | mixes | costs | {"epoch": record.epoch, "updates": record.updates}


def table(items: Items, predictions: Path) -> tuple[list[str], list[list[Any]]]:
    """The columns and rows of a test set's table: of each row its prediction, where it is known, and its statistics."""
    numbers, places = np.unique(items.rows, return_inverse=True)
    sums = [np.bincount(places, weights=values).tolist() for values in items.statistics.values()]
    predicted = _predictions(predictions)
    lines = [predicted.get(int(number), "") for number in numbers]
    columns = ["row", *(["prediction"] if predicted else []), *items.statistics]
    parts = [numbers.tolist(), *([lines] if predicted else []), *sums]
    return columns, [list(row) for row in zip(*parts, strict=True)][:MOST_ROWS]


def _predictions(path: Path) -> dict[int, str]:
    """The predictions by row; empty without the file."""
    if not path.is_file():
        return {}
    with open_text(path) as file:
        return {i: line.rstrip("\n") for i, line in enumerate(file)}
