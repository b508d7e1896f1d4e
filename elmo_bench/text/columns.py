"""CoNLL column files as a stream of blocks: one token per line, an empty line after each sentence."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice, takewhile, zip_longest
from operator import not_
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar
from unicodedata import normalize

from elmo_bench.system.errors import StrPath, UserError, notice
from elmo_bench.system.storage.files import open_text

DOCSTART = "-DOCSTART-"
OPENS = re.compile(r"#\s*(?:newdoc\b(?:\s+id\s*=)?|doc\s*=|begin document)([^;]*)")  # UD; SemCor; CoNLL-2012
DOCUMENTS = ".documents"  # ending of the file beside a column file: a line for each sentence, the name of its document
_FIELDS = re.compile(r"[^ \t]+").findall  # not str.split: a no-break space may stand inside a word


class Block(NamedTuple):
    """One sentence: the columns of its tokens and where they come from."""

    rows: list[list[str]]
    lines: list[int]  # line numbers of the rows, from 1; for a comment, its line
    comments: list[str]  # comment lines since the previous block
    path: Path
    document: int = 0  # number of -DOCSTART- lines before it in the file

    def column(self, index: int) -> list[str]:
        """One column, counted from 0 or, if negative, from the end."""
        for row, line in zip(self.rows, self.lines, strict=True):
            if not -len(row) <= index < len(row):
                raise UserError(f"column {index} is missing: the line has {len(row)} columns", self.path, line)
        return [row[index] for row in self.rows]


def documents_of(blocks: Sequence[Block]) -> list[str]:
    """The document of each sentence of a column file, for intervals, since sentences of a document are dependent.

    The names are in the file FILE.documents beside it, if it exists; else `-DOCSTART-` lines number the documents.
    """
    path = blocks[0].path
    if (beside := documents_beside(path)) is None:
        return [f"document {block.document}" for block in blocks]
    with open_text(beside) as lines:
        names = [line.strip() for line in lines]
    if len(names) != len(blocks):
        expected = f"{path.name} has {len(blocks)} sentences"
        raise UserError(f"{len(names)} lines, but {expected}; make it again or remove it", beside)
    if "" in names:
        raise UserError("no name; each line names the document of a sentence", beside, names.index("") + 1)
    return names


def documents_beside(path: Path) -> Path | None:
    """The file that names the documents of a column file, if there is one."""
    beside = path.with_name(f"{path.name}{DOCUMENTS}")
    return beside if beside.is_file() else None


def in_comments(blocks: Iterable[Block]) -> Iterator[tuple[Block, str | None]]:
    """The sentences of a file, each with the document named by the last such comment before it, or None."""
    document, count = None, 0
    for block in blocks:
        for found in filter(None, map(OPENS.match, block.comments)):
            count += 1
            document = found[1].strip() or f"document {count}"
        if block.rows:
            yield block, document


def with_documents(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows with a "document" each; without it if all have the same, as in a file without documents."""
    if len({row["document"] for row in rows}) > 1:
        return rows
    return [{key: value for key, value in row.items() if key != "document"} for row in rows]


@contextmanager
def comments_named(remedy: str) -> Iterator[None]:
    """An error at or after a line that begins with # also says what to do if such lines are comments: the `remedy`."""
    try:
        yield
    except UserError as error:
        if remedy and error.path and error.line:
            with open_text(error.path) as lines:
                near = [*islice(lines, max(error.line - 2, 0), error.line)]
            if any(line.startswith("#") for line in near):
                message = f"{error.message}; if lines that begin with # are comments, {remedy}"
                raise UserError(message, error.path, error.line) from None
        raise


