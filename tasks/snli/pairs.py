"""SNLI's pairs, from its own files (TSV with a header, the release's JSON lines) or from tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import Any, NamedTuple

from elmo_bench.system.errors import UserError
from elmo_bench.system.storage import json_text
from elmo_bench.system.storage.files import ending, numbered_lines
from elmo_bench.text.labels import NO_GOLD, Labels
from elmo_bench.text.source import Table

LABELS = ("entailment", "neutral", "contradiction")  # in the order of the hub's numbers
COLUMNS = ("gold_label", "sentence1", "sentence2")  # of both file formats, with the release's names


class Pair(NamedTuple):
    """One pair as in its source, and the error for a fault there."""

    label: str
    premise: str
    hypothesis: str
    fault: Callable[[str], UserError]
    input: Mapping[str, Any] = {}  # its row in the file


def is_release(path: Path) -> bool:
    """Whether a file has the release's columns, not a table's, by its first line."""
    if ending(path) not in (".jsonl", ".tsv"):
        return False
    _, first = next(numbered_lines(path), (0, ""))
    return not {"premise", "hypothesis"} <= {*re.split(r'["\t\r\n]', first)}


def labels(data: Mapping[str, Any]) -> Labels:
    """The three labels, with the additional names of `task.data.labels`."""
    return Labels(LABELS, given=data.get("labels"))


def read(opened: Table | Path, known: Labels, labelled: bool = True) -> Iterator[Pair]:
    """The pairs of a SNLI file, or of a table of premise, hypothesis and label; if not `labelled`, without labels."""
    if isinstance(opened, Path):
        yield from read_pairs(opened, known, labelled)
        return
    opened.require("premise", "hypothesis", *["label"] * labelled)
    given = known.of_table(opened) if labelled else repeat(NO_GOLD, len(opened.rows))
    columns = given, opened.texts("premise"), opened.texts("hypothesis")
    for row, pair in enumerate(zip(*columns, strict=True)):
        yield Pair(*pair, partial(opened.fault, row), opened.row(row))


def read_pairs(path: Path, known: Labels, labelled: bool = True) -> Iterator[Pair]:
    """The pairs of a SNLI file as a stream: JSON lines if its name contains `.jsonl`, else TSV with a header.

    Empty lines are skipped.
    """
    needed, header, pair = COLUMNS[not labelled :], [], None
    for number, line in numbered_lines(path):
        fault = partial(UserError, path=path, line=number)
        if ".jsonl" in path.suffixes:
            try:
                row = json_text.parse(line)
            except ValueError as error:
                raise fault(f"{error}; correct the file") from None
            if not isinstance(row, dict):
                raise fault("not a JSON object; correct the file")
        elif header:
            cells = line.split("\t")
            if len(cells) > len(header):
                raise fault(f"{len(cells)} columns, but the header has {len(header)}; correct the file")
            row = dict(zip(header, cells, strict=False))
        else:
            header = line.split("\t")
            if missing := [name for name in needed if name not in header]:
                raise fault(f"the header lacks the column {', '.join(missing)}; correct the file")
            continue
        if missing := [name for name in needed if name not in row]:
            raise fault(f"the column {', '.join(missing)} is missing; correct the file")
        if wrong := [name for name in needed if not isinstance(row[name], str)]:
            raise fault(f"{wrong[0]} is not text; correct the file")
        label = known.find(row[COLUMNS[0]]) if labelled else NO_GOLD
        if label is None:
            raise fault(known.unknown(row[COLUMNS[0]]))
        yield (pair := Pair(label, row[COLUMNS[1]], row[COLUMNS[2]], fault, row))
    if pair is None:
        raise UserError("the file has no rows", path)
