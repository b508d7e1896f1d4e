"""Reads SNLI's files: TSV with a header, or the release's JSON lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from elmo_bench.metrics.accuracy import NO_GOLD
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage import json_text
from elmo_bench.system.storage.files import ending, open_text

LABELS = ("entailment", "neutral", "contradiction")  # in the order of the hub's numbers
COLUMNS = ("gold_label", "sentence1", "sentence2")  # of both file formats, with the release's names


class Pair(NamedTuple):
    """One pair as in its source, and the error for what is wrong there."""

    label: str
    premise: str
    hypothesis: str
    fault: Callable[[str], UserError]


def is_release(path: Path) -> bool:
    """Whether a file has the release's columns, and not those of a table, by its first line."""
    if ending(path) not in (".jsonl", ".tsv"):
        return False
    with open_text(path) as lines:
        first = next(filter(str.strip, lines), "")
    return not {"premise", "hypothesis"} <= {*re.split(r'["\t\r\n]', first)}


def read_pairs(path: Path) -> Iterator[Pair]:
    """The pairs of a file as a stream: JSON lines if its name contains `.jsonl`, else TSV; empty lines are skipped.

    Raises:
        UserError: no such file, not UTF-8, a malformed line (the error names it), no pairs.
    """
    values: Sequence[str] | None = None
    parse = _parse_json if ".jsonl" in path.suffixes else _tsv_parser()
    with open_text(path) as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                values = parse(line.rstrip("\r\n"))
                if values is not None:
                    label, premise, hypothesis = values
                    yield Pair(_label(label), premise, hypothesis, partial(UserError, path=path, line=number))
            except ValueError as error:
                raise UserError(str(error), path, number) from None
    if values is None:
        raise UserError("the file has no rows", path)


def _tsv_parser() -> Callable[[str], Sequence[str] | None]:
    """A parser for the lines of one file, of which the first is the header; columns may be in any order."""
    header: list[str] = []

    def parse(line: str) -> Sequence[str] | None:
        row = line.split("\t")
        if not header:
            if missing := [name for name in COLUMNS if name not in row]:
                raise ValueError(f"the header lacks the column {', '.join(missing)}; expected {', '.join(COLUMNS)}")
            header.extend(row)
            return None
        if len(row) > len(header):
            raise ValueError(f"{len(row)} columns, but the header has {len(header)}; correct the file")
        by_name = dict(zip(header, row, strict=False))
        if missing := [name for name in COLUMNS if name not in by_name]:
            raise ValueError(f"the column {', '.join(missing)} is missing; correct the file")
        return [by_name[name] for name in COLUMNS]

    return parse


def _parse_json(line: str) -> list[str]:
    try:
        pair = json_text.parse(line)
    except ValueError as error:
        raise ValueError(f"{error}; correct the file") from None
    if not isinstance(pair, dict):
        raise ValueError("not a JSON object; correct the file")
    values = [pair.get(name) for name in COLUMNS]
    for name, value in zip(COLUMNS, values, strict=True):
        if not isinstance(value, str):
            raise ValueError(f"{name} is {'missing' if name not in pair else 'not text'}; correct the file")
    return values  # type: ignore[return-value]


def _label(text: str) -> str:
    if text not in (*LABELS, NO_GOLD):
        raise ValueError(f"unknown gold label {text!r}; expected {', '.join(LABELS)}, or {NO_GOLD} for none")
    return text
