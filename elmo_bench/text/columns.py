"""CoNLL column files as a stream of blocks: one token per line, an empty line after each sentence."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice, zip_longest
from os import PathLike
from pathlib import Path
from typing import Literal, NamedTuple, TypeVar

from elmo_bench.system.errors import UserError
from elmo_bench.system.storage.files import open_text

DOCSTART = "-DOCSTART-"
REMOVE = "remove them"  # what to do about comments where no key names them
_FIELDS = re.compile(r"[^ \t]+").findall  # not str.split: a no-break space may stand inside a word


class Block(NamedTuple):
    """One sentence: the columns of its tokens and where they come from."""

    rows: list[list[str]]
    lines: list[int]  # line numbers of the rows, from 1, or of the comment if the block is one
    comments: list[str]  # comment lines since the previous block
    path: Path
    document: int = 0  # how many -DOCSTART- lines stand before it in the file

    def column(self, index: int) -> list[str]:
        """One column, counted from 0 or, if negative, from the end. Raises `UserError` if a row lacks it."""
        for row, line in zip(self.rows, self.lines, strict=True):
            if not -len(row) <= index < len(row):
                raise UserError(f"column {index} is missing: the line has {len(row)} columns", self.path, line)
        return [row[index] for row in self.rows]


@contextmanager
def comments_named(mend: str) -> Iterator[None]:
    """An error at a line that begins with #, or after one, also says what to do if that is a comment."""
    try:
        yield
    except UserError as error:
        if not mend or error.path is None or error.line is None or not _remarks(error.path, error.line):
            raise
        told = f"{error.message}; if lines that begin with # are comments, {mend}"
        raise UserError(told, error.path, error.line) from None


def _remarks(path: str | PathLike[str], line: int) -> bool:
    """Whether a line of a file or the one before it begins as a comment does."""
    with open_text(path) as lines:
        return any(text.startswith("#") for text in islice(lines, max(line - 2, 0), line))


def read_blocks(
    path: str | PathLike[str],
    *,
    comment: str | None = None,
    apart: bool = False,
    widths: Literal["file", "sentence", "any"] = "file",
    minimum: int = 1,
    last: str = "",
) -> Iterator[Block]:
    """The sentences of a column file, plain, `.gz` or `.xz`, read as a stream.

    Columns are separated by tabs if the file's first row has one (a field may then contain spaces), else by spaces
    and tabs. `-DOCSTART-` lines end a sentence and begin a document.

    Args:
        path: the file.
        comment: what a comment line starts with, such as "#"; None if every line is a token (tweets have "#").
            Comments after the last sentence are dropped. Between tabs, a line that starts so is a token all the same if
            it has as many columns as the first row; between spaces it is a comment, and a line says how many are so.
        apart: a comment ends a sentence and is a block of its own, without rows ("#begin document").
        widths: which rows must have the same number of columns: all of the "file", or those of one "sentence"; "any"
            checks nothing, and takes what stands between white space, as the scorers' scripts do.
        minimum: the smallest number of columns allowed.
        last: what an empty last field stands for; "" refuses it.

    Raises:
        UserError: no such file, not UTF-8, rows of different widths, an empty field, a file without sentences.
    """
    path = Path(path)
    split, width, has_sentence, document = None, 0, False, 0
    block = Block([], [], [], path)
    first = "" if comment is None or apart else _first_row(path, comment)
    tabs, doubtful = first.count("\t"), []  # lines of comments that may be rows
    with open_text(path) as lines:
        for number, line in enumerate(lines, start=1):
            line = line.rstrip("\r\n")
            remark = comment is not None and line.startswith(comment)
            if remark and tabs and line.count("\t") == tabs:
                remark = False
            elif remark and not apart:
                if not tabs and len(_FIELDS(line)) == len(_FIELDS(first)):
                    doubtful.append(number)
                block.comments.append(line)
                continue
            begins = line.startswith(DOCSTART)
            if remark or begins or not line.strip(" \t"):
                document += begins
                if block.rows:
                    yield block
                    has_sentence, block = True, Block([], [], [], path)
                block = block._replace(document=document)
                if remark:
                    yield Block([], [number], [line], path)
                continue
            if split is None:
                split = str.split if widths == "any" else _split_tabs if "\t" in line else _FIELDS
            if "\r" in line:
                raise UserError(r"a carriage return in the line; end the lines with \n or \r\n", path, number)
            row = split(line)
            row[-1] = row[-1] or last
            if not width or (widths == "sentence" and not block.rows):
                width = len(row)
            if widths != "any":
                _check(row, width, minimum, path, number)
            block.rows.append(row)
            block.lines.append(number)
    if doubtful:
        told = f"{len(doubtful)} of the comments have as many columns as the rows, the first at line {doubtful[0]}"
        print(f"{path}: {told}; if they are words, separate the columns by tabs", file=sys.stderr)
    if block.rows:
        yield block
    elif not has_sentence and widths != "any":
        raise UserError("contains no sentence; expected one token per line and an empty line between sentences", path)


