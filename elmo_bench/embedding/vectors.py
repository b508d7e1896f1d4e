"""A task's own word embeddings, random or from tables of pre-trained vectors, and the words that these cover.

A table is read from GloVe's text format, or as a list of words with the numbers in another file.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from elmo_bench.configuration.keys import valid
from elmo_bench.configuration.schema import VectorSetConfig
from elmo_bench.embedding.tables import VectorFiles
from elmo_bench.system.errors import StrPath, UserError
from elmo_bench.system.storage import limits
from elmo_bench.system.storage.files import decode, open_member, open_text
from elmo_bench.system.storage.integrity import UNREADABLE
from elmo_bench.task import Reader
from elmo_bench.text.vocabulary import Vocabulary, coverage

if TYPE_CHECKING:
    from datasets import DatasetDict

DAMAGED = "is the file damaged?"


def read(table: VectorFiles, words: Container[str], size: int) -> dict[str, Tensor]:
    """The rows (size,) of `words` in a table, in exactly this spelling; the first row of a repeated word.

    Rows of other words are not kept, so that memory is bounded by `words`.
    """
    if table.words is None:
        with _open(table.vectors, size) as lines:
            return _parse(lines, words, size, table.vectors)
    if table.words.suffix == ".parquet":
        names = _parquet(table.words)
    else:
        with open_text(table.words) as lines:
            names = [line.rstrip("\r\n") for line in lines]
    if table.vectors.suffix == ".npy":
        return _matrix(table.vectors, names, words, size)
    with open_text(table.vectors) as lines:
        return _parse(_beside(names, lines, table.vectors), words, size, table.vectors)


@contextmanager
def _open(path: Path, size: int) -> Iterator[Iterator[str]]:
    """The lines of the file; in an archive of several files, of the file whose name contains the dimension."""
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


def _parse(lines: Iterable[str], words: Container[str], size: int, path: Path) -> dict[str, Tensor]:
    """Reads lines of a word and its numbers; a word may contain spaces, as in some large tables."""
    vectors: dict[str, Tensor] = {}
    for number, line in enumerate(lines, start=1):
        line = line.rstrip(" \r\n")
        if number == 1 and re.fullmatch(r"\d+ \d+", line):
            continue  # word2vec: number of words, dimension
        if not line:
            raise UserError("an empty line; correct the file", path, number)
        found = line.count(" ")
        *parts, numbers = line.split(" ", max(found - size, 0) + 1)  # of the word, and all numbers
        if found < size or any(_floats([part]) for part in parts[1:]):
            raise UserError(f"{found} numbers where {size} are expected; wrong file or damaged?", path, number)
        if (word := " ".join(parts)) in words and word not in vectors:
            if (values := _floats(numbers.split(" "))) is None:
                raise UserError("a field after the word is not a number; correct the file", path, number)
            vectors[word] = torch.tensor(values)
            if not vectors[word].isfinite().all():
                raise UserError("a number is not finite, or beyond 32 bits; correct the file", path, number)
    return vectors


def _floats(fields: Sequence[str]) -> list[float] | None:
    """The numbers as GloVe writes them: unlike Python's, without underscores and with ASCII digits; None for others."""
    text = "".join(fields)
    try:
        return list(map(float, fields)) if text.isascii() and "_" not in text else None
    except ValueError:
        return None


def _beside(names: Sequence[str], lines: Iterable[str], path: Path) -> Iterator[str]:
    """Words and lines of numbers as lines of GloVe's format."""
    number = 0
    for number, line in enumerate(lines, start=1):
        if number > len(names):
            break
        yield f"{names[number - 1]} {line}"
    if number != len(names):
        raise UserError(f"not as many lines as the {len(names)} words of the list beside it", path, number)


def _parquet(path: Path) -> list[str]:
    """The words in the only column of a .parquet file."""
    from pyarrow import parquet  # of the extra `glove`

    limits.regular(path)
    try:
        names = parquet.read_table(path, page_checksum_verification=True).column(0).to_pylist()
    except (*UNREADABLE, IndexError) as error:  # pyarrow's own errors are ValueErrors or OSErrors
        raise UserError(f"cannot be read ({error}); {DAMAGED}", path) from None
    if not all(isinstance(name, str) for name in names):
        raise UserError("its first column is not a list of words", path)
    return names


