"""Reads tagged sentences from CoNLL column files or the hub, and makes batches of words and tags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from elmo_bench.configuration.keys import valid
from elmo_bench.system.errors import UserError, notice
from elmo_bench.tagging.files import KEYS, TaggedFiles, TaggedSentence
from elmo_bench.task import Batch, Row
from elmo_bench.text import tags
from elmo_bench.text.batching import TextReader
from elmo_bench.text.columns import with_documents, write_rows
from elmo_bench.text.part import WHOLE, Part
from elmo_bench.text.source import tables
from elmo_bench.text.tokenizer import sentence_of
from elmo_bench.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from datasets import DatasetDict

LISTED = 10  # maximum number of places in a message


@dataclass(eq=False)
class TaggingReader(TextReader):
    """A row is {"tokens": [str], "tags": [str]}; the tags are converted from the source's scheme to `scheme`.

    A row also has its "document" if a file distinguishes several, see `columns.documents_of`.

    Vocabularies, all from the training split: "words" that occur at least `min_count` times, so that the unknown word
    is trained on rarer ones; "chars" likewise; "labels", all tags of the scheme for the types that occur. A type that
    occurs only in dev or test counts as O in the loss, and as missed in the metric.

    Args:
        data: the files {train, dev, test}, below {folder} if given, or without a folder {hub, revision}; also
            word_column (0), tag_column (-1), comment (none), source_scheme ("auto", see `tags.read_tags`), for
            tables tag_names, if their features do not name the numbers, and labels {theirs: ours} of types.
        scheme: the scheme of the tags that the model learns: "bioes" or "iob2".
        lower: look words up in lower case; characters always keep their case.
        min_count: minimum count of a word in the vocabulary.
        char_min_count: the same for characters.
        char_limit: longer words are cut to this many characters.
    """

    fields, keys = ("tokens",), KEYS
    hub_tags: ClassVar[str] = "tags"  # the tag column in a data set of the hub; "tags" is accepted, too

    data: Mapping[str, Any]
    scheme: str = "bioes"
    lower: bool = True
    min_count: int = 2
    char_min_count: int = 2
    char_limit: int = 50

    def __post_init__(self):
        self.source_scheme = self.data.get("source_scheme", "auto")
        valid(Literal["bioes", "iob2"], self.scheme, "task.reader.scheme")
        valid(Literal["auto", *tags.SCHEMES, "conlleval"], self.source_scheme, "task.data.source_scheme")
        self.files = TaggedFiles(self.data, self.hub_tags)

    def load(self, part: Part = WHOLE) -> DatasetDict:
        """Reads all splits, makes the vocabularies, and prints which tags were repaired, if any.

        A part of the training data is drawn from its sentences.
        """
        repairs: list[str] = []
        with self.files.comments():
            splits = {split: self._rows([*each], split, repairs) for split, each in self.files.splits().items()}
        if repairs:
            notice(f"tags repaired as conlleval reads them: {'; '.join(repairs)}")
        train = splits["train"] = part.of(splits["train"], "sentences")
        types = {tag[2:] for row in train for tag in row["tags"] if tag != "O"}
        if not types:
            raise UserError(f"the training data contain no span; {part.mend('is task.data.tag_column right?')}")
        words = (word for row in train for word in row["tokens"])
        self.vocabularies = Vocabulary.of_words(words, self.min_count, self.char_min_count, self.lower)
        self.vocabularies["labels"] = Vocabulary(tags.labels(types, self.scheme), special=False)
        return tables(splits)

    def _rows(self, sentences: Sequence[TaggedSentence], split: str, repairs: list[str]) -> list[Row]:
        """The rows of a split; adds to `repairs` how many entities break its scheme and at which lines, if any do."""
        try:
            read = tags.read_tags((sentence.tags or () for sentence in sentences), self.source_scheme)
        except tags.TagError as error:
            raise sentences[error.sentence].fault(error) from None
        if number := len(read.exceptions):
            listed = [(sentences[i], i, token) for i, token in read.exceptions[:LISTED]]
            places = [str(s.lines[token]) if s.lines else f"sentence {i} token {token}" for s, i, token in listed]
            more = f" and {number - LISTED} more" if number > LISTED else ""
            broken = f"{number} of {sum(map(len, read.spans))} entities against {read.scheme}"
            unit = "at" if sentences[0].lines is None else "line" if number == 1 else "lines"
            repairs.append(f"{broken} in {sentences[0].path or split} ({unit} {', '.join(places)}{more})")
        return with_documents([
            {"tokens": words, "tags": tags.encode(spans, len(words), self.scheme), "document": document}
            for (words, *_, document, _), spans in zip(sentences, read.spans, strict=True)
        ])  # fmt: skip

    def collate(self, rows: Sequence[Row]) -> Batch:
        """Text field "tokens"; label "tags" (B, T) int64 if all rows have tags, 0 (O) at padding."""
        text = self.text([row["tokens"] for row in rows])
        return Batch(list(rows), {"tokens": text}, self.gold_tags(rows, lambda row: [row]))

    def from_text(self, /, **raw: Any) -> Row:
        """A row from {"tokens": [...]}, used unchanged, or {"text": "..."}, which is tokenized."""
        return sentence_of(raw)

    def from_file(self, path: str) -> list[Row]:
        """A row without tags for each sentence of a file, which may have tags or none."""
        with self.files.comments():
            return [{"tokens": each.words, "input": each.input} for each in self.files.file(path, tagged=False)]

    def unanswered(self, row: Row) -> list[str]:
        """Tags without any entity."""
        return ["O"] * len(row["tokens"])

    def official(self, predictions: Sequence[Sequence[str]], rows: Sequence[Row]) -> str:
        """A column file of words and IOB2 tags."""
        spaced = any(" " in word for row in rows for word in row["tokens"])
        pairs = (zip(row["tokens"], one, strict=True) for row, one in zip(rows, predictions, strict=True))
        return "".join(write_rows(list(sentence), "\t" if spaced else " ") for sentence in pairs)
