"""Reading tables of word vectors: GloVe's text format, or a list of words with the numbers in another file."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from elmo_bench.embedding.tables import VectorFiles
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage import limits
from elmo_bench.system.storage.files import decode, open_member, open_text
from elmo_bench.system.storage.integrity import UNREADABLE


def read(table: VectorFiles, words: Container[str], size: int) -> dict[str, Tensor]:
    """The rows (size,) of those `words` that a table has, exactly as written; the first of a repeated word.

    Rows of other words are not kept, so that memory is bounded by `words`.
    """
    if table.words is None:
        with _open(table.vectors, size) as lines:
            return _parse(lines, words, size, table.vectors)
    names = _names(table.words)
    if table.vectors.suffix == ".npy":
        return _read_matrix(table.vectors, names, words, size)
    with open_text(table.vectors) as lines:
        return _parse(_joined(names, lines, table.vectors), words, size, table.vectors)


def _parse(lines: Iterable[str], words: Container[str], size: int, path: Path) -> dict[str, Tensor]:
    vectors: dict[str, Tensor] = {}
    for number, line in enumerate(lines, start=1):
        line = line.rstrip(" \r\n")
        if number == 1 and re.fullmatch(r"\d+ \d+", line):
            continue  # word2vec: number of words, dimension
        if not line:
            raise UserError("an empty line; correct the file", path, number)
        if line.count(" ") == size:
            word, _, numbers = line.partition(" ")
        else:
            word, numbers = _with_spaces(line, size, path, number)
        if word in words and word not in vectors:
            vectors[word] = _vector(numbers, path, number)
    return vectors


def _names(path: Path) -> list[str]:
    """The words of a table whose numbers are in another file."""
    if path.suffix == ".parquet":
        return _parquet(path)
    with open_text(path) as lines:
        return [line.rstrip("\r\n") for line in lines]


def _parquet(path: Path) -> list[str]:
    """The only column of a .parquet file."""
    from pyarrow import parquet  # of the extra `glove`

    limits.regular(path)
    try:
        names = parquet.read_table(path, page_checksum_verification=True).column(0).to_pylist()
    except (*UNREADABLE, MemoryError, IndexError) as error:  # pyarrow's own errors are ValueErrors or OSErrors
        raise UserError(f"cannot be read ({error}); is the file damaged?", path) from None
    if not all(isinstance(name, str) for name in names):
        raise UserError("its first column is not a list of words", path)
    return names


def _joined(names: Sequence[str], lines: Iterable[str], path: Path) -> Iterator[str]:
    """Words and lines of numbers as lines of GloVe's format."""
    number = 0
    for number, line in enumerate(lines, start=1):
        if number > len(names):
            break
        yield f"{names[number - 1]} {line}"
    if number != len(names):
        raise UserError(f"not as many lines as the {len(names)} words of the list beside it", path, number)


def _read_matrix(path: Path, names: Sequence[str], words: Container[str], size: int) -> dict[str, Tensor]:
    limits.regular(path)
    try:
        matrix = np.lib.format.open_memmap(path, mode="r")  # (words, size)
    except Exception as error:  # of a damaged header numpy raises whatever its parsers do
        raise UserError(f"cannot be read ({error}); is the file damaged?", path) from None
    if matrix.shape != (len(names), size):
        raise UserError(f"has the shape {matrix.shape}, and not ({len(names)}, {size})", path)
    if matrix.dtype.kind != "f":
        raise UserError(f"holds {matrix.dtype}, and not floating-point numbers", path)
    rows = {name: row for row, name in reversed(list(enumerate(names))) if name in words}
    with np.errstate(over="ignore"):  # overflow to infinity is reported below
        vectors = {name: torch.from_numpy(matrix[row].astype(np.float32)) for name, row in rows.items()}
    if broken := next((name for name, vector in vectors.items() if not vector.isfinite().all()), None):
        raise UserError(f"a number of {broken!r} is not finite; is the file damaged?", path)
    return vectors


def _with_spaces(line: str, size: int, path: Path, number: int) -> tuple[str, str]:
    """Splits a line whose word contains spaces, as in some large tables; other extra columns are an error."""
    fields = line.split(" ")
    word, numbers = fields[: max(len(fields) - size, 0)], fields[-size:]
    if len(fields) <= size or any(_is_number(field) for field in word[1:]):
        raise UserError(f"{len(fields) - 1} numbers where {size} are expected; wrong file or damaged?", path, number)
    return " ".join(word), " ".join(numbers)


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _vector(numbers: str, path: Path, number: int) -> Tensor:
    try:
        values = [float(field) for field in numbers.split(" ")]
    except ValueError:
        raise UserError("a field after the word is not a number; correct the file", path, number) from None
    if "_" in numbers or not numbers.isascii():  # Python's numbers may have them, GloVe's do not
        raise UserError("a field after the word is not a number; correct the file", path, number)
    vector = torch.tensor(values)
    if not vector.isfinite().all():
        raise UserError("a number is not finite, or beyond 32 bits; correct the file", path, number)
    return vector


@contextmanager
def _open(path: Path, size: int) -> Iterator[Iterator[str]]:
    """The lines of the file; in an archive of several files, of the one whose name contains the dimension."""
    if path.suffix != ".zip":
        with open_text(path) as lines:
            yield lines
        return

    def choose(names: list[str]) -> str:
        wanted = names if len(names) == 1 else [name for name in names if f".{size}d." in name]
        if len(wanted) != 1:
            raise UserError(f"contains {', '.join(names) or 'nothing'}; unpack it and name one file", path)
        return wanted[0]

    with open_member(path, choose) as file:
        assert file is not None
        yield decode(file, path)
