"""A task's own word embeddings: random, or from a file of pre-trained vectors."""

from __future__ import annotations

import math
import re
import zipfile
import zlib
from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from pathlib import Path

import torch
from torch import Tensor, nn

from elmo_bench.system.errors import UserError
from elmo_bench.system.files import decode, open_text
from elmo_bench.text.vocabulary import Vocabulary


def word_embedding(
    vocabulary: Vocabulary,
    size: int,
    path: str | PathLike[str] | None = None,
    trainable: bool = True,
    missing: str = "random",
    vectors: Mapping[str, Tensor] | None = None,
) -> nn.Embedding:
    """A table for the words of `vocabulary`, (B, T) int64 -> (B, T, size); id 0 is padding and zero.

    Random rows are drawn uniformly with variance 1/size. Rows from a file are used unchanged; words that it lacks get a
    random vector or, with missing="zero", a zero vector.

    Args:
        vocabulary: the words; only their rows are read.
        size: dimension of the vectors.
        path: a text file in the format of GloVe (a word and `size` numbers per line, separated by spaces; the header
            line of word2vec's text format is skipped), plain, .gz, .xz or .zip; None for random vectors.
        trainable: whether the vectors are trained with the model.
        missing: "random" or "zero": the vectors of words that the file lacks.
        vectors: rows already read from such a file; `path` is then ignored.

    Raises:
        UserError: a missing or damaged file, a line with too few or too many numbers, a dimension other than
            `size`, no word in common.
    """
    if missing not in ("random", "zero"):
        raise UserError(f"task.words.missing={missing}: choose random or zero")
    if vectors is None and path is not None:
        vectors = read_vectors(path, vocabulary, size)
        if not vectors:
            raise UserError("has no vector for any word of the vocabulary; is it the right file?", path)
    table = nn.Embedding(len(vocabulary), size, padding_idx=0)
    with torch.no_grad():
        table.weight.uniform_(-math.sqrt(3 / size), math.sqrt(3 / size))
        table.weight[: 1 if vectors is None or missing == "random" else None] = 0
        for word, vector in (vectors or {}).items():
            table.weight[vocabulary[word]] = vector
    table.weight.requires_grad_(trainable)
    return table


def read_vectors(path: str | PathLike[str], words: Container[str], size: int) -> dict[str, Tensor]:
    """The vectors (size,) of those `words` that the file has; the first of a repeated word.

    Words are looked up exactly as written. Rows of other words are not kept, so that memory is bounded by `words`.
    """
    vectors: dict[str, Tensor] = {}
    with _open(Path(path), size) as lines:
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
            if word in words and word not in vectors and word not in (Vocabulary.PAD, Vocabulary.UNK):
                vectors[word] = _vector(numbers, path, number)
    return vectors


def _with_spaces(line: str, size: int, path: str | PathLike[str], number: int) -> tuple[str, str]:
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


def _vector(numbers: str, path: str | PathLike[str], number: int) -> Tensor:
    try:
        values = [float(field) for field in numbers.split(" ")]
    except ValueError:
        raise UserError("a field after the word is not a number; correct the file", path, number) from None
    if not all(map(math.isfinite, values)):
        raise UserError("a number is not finite; correct the file", path, number)
    return torch.tensor(values)


@contextmanager
def _open(path: Path, size: int) -> Iterator[Iterator[str]]:
    """The lines of the file; in an archive of several files, of the one whose name contains the dimension."""
    if path.suffix != ".zip":
        with open_text(path) as lines:
            yield lines
        return
    try:
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if not name.endswith("/")]
            wanted = names if len(names) == 1 else [name for name in names if f".{size}d." in name]
            if len(wanted) != 1:
                raise UserError(f"contains {', '.join(names) or 'nothing'}; unpack it and name one file", path)
            with archive.open(wanted[0]) as file:
                yield decode(file, path)
    except (OSError, zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise UserError(f"cannot be read to its end ({error}); is the file damaged?", path) from None
