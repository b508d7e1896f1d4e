"""The document of each sentence: as sentences of a document are not independent, intervals draw whole documents."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from elmo_bench.system.errors import UserError
from elmo_bench.system.storage.files import open_text
from elmo_bench.text.columns import Block

OPENS = re.compile(r"#\s*(?:newdoc\b(?:\s+id\s*=)?|doc\s*=|begin document)([^;]*)")  # UD; SemCor; CoNLL-2012
ENDING = ".documents"  # of the file beside a column file: a line for each sentence, the name of its document


def of_blocks(blocks: Sequence[Block]) -> list[str]:
    """The document of each sentence of a column file.

    Its name stands in the file FILE.documents beside it, if there is one; else `-DOCSTART-` lines number the documents.

    Raises:
        UserError: FILE.documents has another number of lines than the file has sentences, or an empty line.
    """
    path = blocks[0].path
    if (beside := named_beside(path)) is None:
        return [f"document {block.document}" for block in blocks]
    with open_text(beside) as lines:
        names = [line.strip() for line in lines]
    if len(names) != len(blocks):
        expected = f"{path.name} has {len(blocks)} sentences"
        raise UserError(f"{len(names)} lines, but {expected}; make it again or remove it", beside)
    if "" in names:
        raise UserError("no name; each line names the document of a sentence", beside, names.index("") + 1)
    return names


def named_beside(path: Path) -> Path | None:
    """The file that names the documents of a column file, if there is one."""
    beside = path.with_name(f"{path.name}{ENDING}")
    return beside if beside.is_file() else None


def in_comments(blocks: Iterable[Block]) -> Iterator[tuple[Block, str | None]]:
    """The sentences of a file, each with the document that a comment before it opened last; None if none did."""
    document, count = None, 0
    for block in blocks:
        for found in filter(None, map(OPENS.match, block.comments)):
            count += 1
            document = found[1].strip() or f"document {count}"
        if block.rows:
            yield block, document


def with_documents(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows with a "document" each; without it if all have the same, as in a file that does not mark documents."""
    if len({row["document"] for row in rows}) > 1:
        return rows
    return [{key: value for key, value in row.items() if key != "document"} for row in rows]
