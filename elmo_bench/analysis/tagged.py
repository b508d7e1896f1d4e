"""Text with parts of speech, in columns: CoNLL-U, CoNLL-2012, or words and tags."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from elmo_bench.analysis.corpora.documents import in_documents
from elmo_bench.analysis.settings import PosConfig
from elmo_bench.system.errors import UserError
from elmo_bench.text.columns import Block, read_blocks


class Tagged(NamedTuple):
    """The sentences of a split, their tags by the name of the tag set, and their documents, where these are known."""

    sentences: list[list[str]]
    tags: dict[str, list[list[str]]]
    documents: list[str | None]

    @property
    def lengths(self) -> list[int]:
        return [len(sentence) for sentence in self.sentences]


def read(path: Path, settings: PosConfig) -> Tagged:
    """A split, up to `settings.sentences` sentences.

    Raises:
        UserError: `settings.tags` names no columns, rows have different widths or lack a column, a file has no words.
    """
    if not isinstance(settings.tags, dict) or not all(type(column) is int for column in settings.tags.values()):
        raise UserError(f"tags={settings.tags}: expected columns by the names of tag sets, as in tags={{XPOS: 4}}")
    listed = list(islice(_blocks(path, settings), settings.sentences))
    if not listed:
        raise UserError("contains no word", path)
    blocks, documents = zip(*listed, strict=True)
    tags = {name: [block.column(column) for block in blocks] for name, column in settings.tags.items()}
    return Tagged([block.column(settings.word) for block in blocks], tags, list(documents))


def _blocks(path: Path, settings: PosConfig) -> Iterator[tuple[Block, str | None]]:
    widths = "sentence" if settings.apart else "file"
    listed = read_blocks(path, comment=settings.comment, apart=settings.apart, widths=widths)
    for block, document in in_documents(listed):
        kept = block if settings.numbers is None else _words(block, settings.numbers)
        if kept.rows:
            yield kept, document


def _words(block: Block, column: int) -> Block:
    """The block without ranges ("3-4") and empty nodes ("8.1") of CoNLL-U."""
    kept = [i for i, number in enumerate(block.column(column)) if number.isdecimal()]
    return block._replace(rows=[block.rows[i] for i in kept], lines=[block.lines[i] for i in kept])
