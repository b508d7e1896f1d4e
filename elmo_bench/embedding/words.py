"""The tables that a run's word vectors come from, and the words they cover."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from elmo_bench.configuration.schema import VectorSetConfig
from elmo_bench.embedding.tables import VectorFiles
from elmo_bench.embedding.vectors import Columns, Lookup, check_rules, find
from elmo_bench.task import Reader
from elmo_bench.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from datasets import DatasetDict


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
