"""Reads tagged sentences from CoNLL column files or the hub, and makes batches of words and tags."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from elmo_bench.configuration.keys import valid
from elmo_bench.system.errors import UserError, notice
from elmo_bench.tagging.sentences import KEYS, TaggedFiles, TaggedSentence
from elmo_bench.task import Batch, Row
from elmo_bench.text import documents, tags
from elmo_bench.text.batching import TextReader, pad
from elmo_bench.text.columns import write_rows
from elmo_bench.text.part import WHOLE, Part
from elmo_bench.text.raw import sentence_of
from elmo_bench.text.source import tables
from elmo_bench.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from datasets import DatasetDict

LISTED = 10  # the most places that a message lists


@dataclass(eq=False)
class TaggingReader(TextReader):
    """A row is {"tokens": [str], "tags": [str]}; the tags are converted from the source's scheme to `scheme`.

    A row also has its "document" where a file tells several apart, see `documents.of_blocks`.

    Vocabularies, all from the training split: "words", those that occur at least `min_count` times, so that the unknown
    word is trained on rarer ones; "chars" likewise; "labels", all tags of the scheme for the types that occur. A type
    that occurs only in dev or test counts as O in the loss, and as missed in the metric.

    Args:
        data: the files {train, dev, test}, below {folder} if given, or without a folder {hub, revision}; also
            word_column (0), tag_column (-1), comment (none), source_scheme ("auto", see `tags.TagReader`), of
            tables tag_names, where their features do not name the numbers, and labels {theirs: ours} of types.
        scheme: of the tags that the model learns: "bioes" or "iob2".
        lower: look words up in lower case; characters always keep their case.
        min_count: how often a word must occur to be in the vocabulary.
        char_min_count: the same for characters.
        char_limit: longer words are cut to this many characters.
    """

    fields, keys = ("tokens",), KEYS
    hub_tags: ClassVar[str] = "tags"  # the column of tags in a data set of the hub, or else "tags"

    data: Mapping[str, Any]
    scheme: str = "bioes"
    lower: bool = True
    min_count: int = 2
    char_min_count: int = 2
    char_limit: int = 50

    def __post_init__(self):
        valid(Literal["bioes", "iob2"], self.scheme, "task.reader.scheme")
        self.files = TaggedFiles(self.data, self.hub_tags)
        self.columns = self.files.source.columns

    def load(self, part: Part = WHOLE) -> DatasetDict:
        """Reads all splits, makes the vocabularies, and prints which tags were repaired, if any.

        A part of the training data is drawn from its sentences.

        Raises:
            UserError: a missing setting or file, rows of different widths, tags that follow no scheme, no spans at all;
                it names file and line.
        """
        repairs: list[str] = []
        with self.files.comments():
            splits = {split: self._rows(sentences, split, repairs) for split, sentences in self.files.splits().items()}
        if repairs:
            notice(f"tags repaired as conlleval reads them: {'; '.join(repairs)}")
        splits["train"] = part.of(splits["train"], "sentences")
        self._make_vocabularies(splits["train"], part)
        return tables(splits)

    def _rows(self, sentences: Iterator[TaggedSentence], split: str, repairs: list[str]) -> list[Row]:
        """The rows of a split; `repairs` gets how many tags break its scheme and where, if any do."""
        try:
            read = tags.TagReader(self.data.get("source_scheme", "auto"))
        except ValueError as error:
            raise UserError(f"task.data.source_scheme={self.data['source_scheme']}: {error}") from None
        kept: list[TaggedSentence] = []
        rows = []
        try:
            for sentence in sentences:
                kept.append(sentence)
                spans = read(sentence.tags or [])
                encoded = tags.encode(spans, len(sentence.words), self.scheme)
                rows.append({"tokens": sentence.words, "tags": encoded, "document": sentence.document})
            settled = read.settle()
        except tags.TagError as error:
            raise kept[error.sentence].fault(error) from None
        if settled.exceptions:
            repairs.append(_repairs(settled, kept, split))
        return documents.with_documents(rows)

    def _make_vocabularies(self, train: Sequence[Row], part: Part) -> None:
        words = (word for row in train for word in row["tokens"])
        types = {tag[2:] for row in train for tag in row["tags"] if tag != "O"}
        if not types:
            raise UserError(f"the training data contain no span; {part.mend('is task.data.tag_column right?')}")
        self.vocabularies = Vocabulary.of_words(words, self.min_count, self.char_min_count, self.lower)
        self.vocabularies["labels"] = Vocabulary(tags.labels(types, self.scheme), special=False)

    def collate(self, rows: Sequence[Row]) -> Batch:
        """Text field "tokens"; label "tags" (B, T) int64 if all rows have tags, 0 (O) at padding."""
        text, known, labels = self.text([row["tokens"] for row in rows]), self.vocabularies["labels"], {}
        if all(row.get("tags") is not None for row in rows):
            labels["tags"] = pad([[known[tag if tag in known else "O"] for tag in row["tags"]] for row in rows])
        return Batch(list(rows), {"tokens": text}, labels)

    def from_text(self, /, **raw: Any) -> Row:
        """A row from {"tokens": [...]}, taken as they are, or {"text": "..."}, which is tokenized.

        Raises:
            UserError: neither key, values that are not words, no words.
        """
        return sentence_of(raw)

    def from_file(self, path: str) -> list[Row]:
        """A row without tags for each sentence of a file, which may have tags or none.

        Raises:
            UserError: as `load`; a line of running text has columns, too.
        """
        with self.files.comments():
            return [{"tokens": each.words, "input": each.input} for each in self.files.file(path, tagged=False)]

    def unanswered(self, row: Row) -> list[str]:
        """Tags of no entity."""
        return ["O"] * len(row["tokens"])

    def official(self, predictions: Sequence[Sequence[str]], rows: Sequence[Row]) -> str:
        """A column file of words and IOB2 tags."""
        spaced = any(" " in word for row in rows for word in row["tokens"])
        pairs = (zip(row["tokens"], one, strict=True) for row, one in zip(rows, predictions, strict=True))
        return "".join(write_rows(list(sentence), "\t" if spaced else " ") for sentence in pairs)


def _repairs(settled: tags.Settled, sentences: Sequence[TaggedSentence], split: str) -> str:
    """How many entities break the scheme of a split, and at which lines of its file, as part of a message."""
    number, first = len(settled.exceptions), sentences[0]
    places = [_place(sentences[i], i, token) for i, token in settled.exceptions[:LISTED]]
    more = f" and {number - LISTED} more" if number > LISTED else ""
    broken = f"{number} of {settled.entities} entities against {settled.scheme}"
    unit = "at" if first.lines is None else "line" if number == 1 else "lines"
    return f"{broken} in {first.path or split} ({unit} {', '.join(places)}{more})"


def _place(sentence: TaggedSentence, number: int, token: int) -> str:
    return str(sentence.lines[token]) if sentence.lines else f"sentence {number} token {token}"
