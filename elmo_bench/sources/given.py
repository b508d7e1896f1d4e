"""Data that may not be fetched: what to get, from whom, and whether what was got is whole."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from elmo_bench.sources.pages import Given
from elmo_bench.system.errors import UserError
from elmo_bench.text.columns import read_blocks
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
    """The documents, sentences and tokens of a file of columns, or of all such files below a folder."""
    found: Counter[str] = Counter()
    for file in find_files(str(path)) if path.is_dir() else [path]:
        for block in read_blocks(file, comment="#begin", apart=True, widths="sentence"):
            found += Counter(documents=len(block.comments), sentences=bool(block.rows), tokens=len(block.rows))
    return found
