"""A task's own word embeddings: random, or from tables of pre-trained vectors; and the words that these cover."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from elmo_bench.configuration.keys import valid
from elmo_bench.configuration.schema import VectorSetConfig
from elmo_bench.embedding.reading import read
from elmo_bench.embedding.tables import VectorFiles
from elmo_bench.task import Reader
from elmo_bench.text.vocabulary import Vocabulary, coverage

if TYPE_CHECKING:
    from datasets import DatasetDict

HARDLY = 0.01  # a file with a smaller share of the words of the data is for other data


class Lookup(NamedTuple):
    """How words are looked up in a table."""

    cased: bool = True  # whether the table has capital letters
    rule: str = "exact"  # or "lower": a word that it lacks is looked up in lower case
    unit: bool = False  # bring the vectors to unit length

    def forms(self, word: str) -> list[str]:
        """The forms of a word to look up, in this order."""
        return ([word] if self.cased else []) + ([word.lower()] if self.rule == "lower" or not self.cased else [])


class Columns(NamedTuple):
    """Columns of the embedding that come from one table."""

    vectors: Mapping[str, Tensor]  # (size,) for each word that the table has
    size: int
    missing: str  # "random" or "zero": the vectors of words that it lacks


def word_embedding(
    vocabulary: Vocabulary,
    size: int,
    path: str | PathLike[str] | None = None,
    trainable: bool = True,
    missing: str = "random",
    lookup: str = "exact",
    unit: bool = False,
    vectors: Sequence[Columns] | None = None,
) -> nn.Embedding:
    """A table for the words of `vocabulary`, (B, T) int64 -> (B, T, size); id 0 is padding and zero.

    Random rows are drawn uniformly with variance 1/size. Words that the file lacks get a random vector or, with
    missing="zero", a zero vector.

    Args:
        vocabulary: the words; only their rows are read.
        size: dimension of the vectors.
        path: a text file in the format of GloVe (a word and `size` numbers per line, separated by spaces; the header
            line of word2vec's text format is skipped), plain, .gz, .xz or .zip; None for random vectors.
        trainable: whether the vectors are trained with the model.
        missing: "random" or "zero": the vectors of words that the file lacks.
        lookup: "exact": words are looked up as they stand; "lower": those that the file lacks also in lower case.
        unit: bring the file's vectors to unit length; otherwise they are used unchanged.
        vectors: columns already read from one or several tables side by side; `path` is then ignored.

    Raises:
        UserError: a missing or damaged file, a line with too few or too many numbers, a dimension other than
            `size`, no word in common.
    """
    check_rules(missing, lookup)
    if vectors is None and path is not None:
        found = find(VectorFiles(Path(path)), vocabulary.items, size, Lookup(rule=lookup, unit=unit))
        vectors = [Columns(found, size, missing)]
    table = nn.Embedding(len(vocabulary), size, padding_idx=0)
    with torch.no_grad():
        table.weight.uniform_(-math.sqrt(3 / size), math.sqrt(3 / size))
        table.weight[0] = 0
        start = 0
        for columns in vectors or ():
            block = table.weight[:, start : start + columns.size]  # (words, size)
            if columns.missing == "zero":
                block.zero_()
            for word, vector in columns.vectors.items():
                block[vocabulary[word]] = vector
            start += columns.size
    table.weight.requires_grad_(trainable)
    return table


def check_rules(missing: str, lookup: str) -> None:
    """Raises `UserError` for a rule of a task's `words` block that there is not."""
    valid(Literal["random", "zero"], missing, "task.words.missing")
    valid(Literal["exact", "lower"], lookup, "task.words.lookup")


def find(table: VectorFiles, words: Iterable[str], size: int, lookup: Lookup) -> dict[str, Tensor]:
    """The vectors (size,) of those `words` that a table has, looked up as `lookup` says.

    Raises:
        UserError: a file that cannot be read or is malformed, or has none of the words.
    """
    forms = {word: lookup.forms(word) for word in words if word not in (Vocabulary.PAD, Vocabulary.UNK)}
    rows = read(table, {form for each in forms.values() for form in each}, size)
    found = {word: next((rows[form] for form in each if form in rows), None) for word, each in forms.items()}
    known = {word: _unit(row) if lookup.unit else row for word, row in found.items() if row is not None}
    mend = "is it the right file, of this language? For invented words take vectors=text or vectors=random"
    print(coverage(table.vectors, len(known), len(forms), "words of the data", HARDLY, mend), file=sys.stderr)
    return known


def _unit(vector: Tensor) -> Tensor:
    """The vector divided by its length; a zero vector unchanged."""
    length = vector.double().norm()  # the squares of large numbers have no room in 32 bits
    return (vector / length).float() if length else vector


class WordTable(NamedTuple):
    """A table of word vectors, and how a run looks its words up in it."""

    name: str
    files: VectorFiles
    size: int  # dimension
    missing: str  # "random" or "zero": the vectors of words that it lacks
    lookup: Lookup


def _table(name: str, files: VectorFiles, size: int, words: Mapping[str, Any], own: Mapping[str, Any]) -> WordTable:
    """A table with its `own` rules, and where these are null those of the task's `words` block."""
    defaults = {"lookup": "exact", "missing": "random", "unit": False}
    rules = {key: words.get(key, value) if own.get(key) is None else own[key] for key, value in defaults.items()}
    check_rules(rules["missing"], rules["lookup"])
    return WordTable(
        name, files, size, rules["missing"], Lookup(own.get("cased", True), rules["lookup"], rules["unit"])
    )


class WordsUsed(NamedTuple):
    """The words of a run that has word vectors."""

    source: str  # "random", "file", "sets", or "text": trained on the biLM's text
    tables: list[WordTable]
    columns: list[Columns]  # the vectors of the vocabulary's words in each table
    number: int  # of words in the vocabulary

    @property
    def found(self) -> set[str]:
        """The words that have a vector in at least one table."""
        return {word for columns in self.columns for word in columns.vectors}


def look_up(
    words: Mapping[str, Any],
    sets: Sequence[tuple[VectorSetConfig, VectorFiles]],
    trained: Path | None,
    reader: Reader,
    splits: DatasetDict,
) -> WordsUsed:
    """The words of a run and the vectors they start from.

    The words of all splits that a table has are added to the vocabulary: a word of dev or test that has a vector is not
    an unknown word. Nothing else of these splits is used, and such a word has nothing but its vector from the table.

    Raises:
        UserError: a table that cannot be read, or has no word of the data.
    """
    source, used = _tables(words, sets, trained)
    vocabulary = reader.vocabularies["words"]
    present = set(vocabulary.items) | set(distinct(splits, reader.fields, reader.lower)) if used else ()
    columns = [Columns(find(t.files, present, t.size, t.lookup), t.size, t.missing) for t in used]
    more = {word for each in columns for word in each.vectors} - set(vocabulary.items)
    reader.vocabularies["words"] = Vocabulary([*vocabulary.items[2:], *sorted(more)])
    return WordsUsed(source, used, columns, len(reader.vocabularies["words"]) - 2)


def _tables(
    words: Mapping[str, Any], sets: Sequence[tuple[VectorSetConfig, VectorFiles]], trained: Path | None
) -> tuple[str, list[WordTable]]:
    """Where the vectors come from, and the tables that are read."""
    if sets:
        return "sets", [_table(block.name, files, block.size, words, vars(block)) for block, files in sets]
    path = trained or words.get("path")
    if path is None:
        return "random", []
    table = _table(Path(path).name, VectorFiles(Path(path)), words["size"], words, {})
    return "text" if trained else "file", [table]


def distinct(splits: DatasetDict, fields: Sequence[str], lower: bool) -> Iterable[str]:
    """The words of all splits, with repetitions."""
    for rows in splits.values():
        for field in fields:
            for value in rows[field]:
                for part in value:  # a word, or a sentence of a document
                    for word in [part] if isinstance(part, str) else part:
                        yield word.lower() if lower else word
