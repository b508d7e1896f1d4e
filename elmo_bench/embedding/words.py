"""The source of a run's word vectors (random, a file, or trained on the biLM's text), and the words they cover."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from datasets import DatasetDict
from torch import Tensor

from elmo_bench.embedding.vectors import read_vectors
from elmo_bench.system.errors import UserError
from elmo_bench.task import Reader
from elmo_bench.text.vocabulary import Vocabulary


class VectorFile(NamedTuple):
    """A file of word vectors in GloVe's format."""

    path: Path
    source: str  # "file": given by the user; "text": trained on the biLM's text
    size: int  # dimension

    @classmethod
    def of(cls, words: Mapping[str, Any], trained: Path | None) -> VectorFile | None:
        """The `trained` file if given, else that of a task's `words:` block; None for random vectors."""
        if trained is not None:
            return cls(trained, "text", words["size"])
        return cls(Path(words["path"]), "file", words["size"]) if words.get("path") else None


class WordVectors(NamedTuple):
    """The vectors of the vocabulary's words, read from a file."""

    vectors: dict[str, Tensor]  # (size,) each
    file: VectorFile


class WordsUsed(NamedTuple):
    """The words of a run that has word vectors."""

    given: WordVectors | None  # None: random vectors
    number: int  # of words in the vocabulary


def look_up(
    words: Mapping[str, Any] | None, trained: Path | None, reader: Reader, splits: DatasetDict
) -> WordsUsed | None:
    """The words of a run and the vectors they start from; None where the model has no word vectors.

    Args:
        words: the task's `words:` block; None where the model has no word vectors.
        trained: a file of vectors trained on the biLM's text, used in place of the block's.

    Raises:
        UserError: as `VectorFile.of` and `find` do.
    """
    if words is None:
        return None
    file = VectorFile.of(words, trained)
    given = None if file is None else find(file, reader, splits)
    return WordsUsed(given, len(reader.vocabularies["words"]) - 2)


def find(file: VectorFile, reader: Reader, splits: DatasetDict) -> WordVectors:
    """Reads the vectors of the words of all splits from a file, and adds those words to the vocabulary.

    A word of dev or test that is in the file is then not an unknown word. Nothing else of these splits is used, and
    such a word has nothing but its vector from the file.

    Raises:
        UserError: a file that cannot be read, or contains no word of the data.
    """
    vocabulary = reader.vocabularies["words"]
    present = set(vocabulary.items) | set(distinct(splits, reader.fields, reader.lower))
    vectors = read_vectors(file.path, present, file.size)
    if not vectors:
        raise UserError("has no vector for any word of the data; is it the right file?", file.path)
    more = sorted(vectors.keys() - set(vocabulary.items))
    reader.vocabularies["words"] = Vocabulary([*vocabulary.items[2:], *more])
    return WordVectors(vectors, file)


def distinct(splits: DatasetDict, fields: Sequence[str], lower: bool) -> Iterable[str]:
    """The words of all splits, with repetitions."""
    for rows in splits.values():
        for field in fields:
            for value in rows[field]:
                for part in value:  # a word, or a sentence of a document
                    for word in [part] if isinstance(part, str) else part:
                        yield word.lower() if lower else word