def _matrix(path: Path, names: Sequence[str], words: Container[str], size: int) -> dict[str, Tensor]:
    """The rows of a .npy file for `words`; `names` are the words of all rows."""
    limits.regular(path)
    try:
        matrix = np.lib.format.open_memmap(path, mode="r")  # (words, size)
    except Exception as error:  # for a damaged header, numpy raises any error of its parsers
        raise UserError(f"cannot be read ({error}); {DAMAGED}", path) from None
    if matrix.shape != (len(names), size):
        raise UserError(f"has the shape {matrix.shape} instead of ({len(names)}, {size})", path)
    if matrix.dtype.kind != "f":
        raise UserError(f"has numbers of type {matrix.dtype} instead of floating-point numbers", path)
    rows = {name: row for row, name in reversed(list(enumerate(names))) if name in words}
    with np.errstate(over="ignore"):  # overflow to infinity is reported below
        vectors = {name: torch.from_numpy(matrix[row].astype(np.float32)) for name, row in rows.items()}
    if broken := next((name for name, vector in vectors.items() if not vector.isfinite().all()), None):
        raise UserError(f"a number of {broken!r} is not finite; {DAMAGED}", path)
    return vectors


LOW_COVERAGE = 0.01  # a file with a smaller share of the words of the data is for other data


class Lookup(NamedTuple):
    """How words are looked up in a table."""

    cased: bool = True  # whether the table has capital letters
    rule: str = "exact"  # or "lower": words that the table lacks are also looked up in lower case
    unit: bool = False  # bring the vectors to unit length

    def forms(self, word: str) -> list[str]:
        """The forms of a word to look up, in this order."""
        return ([word] if self.cased else []) + ([word.lower()] if self.rule == "lower" or not self.cased else [])


def find(table: VectorFiles, words: Iterable[str], size: int, lookup: Lookup) -> dict[str, Tensor]:
    """The vectors (size,) of `words` in a table, by the rules of `lookup`."""
    forms = {word: lookup.forms(word) for word in words if word not in (Vocabulary.PAD, Vocabulary.UNK)}
    rows = read(table, {form for each in forms.values() for form in each}, size)
    found = {word: next((rows[form] for form in each if form in rows), None) for word, each in forms.items()}
    known = {word: row for word, row in found.items() if row is not None}
    if lookup.unit:  # in 64 bits, because squares of large numbers overflow 32; a zero vector is unchanged
        known = {word: F.normalize(row.double(), dim=0, eps=1e-300).float() for word, row in known.items()}
    remedy = "is it the right file, of this language? For invented words take vectors=text or vectors=random"
    print(coverage(table.vectors, len(known), len(forms), "words of the data", LOW_COVERAGE, remedy), file=sys.stderr)
    return known


class WordTable(NamedTuple):
    """A table of word vectors, and its vectors for a run's words."""

    name: str
    files: VectorFiles
    size: int  # dimension
    missing: str  # "random" or "zero": vectors for words that the table lacks
    vectors: Mapping[str, Tensor]  # (size,) by word


class WordsUsed(NamedTuple):
    """The words of a run that has word vectors."""

    source: str  # "random", "file", "sets", or "text": trained on the biLM's text
    tables: list[WordTable]
    number: int  # the number of words in the vocabulary

    @property
    def found(self) -> set[str]:
        """The words that have a vector in at least one table."""
        return {word for table in self.tables for word in table.vectors}


