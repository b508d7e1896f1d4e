"""Which document a sentence of a column file stands in."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from elmo_bench.text.columns import Block

OPENS = re.compile(r"#\s*(?:newdoc\b(?:\s+id\s*=)?|doc\s*=|begin document)([^;]*)")  # UD; SemCor; CoNLL-2012


def in_documents(blocks: Iterable[Block]) -> Iterator[tuple[Block, str | None]]:
    """The sentences of a file, each with the document that a comment before it opened last; None if none did."""
    document, count = None, 0
    for block in blocks:
        for found in filter(None, map(OPENS.match, block.comments)):
            count += 1
            document = found[1].strip() or f"document {count}"
        if block.rows:
            yield block, document
