"""Tagged sentences in CoNLL column files and tables, for training, `predict` and `score`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import repeat
from pathlib import Path
from typing import Any, NamedTuple

from elmo_bench.system.errors import UserError, notice
from elmo_bench.system.storage.files import ending, read_text
from elmo_bench.text.columns import Block, comments_named, documents_of, read_blocks
from elmo_bench.text.source import DataSource, Table
from elmo_bench.text.tags import TagError, normalised

COLUMNS = "for a column file, task.data.word_column and task.data.tag_column are the numbers of the columns"
OF_COLUMN_FILES = ("word_column", "tag_column", "comment")  # keys of `task.data`
KEYS = (*OF_COLUMN_FILES, "source_scheme", "tag_names", "labels")
COMMENT = """add '+task.data.comment="#"'"""
LONG = 100  # words of a sentence, on average, above which empty lines seem to be missing
BREAKS = "empty lines belong after each sentence, and nowhere else"


class TaggedSentence(NamedTuple):
    """One sentence as in its source, with its file and lines (none for a table); from the hub, without a file."""

    words: list[str]
    tags: list[str] | None  # None: the source has none
    path: Path | None
    lines: list[int] | None
    document: str = ""  # its name, if the source gives it
    input: Mapping[str, Any] = {}  # its row in a table

    def fault(self, error: TagError) -> UserError:
        """The error about these tags, with the place in the user's file."""
        if self.lines:
            return UserError(str(error), self.path, self.lines[error.index])
        return UserError(f"{error} (sentence {error.sentence}, token {error.index})", self.path)

    def normalised(self, number: int) -> list[str]:
        """Its tags, with BILOU's letters replaced by BIOES's; `number` is the sentence's number, for messages."""
        try:
            return normalised(self.tags or (), number)
        except TagError as error:
            raise self.fault(error) from None


