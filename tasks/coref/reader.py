"""Documents with coreference clusters from CoNLL-2012 files, and from raw text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from pydantic import PositiveInt

from elmo_bench.configuration.keys import valid
from elmo_bench.system.errors import UserError
from elmo_bench.task import Batch, Row
from elmo_bench.text import conll2012
from elmo_bench.text.batching import TextReader
from elmo_bench.text.brackets import write_mentions
from elmo_bench.text.conll2012 import END, NO_SINGLETONS, SPEAKER, WORD
from elmo_bench.text.part import WHOLE, Part
from elmo_bench.text.source import FILES, SPLITS, check_keys, tables
from elmo_bench.text.tags import Span
from elmo_bench.text.tokenizer import are_words, document_of
from elmo_bench.text.vocabulary import Vocabulary, warn_unknown

if TYPE_CHECKING:
    from datasets import DatasetDict

LAST = "is coreference their last column?"
# OntoNotes writes the marks of some transcripts with a slash; word vectors and the biLM know them without it. As in Lee
# et al.'s code.
UNSLASHED = {"/.": ".", "/?": "?"}


@dataclass(eq=False)
class CorefReader(TextReader):
    """A row is one part of a document; clusters never go beyond a part.

    {"document": name, "part": str, "genre": str, "sentences": [[str]], "speakers": [str] (one per word),
    "clusters": [[[first word, last word]]] (counted over the document, the last word included)}

    Vocabularies, all from the training split: "words", "chars" and "genres".

    Args:
        data: {train, dev, test}: each a file, a folder to search for CoNLL-2012 files, a list of files, or several of
            these (see `conll2012.find_files`), below {folder} if given.
        keep_singletons: keep clusters of one mention, which OntoNotes does not annotate, in training and as gold.
        max_sentences: limit on a training document; from a longer one, each epoch uses a random window of sentences.
        lower: look words up in lower case; characters always keep their case.
        min_count, char_min_count: minimum count of a word, or of a character, in the vocabulary.
        char_limit: longer words are cut to this many characters.
    """

    fields = ("sentences",)

    data: Mapping[str, Any]
    keep_singletons: bool = False
    max_sentences: int = 50
    lower: bool = False
    min_count: int = 2
    char_min_count: int = 2
    char_limit: int = 50

    def __post_init__(self):
        valid(PositiveInt, self.max_sentences, "task.reader.max_sentences")

    def load(self, part: Part = WHOLE) -> DatasetDict:
        """Reads all splits and makes the vocabularies.

        A part of the training data is drawn from its documents, because clusters belong to a document.
        """
        check_keys(self.data, places=FILES)
        splits = {split: self._rows(split) for split in SPLITS}
        train = splits["train"] = part.of(splits["train"], "documents")
        if not any(row["clusters"] for row in train):
            raise UserError(f"the training data contain no cluster; {part.mend(LAST)}")
        words = (word for row in train for sentence in row["sentences"] for word in sentence)
        self.vocabularies = Vocabulary.of_words(words, self.min_count, self.char_min_count, self.lower)
        self.vocabularies["genres"] = genres = Vocabulary.count(row["genre"] for row in train)
        for split in ("dev", "test"):
            if not any(row["clusters"] for row in splits[split]):
                message = f"the {split} data contain no cluster, so nothing can be scored; {LAST}"
                raise UserError(message, self.data[split])
            if genres.items[2:] != ["-"]:
                named = [row["genre"] for row in splits[split] if row["genre"] != "-"]
                remedy = "the genre is the first folder of a document's name, such as bc in bc/cctv/00/cctv_0001"
                warn_unknown(named, genres, split, "genres of the documents", remedy)
        return tables(splits)

    def _rows(self, split: str) -> list[Row]:
        rows = []
        for document in conll2012.read_split(self.data, split):
            if document.sentences:
                row = _row(document)
                clusters = [each for each in document.clusters() if len(each) > 1 or self.keep_singletons]
                words = [[UNSLASHED.get(word, word) for word in sentence] for sentence in row["sentences"]]
                rows.append(row | {"sentences": words, "clusters": clusters})
        return rows

    def sample(self, row: Row, random: np.random.Generator) -> Row:
        """The part of a document for training: all of it, or a random window of `max_sentences` sentences.

        Clusters keep the mentions inside the window.
        """
        sentences = row["sentences"]
        if len(sentences) <= self.max_sentences:
            return row
        start = int(random.integers(len(sentences) - self.max_sentences + 1))
        window = sentences[start : start + self.max_sentences]
        first = sum(map(len, sentences[:start]))
        end = first + sum(map(len, window))
        inside = ([[a - first, b - first] for a, b in each if first <= a and b < end] for each in row["clusters"])
        return row | {
            "sentences": window, "speakers": row["speakers"][first:end], "clusters": list(filter(None, inside)),
        }  # fmt: skip

    def collate(self, rows: Sequence[Row]) -> Batch:
        """Text field "sentences": one row of the tensors for each sentence, document after document.

        Labels, N being the number of words: "speakers" (N,), a number for each name in the batch; "genres" (B,); and if
        all rows have clusters "mentions" (M, 4): document, first word in it, number of words - 1, cluster. All int64.
        """
        # Rows of raw text keep its words.
        found: list[list[str]] = [sentence for row in rows for sentence in row["sentences"]]
        text = self.text([[UNSLASHED.get(word, word) for word in sentence] for sentence in found])
        numbers: dict[str, int] = {}
        speakers = [numbers.setdefault(name, len(numbers)) for row in rows for name in row["speakers"]]
        genres = [self.vocabularies["genres"][row["genre"]] for row in rows]
        labels = {"speakers": torch.tensor(speakers), "genres": torch.tensor(genres)}
        if all(row.get("clusters") is not None for row in rows):
            mentions = [
                (number, first, last - first, cluster)
                for number, row in enumerate(rows)
                for cluster, members in enumerate(row["clusters"])
                for first, last in members
            ]
            labels["mentions"] = torch.tensor(mentions, dtype=torch.int64).view(-1, 4)
        return Batch(list(rows), {"sentences": text}, labels)

    def from_text(self, /, **raw: Any) -> Row:
        """A row from {"sentences": [[word]]}, unchanged, or {"text": "..."}, split into sentences and words.

        Optional: "speakers", for each sentence a name or a list of names, one per word; "genre", the first folder of a
        document's name in OntoNotes ("bc"); "document", any name; "part". Further keys are ignored.
        """
        if "sentences" in raw:
            row = {"sentences": raw["sentences"]}
        elif isinstance(raw.get("text"), str):
            row = document_of(raw["text"])
        else:
            raise UserError('expected {"sentences": [[word, ...], ...]} or {"text": "..."}')
        sentences = row["sentences"]
        if not isinstance(sentences, list) or not all(sentence and are_words(sentence) for sentence in sentences):
            raise UserError('"sentences" must be a list of lists of words, none of them empty')
        if not sentences:
            raise UserError("the document has no sentences")
        given = {key: raw[key] for key in ("genre", "document", "part") if raw.get(key) is not None}
        if not all(isinstance(value, str) for value in given.values()):
            raise UserError(f"{' and '.join(given)} must be a string")
        return {"genre": "-"} | row | {"speakers": _speakers(raw.get("speakers"), sentences)} | given

    def from_file(self, path: str) -> list[Row]:
        """A row without clusters for each part of a document."""
        found = map(_row, conll2012.read_documents(path))
        return [row | {"input": {key: row[key] for key in ("document", "part")}} for row in found]

    def unanswered(self, row: Row) -> dict[str, list[Any]]:
        """No clusters."""
        return {"clusters": []}

    def official(self, predictions: Sequence[Mapping[str, Any]], rows: Sequence[Row]) -> str:
        """A CoNLL-2012 file with the clusters; a document without a name gets its number.

        A name and part may not occur twice, and no line of a document may look like a comment.
        """
        seen = set()
        single = any(len(cluster) == 1 for each in predictions for cluster in each["clusters"])
        lines = [] if self.keep_singletons or single or not rows else [NO_SINGLETONS]
        for number, (prediction, row) in enumerate(zip(predictions, rows, strict=True), start=1):
            name, part = row.get("document", f"document {number}"), row.get("part", "000")
            if name.startswith("#"):
                raise UserError(f"a line that begins with # is a comment: give the document {name!r} another name")
            if (key := conll2012.Document(name, part, [], Path(), number).key) in seen:
                raise UserError(f'each document needs a distinct "document" or "part"; {name!r}, {part!r} occurs twice')
            seen.add(key)
            mentions = [Span(str(i), m[0], m[1] + 1) for i, each in enumerate(prediction["clusters"]) for m in each]
            words = sum(map(len, row["sentences"]))
            speakers = row.get("speakers") or ["-"] * words
            columns = iter(zip(write_mentions(mentions, words), speakers, strict=True))
            lines.append(conll2012.begin(name, part))
            for sentence in row["sentences"]:
                cells, speakers = zip(*islice(columns, len(sentence)), strict=True)
                lines.append(conll2012.write_sentence(name, part, {WORD: sentence, SPEAKER: speakers, -1: cells}))
            lines.append(END)
        return "".join(lines)


def _row(document: conll2012.Document) -> Row:
    """A row without clusters, with the words as in the file."""
    return {
        "document": document.name,
        "part": document.part,
        "genre": document.genre,
        "sentences": [sentence.words for sentence in document.sentences],
        "speakers": [speaker for sentence in document.sentences for speaker in sentence.speakers],
    }


def _speakers(given: Any, sentences: list[list[str]]) -> list[str]:
    """One speaker per word; "-" if unknown."""
    if given is None:
        given = ["-"] * len(sentences)
    if not isinstance(given, list) or len(given) != len(sentences):
        raise UserError('"speakers" must be a list with one name, or one list of names, per sentence')
    speakers: list[str] = []
    for names, sentence in zip(given, sentences, strict=True):
        each = names if isinstance(names, list) else [names] * len(sentence)
        if len(each) != len(sentence) or not all(isinstance(name, str) for name in each):
            raise UserError('"speakers" of a sentence must be one name, or a list with one name per word')
        speakers += each
    return speakers