def read_blocks(
    path: StrPath,
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
        comment: the first characters of a comment line, such as "#"; None if every line is a token (tweets have "#").
            Comments after the last sentence are dropped. With tabs, such a line is still a token if it has as many
            columns as the first row; with spaces it is a comment, and a notice counts such lines.
        apart: a comment ends a sentence and is a separate block, without rows ("#begin document").
        widths: which rows must have the same number of columns: all of the "file", or those of one "sentence"; "any"
            checks nothing, and splits at white space, as the scorers' scripts do.
        minimum: the smallest number of columns allowed.
        last: the value of an empty last field; "" refuses it. If every row of the file (of a sentence, if `last` is
            given) ends in a separator, the last field is the one before it.
    """
    path = Path(path)
    block, has_sentence, document = Block([], [], [], path), False, 0
    doubtful = []  # lines of comments that may be rows
    first = _first_row(path, comment)
    by_tabs = "\t" in first.strip() and widths != "any"
    split = (lambda line: [field.strip(" ") for field in line.split("\t")]) if by_tabs else _FIELDS
    width = len(split(first))
    empty = 0 if last else len([*takewhile(not_, reversed(split(first)))])  # empty fields at the end, after separators
    with open_text(path) as lines:
        for number, line in enumerate(chain(lines, [""]), start=1):
            line = line.rstrip("\r\n")
            remark = comment is not None and line.startswith(comment)
            if remark and not apart:
                as_row = len(split(line)) == width
                if split is _FIELDS or not as_row:
                    doubtful += [number] * as_row
                    block.comments.append(line)
                    continue
                remark = False
            begins = line.startswith(DOCSTART)
            if not (remark or begins or not line.strip(" \t")):
                if "\r" in line:
                    raise UserError(r"a carriage return in the line; end the lines with \n or \r\n", path, number)
                block.rows.append(split(line))
                block.lines.append(number)
                continue
            document += begins
            if block.rows:
                if widths != "any":
                    _check(block, width if widths == "file" else len(block.rows[0]), empty, minimum, last)
                yield block
                has_sentence, block = True, Block([], [], [], path)
            block = block._replace(document=document)
            if remark:
                yield Block([], [number], [line], path)
    if doubtful:
        found = f"{len(doubtful)} of the comments have as many columns as the rows, the first at line {doubtful[0]}"
        notice(f"{found}; if they are words, separate the columns by tabs", path)
    if not has_sentence and widths != "any":
        raise UserError("contains no sentence; expected one token per line and an empty line between sentences", path)


def _first_row(path: Path, comment: str | None) -> str:
    """The first line that is neither empty nor the start of a comment or document; "" if there is none."""
    others = (DOCSTART,) if comment is None else (DOCSTART, comment)
    with open_text(path) as lines:
        rows = (line.rstrip("\r\n") for line in lines if not line.startswith(others))
        return next((row for row in rows if row.strip(" \t")), "")


def _check(block: Block, width: int, empty: int, minimum: int, last: str) -> None:
    """Refuses rows unless each has `width` fields, of which exactly the last `empty` ones are empty.

    These are removed. With `last`, the last field may be empty, and becomes `last`. If it is empty in all rows, it
    counts as a field only after a column of brackets, with a `*` in every row; else every row ends in a separator.
    """
    for row, line in zip(block.rows, block.lines, strict=True):
        if len(row) != width:
            fault = f"{len(row)} columns, but the lines before have {width}"
        elif width - empty < minimum:
            raise UserError(f"{width - empty} column(s), but at least {minimum} are expected", block.path, line)
        elif "" in row[: width - (empty or bool(last))]:
            fault = f"column {row.index('')} (from 0) is empty"
        elif empty and any(row[-empty:]):
            fault = f"column {width - empty} (from 0) is empty in the lines before"
        else:
            continue
        raise UserError(f"{fault}; correct the file", block.path, line)
    rows = block.rows
    while last and len(rows[0]) > minimum and not any(row[-1] or "*" in row[-2] for row in rows):
        empty += 1
        for row in rows:
            row.pop()
    for row in rows:
        del row[width - empty :]
        row[-1] = row[-1] or last


S = TypeVar("S", bound=Any)


def side_by_side(
    gold: Path | str, predictions: Path | str, read: Callable[[Path | str], Iterable[S]]
) -> Iterator[tuple[S, S]]:
    """The sentences of a gold file and of a file of predictions, in pairs. Composed and decomposed accents are equal.

    Args:
        read: yields sentences with `words` and `lines` (None if words have no separate lines).
    """
    last: int | None = 0
    for number, (expected, predicted) in enumerate(zip_longest(read(gold), read(predictions))):
        if expected is None:
            raise UserError(f"has more sentences than {gold}", predictions, _line(predicted))
        if predicted is None:
            raise UserError(f"ends before the sentence of {_place(gold, expected, number)}", predictions, last)
        for i, (right, found) in enumerate(zip_longest(expected.words, predicted.words)):
            if right != found and (None in (right, found) or normalize("NFC", right) != normalize("NFC", found)):
                where = _place(gold, expected, number, i)
                if found is None:
                    message = f"the sentence ends before {right!r} of {where}"
                else:
                    message = f"{found!r} where {'the sentence ends' if right is None else repr(right)} in {where}"
                raise UserError(f"{message}; the words must be the same", predictions, _line(predicted, i))
        last = _line(predicted, -1)
        yield expected, predicted


def _line(sentence: Any, word: int = 0) -> int | None:
    """The line of a word, or of the last word."""
    return sentence.lines[min(word, len(sentence.lines) - 1)] if sentence.lines else None


def _place(path: Path | str, sentence: Any, number: int, word: int = 0) -> str:
    return f"{path}:{_line(sentence, word)}" if sentence.lines else f"{path}, row {number}"


def write_rows(rows: Sequence[Sequence[str]], separator: str) -> str:
    """The lines of a sentence and the empty line after it; refuses a word that a column file cannot contain."""
    for word in (cell.replace(separator, "\t") for row in rows for cell in row):
        if word != word.strip(" ") or not word or any(end in word for end in "\t\r\n") or word.startswith(DOCSTART):
            raise UserError(f"{word!r} cannot be written to a column file")
    return "".join(f"{separator.join(row)}\n" for row in [*rows, ()])
