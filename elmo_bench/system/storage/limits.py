"""Limits on input: a file beyond one of them is a one-line error, and never fills the memory or blocks.

Real data stay far below: the longest line of word vectors has a few kilobytes, SQuAD's training file is 33 MB in one
line of JSON, text compresses to a fourth of its size, and the deepest tree of the sentiment treebank has 30 levels.
"""

from __future__ import annotations

import os
from pathlib import Path

from elmo_bench.system.errors import StrPath, UserError

LINE = 1 << 24  # decompressed bytes of a line of text read line by line
WHOLE = 1 << 28  # decompressed bytes of a file read as a whole, such as JSON
RATIO = 200  # the ratio of a file's decompressed to its compressed size ...
UNPACKED = 1 << 24  # ... if it decompresses to more than this many bytes
NESTING = 200  # brackets open at once, in JSON and in trees
YAML = 1 << 20  # characters of a YAML file; the longest file in conf/ has 6,000 ...
NODES = 20_000  # ... its keys and values with aliases expanded ...
LEVELS = 40  # ... and the depth of its blocks
DIGITS = 20  # digits of a whole number: as many as the largest 64-bit number has
CLUSTERS = 5_000  # coreference clusters of one document, because their alignment needs a matrix of all pairs


def regular(path: StrPath, missing: bool = True) -> None:
    """Refuses a path that is not a regular file: a folder has no content, and a pipe or a device may have no end.

    Args:
        path: the file.
        missing: whether a path where nothing exists is accepted.
    """
    path = Path(path)
    try:
        if path.is_file() or (missing and not path.is_symlink() and not path.exists()):
            return
        if not path.exists():
            raise UserError(absent(path) if path.is_symlink() else "no such file; check the path", path)
    except OSError as error:  # a name that is too long, a folder that may not be entered
        raise UserError(f"cannot be read: {error.strerror}", path) from None
    what = "a folder" if path.is_dir() else "a pipe, a device or a socket; save its output as a file first"
    raise UserError(f"expected a regular file, but it is {what}", path)


def unpacked(packed: int) -> int:
    """The maximum decompressed size of a compressed file of this size."""
    return max(RATIO * packed, UNPACKED)


def absent(path: StrPath) -> str:
    """The message about a missing file, which may be a broken link."""
    leads = Path(path).is_symlink()
    return f"a link to {os.readlink(path)}, which does not exist" if leads else "no such file"
