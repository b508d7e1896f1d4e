"""A table of word vectors on disk."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


class VectorFiles(NamedTuple):
    """The files of a table of word vectors."""

    vectors: Path  # words and numbers in GloVe's text format; with `words`, only numbers (text or .npy)
    words: Path | None = None  # a word a line, or a .parquet file with one column
