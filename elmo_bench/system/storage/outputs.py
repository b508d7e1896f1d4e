"""Outputs of commands: they never replace an input, or somebody else's folder.

Single files go through `files.replacement`, which writes beside them and replaces them whole.
"""

from __future__ import annotations

import errno
import glob
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from elmo_bench.system.errors import StrPath, UserError
from elmo_bench.system.storage.disk import writing
from elmo_bench.system.storage.files import open_bytes, partial, write_text

TAG = "CACHEDIR.TAG"  # marks a folder that can be made again, also for backup programs: https://bford.info/cachedir
SIGNATURE = "Signature: 8a477f597d28d172789f06886806bc55\n# Made by elmo-bench, which removes this folder.\n"


def apart(output: StrPath, inputs: Iterable[StrPath | None]) -> None:
    """Compares an output with the inputs by device and inode: links of either kind lead to the same file.

    Args:
        output: a file or a folder, which need not exist.
        inputs: files, folders and patterns; all files below a folder count.
    """
    there = set(_files(output))
    for given in inputs if there else ():
        if given is not None and not there.isdisjoint(_files(given)):
            raise UserError(f"is an input of the command ({given}), and would be replaced; give another output", output)


def _files(named: StrPath) -> Iterator[tuple[int, int]]:
    """Device and inode of a file, of all files below a folder, or of all that match a pattern."""
    named = os.fspath(named)
    for path in [named] if os.path.lexists(named) else glob.iglob(named, recursive=True):
        below = (os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names)
        for file in below if os.path.isdir(path) else [path]:
            with suppress(OSError):
                found = os.stat(file)
                yield found.st_dev, found.st_ino


def begun(folder: Path, marker: str) -> bytes | None:
    """The `mark` of a folder that will be filled after long work."""
    place = Path(os.path.realpath(folder))
    with writing(folder):
        place.parent.mkdir(parents=True, exist_ok=True)
        with partial(place, folder=True), suppress(FileNotFoundError):
            folder.stat()
    return mark(folder, marker)


def mark(folder: Path, name: str) -> bytes | None:
    """The content of the file that shows what made a folder; empty without one, None without the folder."""
    if not os.path.lexists(folder):
        return None
    try:
        with open_bytes(folder / name) as file:
            return file.read()
    except UserError:
        return b""


@contextmanager
def filled(folder: Path, marker: str, before: bytes | None) -> Iterator[Path]:
    """A folder beside another one, which it replaces at the end, as a whole or file by file.

    After an error it is removed, and `folder` is unchanged. The next run removes the leftovers of a killed one.

    Args:
        folder: the folder to replace, which need not exist; for a link, its target.
        marker: the file that shows what made the folder; replaced last.
        before: its `mark` before the work began. Other files in the folder stay.
    """
    folder = Path(os.path.realpath(folder))
    with writing(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
    with writing(folder), partial(folder, folder=True) as beside:
        yield beside
        try:
            os.rename(beside, folder)  # the folder does not exist, or is empty
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            if mark(folder, marker) != before:
                raise UserError("somebody else has made it meanwhile; give another output", folder) from None
            for name in sorted(os.listdir(beside), key=lambda name: name == marker):
                os.replace(beside / name, folder / name)


# Temporary folders, which are removed at the end.


def scratch(folder: Path) -> None:
    """Makes a temporary folder; an existing folder with other content is an error."""
    if mark(folder, TAG) == b"" and (not folder.is_dir() or os.listdir(folder)):
        raise UserError("was not made by this command, which would delete it; move it away", folder)
    write_text(folder / TAG, SIGNATURE)


def remove(folder: Path) -> None:
    """Removes a folder only if `scratch` has made it."""
    if mark(folder, TAG) == SIGNATURE.encode():
        shutil.rmtree(folder, ignore_errors=True)