class TaggedFiles:
    """The files of a data set of tagged sentences.

    Args:
        data: as `TaggingReader` takes it.
        column: the name of the tag column in a table; "tags" is accepted, too.
    """

    def __init__(self, data: Mapping[str, Any], column: str = "tags"):
        self.data, self.column = dict(data), column
        self.source = DataSource(data, native=_is_of_columns, otherwise=COLUMNS, keys=KEYS)
        self.labels = {str(theirs): str(ours) for theirs, ours in (self.data.get("labels") or {}).items()}

    def comments(self) -> AbstractContextManager[None]:
        """Inside, an error at a comment names the key `comment`, unless it is set."""
        return comments_named("" if self.data.get("comment") else COMMENT)

    def splits(self) -> dict[str, Iterator[TaggedSentence]]:
        """The sentences of all splits."""
        if self.source.tabular:
            if unread := [key for key in OF_COLUMN_FILES if key in self.data]:
                remedy = "for a table, '+task.data.columns={tokens: NAME, tags: NAME}' names the columns"
                raise UserError(f"task.data.{unread[0]} is for column files; {remedy}")
        elif self.data.get("tag_names"):
            raise UserError(f"task.data.tag_names is for tables; {COLUMNS}")
        return {split: self._sentences(opened, documented=True) for split, opened in self.source.load().items()}

    def file(self, path: Path | str, tagged: bool = True) -> Iterator[TaggedSentence]:
        """The sentences of a file; if not `tagged`, only their words, whatever the tags."""
        return self._sentences(self.source.open(path), tagged)

    def _sentences(
        self, opened: Table | Path, tagged: bool = True, documented: bool = False
    ) -> Iterator[TaggedSentence]:
        own = isinstance(opened, Path)
        for sentence in self._of_blocks(opened, tagged, documented) if own else self._of_table(opened, tagged):
            if self.labels and sentence.tags:
                named = self.labels.get
                tags = [named(tag) or f"{tag[:2]}{named(tag[2:], tag[2:])}" for tag in sentence.tags]
                sentence = sentence._replace(tags=tags)
            yield sentence

    def _of_blocks(self, path: Path, tagged: bool, documented: bool) -> Iterator[TaggedSentence]:
        blocks = list(read_blocks(path, comment=self.data.get("comment"), minimum=2 if tagged else 1))
        words, sentences = sum(len(block.rows) for block in blocks), len(blocks)
        if words > LONG * sentences or sentences == words > 1:
            message = (
                f"{sentences} sentence{'s' * (sentences > 1)} of {words} words; are the empty lines right? {BREAKS}"
            )
            if documented and sentences == 1:
                raise UserError(message, path)  # for a whole split, from which nothing can be learned or scored
            notice(message, path)
        word, tag = self.data.get("word_column", 0), self.data.get("tag_column", -1)
        if "word_column" not in self.data and blocks:
            _check_numbers(blocks)
        if not tagged:
            _check_text(blocks, tag)
        documents = documents_of(blocks) if documented else repeat("")
        for block, document in zip(blocks, documents, strict=False):
            tags = block.column(tag) if tagged else None
            yield TaggedSentence(block.column(word), tags, path, block.lines, document)

    def _of_table(self, table: Table, tagged: bool) -> Iterator[TaggedSentence]:
        """Tags are words, or numbers whose names are in the table's features or in `task.data.tag_names`."""
        column = self.column if self.column in table.rows.column_names else "tags"
        table.require("tokens", *([column] if tagged else []))
        if len(table.rows) > 1 and all(len(tokens) < 2 for tokens in table.lists("tokens")):
            raise table.unfit("has one word in each row, but a row must be a sentence: join the words of each sentence")
        empty, rows = 0, self._tags(table, column) if tagged else repeat(None)
        for row, (words, tags) in enumerate(zip(table.lists("tokens"), rows, strict=False)):
            if tags is not None and len(words) != len(tags):
                raise table.fault(row, f"{len(words)} tokens and {len(tags)} {column}")
            empty += not words
            if words:
                yield TaggedSentence(words, tags, table.path, None, input=table.row(row))
        if empty:
            notice(f"left out {empty} rows without words", table.path or table.split)

    def _tags(self, table: Table, column: str) -> Iterator[list[str]]:
        feature = getattr(table.rows.features[column], "feature", None)
        names: list[str] = getattr(feature, "names", None) or list(self.data.get("tag_names") or ())
        for row, found in enumerate(table.lists(column, numbers=True)):
            numbers = [tag for tag in found if isinstance(tag, int)]
            if numbers and not names:
                remedy = "name them in order, as in '+task.data.tag_names=[O,B-PER,I-PER]'"
                raise table.fault(row, f"the column {column} holds numbers without names", remedy)
            if wrong := [number for number in numbers if not 0 <= number < len(names)]:
                count = f"task.data.tag_names has {len(names)} names"
                raise table.fault(row, f"{column} has the number {wrong[0]}, but {count}", "name all tags")
            yield [names[tag] if isinstance(tag, int) else tag for tag in found]


def _is_of_columns(path: Path) -> bool:
    """Whether a `.tsv` is a column file: its first line is not a header with a column of tokens."""
    return ending(path) == ".tsv" and "tokens" not in re.split(r'["\t\r\n]', read_text(path, line=True))


def _check_numbers(blocks: Sequence[Block]) -> None:
    """Refuses a first column that numbers the words of each sentence, from 0 or from 1."""
    columns = [block.column(0) for block in blocks]
    if max(map(len, columns)) < 2 or len(blocks[0].rows[0]) < 2:
        return
    if any(all(each == [*map(str, range(first, first + len(each)))] for each in columns) for first in (0, 1)):
        remedy = "+task.data.word_column=1 reads the words from the second column"
        raise UserError(f"the first column numbers the words of each sentence; {remedy}", blocks[0].path, 1)


def _check_text(blocks: Sequence[Block], tag: int) -> None:
    """Refuses lines that seem to be running text: no tags, and a single line or full stops at the ends."""
    width = len(blocks[0].rows[0]) if blocks else 1
    tag = tag if -width <= tag < width else -1
    try:
        for number, block in enumerate(blocks if width > 1 else ()):
            TaggedSentence([], block.column(tag), block.path, block.lines).normalised(number)
    except UserError:
        ends = [row[-1][-1] in ".?!" for block in blocks for row in block.rows]
        if len(ends) == len(blocks) or all(ends):
            raise
