"""Records, one JSON file per finished run, written last and atomically: a record exists only for a finished run.

A record is compact: one line per key, one line per block of its configuration, and its epochs as columns. Its last key,
`checksum`, is the sha256 of its text without that line.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

from elmo_bench.configuration.keys import flat
from elmo_bench.records.record import Record, from_json
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage import json_text
from elmo_bench.system.storage.files import write_bytes
from elmo_bench.system.storage.json_text import read_sealed, sealed

REMEDY = "restore it (git checkout), or remove it and run again"
AGAIN = "forced"  # in the folder of a run that is trained again, while its record is still the earlier one
BLOCKS = ("config", "settings", "history", "metrics", "layer_weights")  # one line for each key in them

T = TypeVar("T")


class Mismatch(UserError):
    """A file that is not a record, or the record of another run than its path says."""


def place(results_root: str | Path, scale: str, task: str, run: str) -> Path:
    """The path of a run's record."""
    return Path(results_root) / "runs" / scale / task / f"{run}.json"


def work(results_root: str | Path, scale: str, task: str, run: str) -> Path:
    """The folder of a run's checkpoints and metrics, from which an unfinished run resumes."""
    return Path(results_root) / "work" / scale / task / run


def is_finished(path: Path) -> bool:
    """Whether a run has a record, and is not being trained again (`force=true`)."""
    root, (scale, task, name) = path.parents[3], path.with_suffix("").parts[-3:]
    return path.is_file() and not (work(root, scale, task, name) / AGAIN).exists()


def write(path: Path, record: Record, beside: Mapping[Path, bytes] | None = None) -> None:
    """Writes a record atomically, after the files that belong to it."""
    for file, content in {**(beside or {}), path: sealed(dumps(record)).encode()}.items():
        write_bytes(file, content)


def dumps(record: Record) -> str:
    """A record as JSON, one line per key; without a checksum."""
    return in_lines(record.plain(), BLOCKS)


def in_lines(plain: Mapping[str, Any], blocks: Container[str]) -> str:
    """An object as JSON, a line for each key, and for each part of its blocks."""
    return "{\n" + ",\n".join(_line(key, value, key in blocks) for key, value in plain.items()) + "\n}\n"


def _line(key: str, value: Any, is_block: bool) -> str:
    if is_block and value and isinstance(value, dict):
        text = "{\n" + ",\n".join(f"  {_line(inner, each, False)}" for inner, each in value.items()) + "\n}"
    elif is_block and value and isinstance(value, list):
        text = "[\n" + ",\n".join(f"  {json_text.dumps(each, ensure_ascii=False)}" for each in value) + "\n]"
    else:
        text = json_text.dumps(value, ensure_ascii=False)
    return f"{json_text.dumps(key)}: {text}"


def columns(history: Sequence[dict[str, Any]]) -> dict[str, list[Any]]:
    """A list of epochs as one list per key; dev metrics as `dev.<metric>`."""
    epochs = [flat(epoch) for epoch in history]
    return {key: [epoch.get(key) for epoch in epochs] for key in dict.fromkeys(chain.from_iterable(epochs))}


def read(path: Path) -> Record:
    """Reads a record; its checksum must match its content, and its content its path.

    Raises:
        Mismatch: the file is not a record, or its path belongs to another run.
    """
    plain = read_sealed(path, "record", REMEDY, always=True)
    try:
        record = from_json(plain, path)
    except UserError as error:
        raise Mismatch(f"not a record of a run: {error}; {REMEDY}", path) from None
    if (own := place("", record.scale, record.task, record.run)).parts[-4:] != path.absolute().parts[-4:]:
        raise Mismatch(f"this record belongs at {own}; move or remove it", path)
    return record


def read_all(results_root: str | Path, scale: str = "*", task: str = "*") -> list[Record]:
    """All records below `results_root`, or those of a scale or task, in the order of their paths.

    Files that do not match their path (such as copies) are left out, and so are records of a task's earlier versions
    beside newer ones, which compute something else; a line says so.
    """
    found = [*matching(read, sorted((Path(results_root) / "runs").glob(f"{scale}/{task}/[!.]*.json")))]
    newest = {record.task: record.version for record in sorted(found, key=lambda record: record.version)}
    current = [record for record in found if record.version == newest[record.task]]
    if earlier := len(found) - len(current):
        print(f"{results_root}: {earlier} records of earlier versions of their tasks are left out", file=sys.stderr)
    return current


def matching(read: Callable[[Path], T], paths: Iterable[Path]) -> Iterator[T]:
    """The content of each file whose form and path are right; a line names each file left out."""
    for path in paths:
        try:
            yield read(path)
        except Mismatch as error:
            print(f"left out: {error}", file=sys.stderr)


def full_runs(records: Sequence[Record]) -> list[Record]:
    """The runs that trained on all batches; a line counts the runs left out (`trainer.limit_batches`)."""
    kept = [record for record in records if (record.config.get("trainer") or {}).get("limit_batches") is None]
    if left := len(records) - len(kept):
        what = f"{left} run{'s' * (left > 1)} with trainer.limit_batches, trained on a part of the data"
        print(f"left out: {what}", file=sys.stderr)
    return kept
