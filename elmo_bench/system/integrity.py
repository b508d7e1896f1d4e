"""Whether files still hold what was written to them, before anything in them is used.

Two means: archives of torch and numpy (checkpoints, .npz) are zip files, which hold a CRC-32 of every member; a set of
other files has the sha256 of each in a JSON file beside them (a card or a manifest).
"""

from __future__ import annotations

import lzma
import struct
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

from elmo_bench.system.errors import UserError
from elmo_bench.system.files import replacing
from elmo_bench.system.hashing import sha256

# What the readers of zip files and of pickles raise for damaged content.
UNREADABLE = (
    OSError, EOFError, ValueError, RuntimeError, NotImplementedError, LookupError, TypeError, AttributeError,
    OverflowError, MemoryError, struct.error, zlib.error, lzma.LZMAError, zipfile.BadZipFile,
)  # fmt: skip


def check_archive(path: str | PathLike[str], remedy: str) -> None:
    """Reads every member of a checkpoint or .npz file, and compares it with its checksum.

    Neither `torch.load` nor a reader of single arrays does so.

    Args:
        path: the file.
        remedy: what to do if it is damaged, as the end of the message.

    Raises:
        UserError: the file is missing, unreadable, truncated or changed.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            damaged = archive.testzip()
    except UNREADABLE as error:
        raise UserError(f"damaged, or not such a file ({_why(error)}); {remedy}", path) from None
    if damaged is not None:
        raise UserError(f"damaged: {damaged} in it does not match its checksum; {remedy}", path)


def save_checkpoint(state: Mapping[str, Any], path: Path) -> None:
    """Writes tensors and plain values with `torch.save`, atomically; the caller must hold a lock.

    Its folder is made if necessary. `load_checkpoint` compares every part with its checksum.
    """
    import torch

    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path, "wb", locked=True) as file:
        torch.save(dict(state), file)


def load_checkpoint(path: str | PathLike[str], remedy: str) -> dict[str, Any]:
    """What `torch.save` wrote: tensors, on the CPU, and plain values; nothing in the file is executed.

    Raises:
        UserError: the file is missing, unreadable, truncated or changed; `remedy` ends the message.
    """
    import torch

    check_archive(path, remedy)
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except (*UNREADABLE, UnpicklingError) as error:  # the checksums cover the members, not the archive's directory
        raise UserError(f"damaged, or not a checkpoint ({_why(error)}); {remedy}", path) from None


def _why(error: BaseException) -> str:
    """The first line of an error's message, or its kind."""
    return str(error).partition("\n")[0] or type(error).__name__


def digests(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """The sha256 of each of these files, by name."""
    return {name: sha256(folder / name) for name in names}


def check_digests(folder: Path, expected: Mapping[str, str], remedy: str) -> None:
    """Compares files with their sha256.

    Args:
        folder: of the files.
        expected: sha256 by name of the file.
        remedy: what to do if one is damaged, as the end of the message.

    Raises:
        UserError: a file is missing or does not have its sha256.
    """
    for name, digest in expected.items():
        if not (folder / name).is_file():
            raise UserError(f"missing; {remedy}", folder / name)
        if sha256(folder / name) != digest:
            raise UserError(
                f"damaged or changed: its sha256 is not {digest[:8]}... as recorded; {remedy}", folder / name
            )