def _first_row(path: Path, comment: str) -> str:
    """The first line that is neither empty nor begins as a comment or a document; "" if there is none."""
    with open_text(path) as lines:
        rows = (line.rstrip("\r\n") for line in lines if not line.startswith((comment, DOCSTART)))
        return next(filter(str.strip, rows), "")


def _split_tabs(line: str) -> list[str]:
    return [field.strip(" ") for field in line.split("\t")]


def _check(row: list[str], width: int, minimum: int, path: Path, line: int) -> None:
    if len(row) != width:
        raise UserError(f"{len(row)} columns, but the lines before have {width}; correct the file", path, line)
    if width < minimum:
        raise UserError(f"{width} column(s), but at least {minimum} are expected", path, line)
    if "" in row:
        raise UserError(f"column {row.index('')} (from 0) is empty; correct the file", path, line)


B = TypeVar("B", bound=Block)


def side_by_side(
    gold: Path | str,
    predictions: Path | str,
    read: Callable[[Path | str], Iterable[B]],
    word: int = 0,
) -> Iterator[tuple[B, B]]:
    """The sentences of a gold file and of a file of predictions, in pairs; `word` is the column of their words.

    Raises:
        UserError: the files have different sentences or words; the errors of `read`.
    """
    last = 0
    for expected, predicted in zip_longest(read(gold), read(predictions)):
        if expected is None:
            raise UserError(f"has more sentences than {gold}", predictions, predicted.lines[0])
        if predicted is None:
            raise UserError(f"ends before the sentence of {gold}:{expected.lines[0]}", predictions, last)
        _check_words(expected, predicted, word)
        last = predicted.lines[-1]
        yield expected, predicted


def _check_words(gold: Block, predicted: Block, word: int) -> None:
    for i, (expected, found) in enumerate(zip_longest(gold.column(word), predicted.column(word))):
        if expected != found:
            where = f"{gold.path}:{gold.lines[min(i, len(gold.lines) - 1)]}"
            if found is None:
                message = f"the sentence ends before {expected!r} of {where}"
            else:
                message = f"{found!r} where {'the sentence ends' if expected is None else repr(expected)} in {where}"
            line = predicted.lines[min(i, len(predicted.lines) - 1)]
            raise UserError(f"{message}; the words must be the same", predicted.path, line)


def write_rows(rows: Sequence[Sequence[str]], separator: str) -> str:
    """The lines of a sentence, with the empty one behind them.

    Raises:
        UserError: a field is empty or contains the separator or the end of a line.
    """
    for row in rows:
        for cell in row:
            if not cell or separator in cell or cell.splitlines() != [cell]:
                raise UserError(f"{cell!r} cannot be written to a file of columns")
    return "".join(f"{separator.join(row)}\n" for row in [*rows, ()])
