"""Errors of the disk (full, read-only, another user's) as one line that names the file and the remedy."""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import IO, Any

from elmo_bench.system.errors import StrPath, UserError

FULL = "no space left on the disk; free some, then run the same command again"
OTHERS = "this user may not read or write it; give another place, or get permission"
MEANINGS = {
    errno.ENOSPC: FULL,
    errno.EDQUOT: FULL.replace("on the disk", "in this user's quota"),
    errno.EFBIG: "no space left: the file exceeds the maximum size here (`ulimit -f` shows a limit)",
    errno.EROFS: "the disk is read-only; give another place",
    errno.EACCES: OTHERS,
    errno.EPERM: OTHERS,
    errno.ENOTDIR: "is a file where a folder is needed; give another place",
    errno.EEXIST: "is a file where a folder is needed; give another place",
    errno.EISDIR: "is a folder; give the name of a file",
    errno.EBADF: "is not open for writing",
    errno.ELOOP: "is a link to itself; give another place",
    errno.ENAMETOOLONG: "a name in it is longer than the disk allows; give a shorter name",
    errno.EIO: "the disk reports an error in reading or writing",
}


def explain(error: OSError, path: StrPath | None = None) -> UserError | None:
    """The one-line error for an error of the system, or None if its cause is not the disk.

    Args:
        error: the error of the system.
        path: the file being written, used if the error names no file or a temporary one.
    """
    named = error.filename
    if path is not None and (named is None or str(named).endswith(".partial")):
        named = path
    place = Path(named) if isinstance(named, (str, PathLike)) else None
    meaning = MEANINGS.get(error.errno or 0)
    if place is not None and error.errno in (errno.EEXIST, errno.ENOENT):  # no folder can be created there
        if os.path.islink(os.path.realpath(place)):
            meaning = MEANINGS[errno.ELOOP]
        elif place.is_symlink() and not place.exists():
            meaning = f"is a link to {os.readlink(place)}, which does not exist; create it, or give another place"
        elif place.absolute().is_relative_to("/proc"):
            meaning = "nothing can be created below /proc; give another place"
    if place is not None and error.errno == errno.ENOTDIR:  # the file in the path that should be a folder
        place = next((parent for parent in reversed(place.parents) if parent.is_file()), place)
    return UserError(meaning, place) if meaning else None


@contextmanager
def writing(path: StrPath) -> Iterator[None]:
    """Inside, errors of the disk become one line with the file or folder."""
    try:
        yield
    except OSError as error:
        if (refused := explain(error, path)) is None:
            raise
        raise refused from error


class _Steady(io.FileIO):
    """A binary file that pretends to write after its first error."""

    error: OSError | None = None

    def write(self, data: Any) -> int:
        return self._attempt(super().write, data, memoryview(data).nbytes)

    def truncate(self, size: int | None = None) -> int:
        return self._attempt(super().truncate, size, size or 0)

    def _attempt(self, action: Callable[[Any], int], given: Any, pretended: int) -> int:
        if self.error is None:
            try:
                return action(given)
            except OSError as error:
                self.error = error
        return pretended


@contextmanager
def steady(file: IO[bytes]) -> Iterator[io.BufferedRandom]:
    """A binary file for libraries that crash on an error of the disk, such as HDF5 and torch's writer.

    After the first error, `raw.error`, it pretends to write; that error is raised at the end of the block.
    """
    raw = _Steady(file.fileno(), "r+", closefd=False)
    try:
        with io.BufferedRandom(raw) as stream:
            yield stream
    finally:
        if raw.error is not None:
            raise raw.error
