"""CoNLL column files as a stream of blocks: one token a line, an empty line after each sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Literal, NamedTuple

from elmo_bench.system.errors import UserError
from elmo_bench.system.files import open_text

DOCSTART = "-DOCSTART-"
_FIELDS = re.compile(r"[^ \t]+").findall  # not str.split: a no-break space may stand inside a word


class Block(NamedTuple):
    """One sentence: its tokens' columns and where they stand."""

    rows: list[list[str]]
    lines: list[int]  # of rows, from 1; of the comment, in a block that is one
    comments: list[str]  # comment lines since the block before
    path: Path

    def column(self, index: int) -> list[str]:
        """One column, counted from 0 or, below 0, from the end. Raises `UserError` where a row lacks it."""
        for row, line in zip(self.rows, self.lines, strict=True):
            if not -len(row) <= index < len(row):
                raise UserError(f"column {index} is wanted but the line has {len(row)}", self.path, line)
        return [row[index] for row in self.rows]


def read_blocks(
    path: str | PathLike[str],
    *,
    comment: str | None = None,
    apart: bool = False,
    widths: Literal["file", "sentence"] = "file",
    minimum: int = 1,
) -> Iterator[Block]:
    """The sentences of a column file, plain, `.gz` or `.xz`, read as a stream.

    Columns are separated by tabs where the file's first row has one (a field may then hold spaces), else by spaces
    and tabs. `-DOCSTART-` lines end a sentence and are left out.

    Args:
        path: the file.
        comment: what a comment line starts with, such as "#"; None where every line is a token (tweets have "#").
            Comments after the last sentence are dropped.
        apart: comments part sentences, and each is a block of its own, without rows ("#begin document").
        widths: what must agree in the number of columns: all rows of the "file", or those of one "sentence".
        minimum: the least number of columns that makes sense.

    Raises:
        UserError: no such file, not UTF-8, ragged rows, an empty field, a file without a sentence.
    """
    path = Path(path)
    split, width, has_sentence = None, 0, False
    block = Block([], [], [], path)
    with open_text(path) as lines:
        for number, line in enumerate(lines, start=1):
            line = line.rstrip("\r\n")
            remark = comment is not None and line.startswith(comment)
            if remark and not apart:
                block.comments.append(line)
                continue
            if remark or not line.strip(" \t") or line.startswith(DOCSTART):
                if block.rows:
                    yield block
                    has_sentence, block = True, Block([], [], [], path)
                if remark:
                    yield Block([], [number], [line], path)
                continue
            if split is None:
                split = _split_tabs if "\t" in line else _FIELDS
            row = split(line)
            if not width or (widths == "sentence" and not block.rows):
                width = len(row)
            _check(row, width, minimum, path, number)
            block.rows.append(row)
            block.lines.append(number)
    if block.rows:
        yield block
    elif not has_sentence:
        raise UserError("holds no sentence; expected one token a line, an empty line between sentences", path)


def _split_tabs(line: str) -> list[str]:
    return [field.strip(" ") for field in line.split("\t")]


def _check(row: list[str], width: int, minimum: int, path: Path, line: int) -> None:
    if len(row) != width:
        raise UserError(f"{len(row)} columns where the lines before have {width}; mend the file", path, line)
    if width < minimum:
        raise UserError(f"{width} column(s) where at least {minimum} are expected", path, line)
    if "" in row:
        raise UserError(f"column {row.index('')} (from 0) is empty; mend the file", path, line)
