"""Reads tagged sentences from CoNLL column files or the hub, and makes batches of words and tags."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from elmo_bench.configuration.checks import one_of
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage.files import ending, first_line
from elmo_bench.task import Batch, Row
from elmo_bench.text import documents, tags
from elmo_bench.text.batching import pad, pad_tokens
from elmo_bench.text.columns import REMOVE, Block, comments_named, read_blocks, write_rows
from elmo_bench.text.part import WHOLE, Part
from elmo_bench.text.raw import sentence_of
from elmo_bench.text.source import SPLITS, DataSource, Table, check_keys, tables
from elmo_bench.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from datasets import DatasetDict

LISTED = 10  # the most places that a message lists
COLUMNS = "of a column file, task.data.word_column and task.data.tag_column number the columns"
OF_COLUMN_FILES = ("word_column", "tag_column", "comment")  # keys of `task.data`
COMMENT = """add '+task.data.comment="#"'"""


class TaggedSentence(NamedTuple):
    """One sentence as in its source, with its file and lines; of a table without lines, of the hub without a file."""

    tokens: list[str]
    tags: list[str]
    path: Path | None
    lines: list[int] | None
    document: str = ""  # its name, if the source tells it


class TaggingReader:
    """A row is {"tokens": [str], "tags": [str]}; the tags are converted from the source's scheme to `scheme`.

    A row also has its "document" where a file tells several apart, see `documents.of_blocks`.

    Vocabularies, all from the training split: "words", those that occur at least `min_count` times, so that the unknown
    word is trained on rarer ones; "chars" likewise; "labels", all tags of the scheme for the types that occur. A type
    that occurs only in dev or test counts as O in the loss, and as missed in the metric.

    Args:
        data: the files {train, dev, test}, below {folder} if given, or without a folder {hub, revision}; also
            word_column (0), tag_column (-1), comment (none), source_scheme ("auto", see `tags.TagReader`), and of the
            hub tag_names, where the data set's features do not name its numbers.
        scheme: of the tags that the model learns: "bioes" or "iob2".
        lower: look words up in lower case; characters always keep their case.
        min_count: how often a word must occur to be in the vocabulary.
        char_min_count: the same for characters.
        char_limit: longer words are cut to this many characters.
    """

    fields = ("tokens",)
    hub_tags: ClassVar[str] = "tags"  # the column of tags in a data set of the hub, or else "tags"

    def __init__(
        self,
        data: Mapping[str, Any],
        scheme: str = "bioes",
        lower: bool = True,
        min_count: int = 2,
        char_min_count: int = 2,
        char_limit: int = 50,
    ):
        one_of(scheme, "task.reader.scheme", ("bioes", "iob2"))
        self.data, self.source = dict(data), DataSource(data, native=_is_of_columns, otherwise=COLUMNS)
        self.scheme, self.lower = scheme, lower
        self.min_count, self.char_min_count, self.char_limit = min_count, char_min_count, char_limit
        self.vocabularies: dict[str, Vocabulary] = {}

    def load(self, part: Part = WHOLE) -> DatasetDict:
        """Reads all splits, makes the vocabularies, and prints which tags were repaired, if any.

        A part of the training data is drawn from its sentences.

        Raises:
            UserError: a missing setting or file, rows of different widths, tags that follow no scheme, no spans at all;
                it names file and line.
        """
        check_keys(self.data, *OF_COLUMN_FILES, "source_scheme", "tag_names")
        if self.source.tabular:
            if unread := [key for key in OF_COLUMN_FILES if key in self.data]:
                mend = "of a table, '+task.data.columns={tokens: NAME, tags: NAME}' names the columns"
                raise UserError(f"task.data.{unread[0]} is for column files; {mend}")
            sources = {split: self._from_table(table) for split, table in self.source.load().items()}
        else:
            if self.data.get("tag_names"):
                raise UserError(f"task.data.tag_names is for tables; {COLUMNS}")
            sources = {split: self._from_file(split) for split in SPLITS}
        repairs: list[str] = []
        with comments_named("" if self.data.get("comment") else COMMENT):
            splits = {split: self._rows(sentences, split, repairs) for split, sentences in sources.items()}
        if repairs:
            print(f"tags repaired as conlleval reads them: {'; '.join(repairs)}", file=sys.stderr)
        splits["train"] = part.of(splits["train"], "sentences")
        self._make_vocabularies(splits["train"], part)
        return tables(splits)

    def _from_file(self, split: str) -> Iterator[TaggedSentence]:
        word, tag = self.data.get("word_column", 0), self.data.get("tag_column", -1)
        blocks = self._blocks(self.source.path(split))
        for block, document in zip(blocks, documents.of_blocks(blocks), strict=True):
            yield TaggedSentence(block.column(word), block.column(tag), block.path, block.lines, document)

    def _blocks(self, path: Path | str) -> list[Block]:
        return list(read_blocks(path, comment=self.data.get("comment"), minimum=2))

    def _from_table(self, table: Table) -> Iterator[TaggedSentence]:
        """Tags are words, or numbers whose names are in the table's features or in `task.data.tag_names`."""
        column = self.hub_tags if self.hub_tags in table.rows.column_names else "tags"
        table.require("tokens", column)
        feature = getattr(table.rows.features[column], "feature", None)
        names: list[str] = getattr(feature, "names", None) or list(self.data.get("tag_names") or ())
        if len(table.rows) > 1 and all(len(tokens) < 2 for tokens in table.lists("tokens")):
            raise table.unfit("has one word in each row, where a row is a sentence: join the words of each sentence")
        empty = 0
        for row, (tokens, found) in enumerate(
            zip(table.lists("tokens"), table.lists(column, numbers=True), strict=True)
        ):
            if len(tokens) != len(found):
                raise table.fault(row, f"{len(tokens)} tokens and {len(found)} {column}")
            numbers = [tag for tag in found if isinstance(tag, int)]
            if numbers and not names:
                mend = "give them in their order, as in '+task.data.tag_names=[O,B-PER,I-PER]'"
                raise table.fault(row, f"the column {column} holds numbers without names", mend)
            if wrong := [number for number in numbers if not 0 <= number < len(names)]:
                count = f"task.data.tag_names has {len(names)} names"
                raise table.fault(row, f"{column} has the number {wrong[0]}, but {count}", "name all tags")
            empty += not tokens
            if tokens:
                yield TaggedSentence(tokens, [names[i] if isinstance(i, int) else i for i in found], table.path, None)
        if empty:
            print(f"{table.path or table.split}: left out {empty} rows without words", file=sys.stderr)

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
                spans = read(sentence.tags)
                encoded = tags.encode(spans, len(sentence.tokens), self.scheme)
                rows.append({"tokens": sentence.tokens, "tags": encoded, "document": sentence.document})
            settled = read.settle()
        except tags.TagError as error:
            raise _fault(error, kept[error.sentence]) from None
        if settled.exceptions:
            repairs.append(_repairs(settled, kept, split))
        return documents.with_documents(rows)

    def _make_vocabularies(self, train: Sequence[Row], part: Part) -> None:
        words = [word for row in train for word in row["tokens"]]
        types = {tag[2:] for row in train for tag in row["tags"] if tag != "O"}
        if not types:
            raise UserError(f"the training data contain no span; {part.mend('is task.data.tag_column right?')}")
        self.vocabularies = {
            "words": Vocabulary.count(words, self.min_count, self.lower),
            "chars": Vocabulary.count((char for word in words for char in word), self.char_min_count),
            "labels": Vocabulary(tags.labels(types, self.scheme), special=False),
        }

    def collate(self, rows: Sequence[Row]) -> Batch:
        """Text field "tokens"; label "tags" (B, T) int64 if all rows have tags, 0 (O) at padding."""
        words, chars, known = (self.vocabularies[name] for name in ("words", "chars", "labels"))
        text = pad_tokens([row["tokens"] for row in rows], words, chars, lower=self.lower, char_limit=self.char_limit)
        labels = {}
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
        """A row without tags for each sentence of a column file.

        Raises:
            UserError: as `read_blocks`; a tag of no known scheme: a line of running text has columns, too.
        """
        with comments_named(REMOVE):
            blocks = self._blocks(path)
            for block in blocks:
                self._check_tags(block)
            return [{"tokens": block.column(self.data.get("word_column", 0))} for block in blocks]

    def _check_tags(self, block: Block) -> None:
        column = self.data.get("tag_column", -1)
        for tag, line in zip(block.column(column if column < len(block.rows[0]) else -1), block.lines, strict=True):
            try:
                tags.normal(tag)
            except ValueError as error:
                raise UserError(str(error), block.path, line) from None

    def official(self, predictions: Sequence[Sequence[str]], rows: Sequence[Row]) -> str:
        """A column file of words and IOB2 tags."""
        spaced = any(" " in word for row in rows for word in row["tokens"])
        pairs = (zip(row["tokens"], one, strict=True) for row, one in zip(rows, predictions, strict=True))
        return "".join(write_rows(list(sentence), "\t" if spaced else " ") for sentence in pairs)


def _is_of_columns(path: Path) -> bool:
    """Whether a `.tsv` is a column file: its first line is no header with a column of tokens."""
    return ending(path) == ".tsv" and "tokens" not in re.split(r'["\t\r\n]', first_line(path))


def _fault(error: tags.TagError, sentence: TaggedSentence) -> UserError:
    """The error of a user whose file has these tags."""
    if sentence.lines:
        return UserError(str(error), sentence.path, sentence.lines[error.index])
    return UserError(f"{error} (sentence {error.sentence}, token {error.index})", sentence.path)


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
