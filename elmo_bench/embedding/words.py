"""Where a run's word vectors come from: random, a file, or trained on the biLM's text; and which words they cover."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from datasets import DatasetDict
from omegaconf import DictConfig
from torch import Tensor

from elmo_bench.embedding import skipgram as static_vectors
from elmo_bench.embedding.vectors import read_vectors
from elmo_bench.experiment.identity import sha256
from elmo_bench.system.errors import UserError
from elmo_bench.task import Reader
from elmo_bench.text.vocabulary import Vocabulary


class WordVectors(NamedTuple):
    """The rows that the vocabulary's words have in a file."""

    vectors: dict[str, Tensor]  # (size,) each
    path: Path


def find(cfg: DictConfig, reader: Reader, splits: DatasetDict) -> WordVectors | None:
    """Reads the rows that the words of all splits have in the run's file, and adds those words to the vocabulary.

    A word of dev or test that the file has is then no unknown word. Nothing else of these splits is looked at, and a
    vector from the file is all that such a word gets.

    Returns:
        None where the task has no word vectors, or they start at random.

    Raises:
        UserError: a file that cannot be read, or has no word of the data.
    """
    words = cfg.task.get("words")
    instead = cfg.elmo.where != "none" and cfg.elmo.words == "instead"
    if words is None or instead or not (cfg.vectors.source == "text" or words.get("path")):
        return None
    path = static_vectors.ensure(cfg) if cfg.vectors.source == "text" else Path(words.path)
    vocabulary = reader.vocabularies["words"]
    present = set(vocabulary.items) | set(distinct(splits, reader.fields, reader.lower))
    vectors = read_vectors(path, present, words.size)
    if not vectors:
        raise UserError("has no vector for any word of the data; is it the right file?", path)
    more = sorted(vectors.keys() - set(vocabulary.items))
    reader.vocabularies["words"] = Vocabulary([*vocabulary.items[2:], *more])
    return WordVectors(vectors, path)


def distinct(splits: DatasetDict, fields: Sequence[str], lower: bool) -> Iterable[str]:
    """The words of all splits, some of them more than once."""
    for rows in splits.values():
        for field in fields:
            for value in rows[field]:
                for part in value:  # a word, or a sentence of a document
                    for word in [part] if isinstance(part, str) else part:
                        yield word.lower() if lower else word


def describe(cfg: DictConfig, reader: Reader, found: WordVectors | None) -> dict[str, Any] | None:
    """For the record: source (random, file, text), words of the vocabulary, how many of them the file has."""
    if cfg.task.get("words") is None or (cfg.elmo.where != "none" and cfg.elmo.words == "instead"):
        return None
    words = len(reader.vocabularies["words"]) - 2
    if found is None:
        return {"source": "random", "words": words, "found": 0}
    source = "text" if cfg.vectors.source == "text" else "file"
    name = None if source == "text" else found.path.name
    return {"source": source, "file": name, "sha256": sha256(found.path), "words": words, "found": len(found.vectors)}