def look_up(
    words: Mapping[str, Any],
    sets: Sequence[tuple[VectorSetConfig, VectorFiles]],
    trained: Path | None,
    reader: Reader,
    splits: DatasetDict,
) -> WordsUsed:
    """The words of a run and their initial vectors.

    Words of all splits that a table contains are added to the vocabulary: a word of dev or test with a vector is not an
    unknown word. Nothing else of these splits is used, and all that is known of such a word is its vector.

    Args:
        words: the task's `words` block, whose rules apply where a vector set's are null.
        sets: the vector sets of the run, with their files.
        trained: the file of the vectors that were trained on the biLM's text, if they are used.
        reader: its vocabulary "words" is extended.
        splits: the data.
    """
    path = trained or words.get("path")
    source = "sets" if sets else "random" if path is None else "text" if trained else "file"
    chosen = [(block.name, files, block.size, vars(block)) for block, files in sets]
    if path is not None and not sets:
        chosen = [(Path(path).name, VectorFiles(Path(path)), words["size"], {})]
    vocabulary = reader.vocabularies["words"]
    present = set(vocabulary.items) | set(distinct(splits, reader.fields, reader.lower)) if chosen else set()
    tables = []
    for name, files, size, own in chosen:
        defaults = {"lookup": "exact", "missing": "random", "unit": False}
        rules = {key: words.get(key, value) if own.get(key) is None else own[key] for key, value in defaults.items()}
        check_rules(rules["missing"], rules["lookup"])
        lookup = Lookup(own.get("cased", True), rules["lookup"], rules["unit"])
        tables.append(WordTable(name, files, size, rules["missing"], find(files, present, size, lookup)))
    more = {word for table in tables for word in table.vectors} - set(vocabulary.items)
    reader.vocabularies["words"] = Vocabulary([*vocabulary.items[2:], *sorted(more)])
    return WordsUsed(source, tables, len(reader.vocabularies["words"]) - 2)


def check_rules(missing: str, lookup: str) -> None:
    """Checks the rules of a task's `words` block."""
    valid(Literal["random", "zero"], missing, "task.words.missing")
    valid(Literal["exact", "lower"], lookup, "task.words.lookup")


def distinct(splits: DatasetDict, fields: Sequence[str], lower: bool) -> Iterable[str]:
    """The words of all splits, with repetitions."""
    for rows in splits.values():
        for field in fields:
            for value in rows[field]:
                for part in value:  # a word, or a sentence of a document
                    for word in [part] if isinstance(part, str) else part:
                        yield word.lower() if lower else word


def word_embedding(
    vocabulary: Vocabulary,
    size: int,
    path: StrPath | None = None,
    trainable: bool = True,
    missing: str = "random",
    lookup: str = "exact",
    unit: bool = False,
    vectors: Sequence[WordTable] = (),
) -> nn.Embedding:
    """A table for the words of `vocabulary`, (B, T) int64 -> (B, T, size); id 0 is padding and zero.

    Random rows are drawn uniformly with variance 1/size. Words that a file lacks get a random vector or, with
    missing="zero", a zero vector.

    Args:
        vocabulary: the words.
        size: dimension of the vectors.
        path: a text file in the format of GloVe (a word and `size` numbers per line, separated by spaces; the header
            line of word2vec's text format is skipped), plain, .gz, .xz or .zip. A run reads it (`look_up`), and passes
            its vectors as `vectors`; None for random vectors.
        trainable: whether the vectors are trained with the model.
        missing: "random" or "zero": vectors for words that the file lacks.
        lookup: "exact": words are looked up unchanged; "lower": words that the file lacks also in lower case.
        unit: scale the file's vectors to unit length; otherwise they are used unchanged.
        vectors: the vectors of the words, from one or several tables side by side.
    """
    check_rules(missing, lookup)
    embedding = nn.Embedding(len(vocabulary), size, padding_idx=0)
    with torch.no_grad():
        embedding.weight.uniform_(-math.sqrt(3 / size), math.sqrt(3 / size))
        embedding.weight[0] = 0
        start = 0
        for table in vectors:
            columns = embedding.weight[:, start : start + table.size]  # (words, size of the table)
            if table.missing == "zero":
                columns.zero_()
            for word, vector in table.vectors.items():
                columns[vocabulary[word]] = vector
            start += table.size
    embedding.weight.requires_grad_(trainable)
    return embedding
