"""Data that may not be fetched: what to get, from whom, and whether what was got is whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from elmo_bench.sources.pages import Given
from elmo_bench.system.errors import UserError
from elmo_bench.text.columns import Block, read_blocks
from elmo_bench.text.conll2012 import find_files


def check(given: Given, root: Path) -> None:
    """Counts what is in the files.

    Args:
        given: what there should be.
        root: the folder that `given.folder` is in.

    Raises:
        UserError: nothing is there (the message says what to get), a file is missing, or has other
            counts.
    """
    folder = root / given.folder
    if not folder.is_dir():
        raise UserError(f"not there; it cannot be fetched. {given.get}", folder)
    for name, expected in given.counts.items():
        path = folder / name
        if not path.exists():
            raise UserError(f"missing. {given.get}", path)
        found = count(path)
        if wrong := [
            f"{number:,} {unit} (not {found[unit]:,})" for unit, number in expected.items() if found[unit] != number
        ]:
            raise UserError(f"expected {', '.join(wrong)}; is this the whole of it?", path)


def count(path: Path) -> Counter[str]:
    """The documents, sentences and tokens of the column files below a folder; of one file, sentences and tokens."""
    if not path.is_dir():
        return _sum(read_blocks(path, widths="sentence"))
    files = find_files(path)
    return sum((_sum(read_blocks(file, comment="#", apart=True, widths="sentence")) for file in files), Counter())


def _sum(blocks: Iterable[Block]) -> Counter[str]:
    found: Counter[str] = Counter()
    for block in blocks:
        begun = any(comment.startswith("#begin document") for comment in block.comments)
        found.update(documents=begun, sentences=bool(block.rows), tokens=len(block.rows))
    return found
