"""Checks that files are unchanged since they were written, before anything in them is used.

Archives of torch and numpy (checkpoints, .npz) are zip files, which contain a CRC-32 of every member. Other files have
their sha256 in a JSON file beside them (a card or a manifest), or in a note in the format of `sha256sum`. A JSON file
(a record, a card) ends with the checksum of its own text: `json_text.sealed`.
"""

from __future__ import annotations

import os
import re
import struct
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

from elmo_bench.system.errors import StrPath, UserError
from elmo_bench.system.storage import files, limits
from elmo_bench.system.storage.disk import steady
from elmo_bench.system.storage.files import private, replacing, write_text
from elmo_bench.system.storage.hashing import sha256

# The end of an archive: signature, disks, members here and in all, size, offset, length of the comment.
END = struct.Struct("<4s4H2LH")
MORE = 0xFFFF  # the number of members in the end of an archive that has too many for this field
# Errors of readers for damaged archives, pickles and compressed files.
UNREADABLE = (
    *files.UNREADABLE, ValueError, LookupError, TypeError, AttributeError, OverflowError, struct.error,
)  # fmt: skip


def check_archive(path: StrPath, remedy: str) -> None:
    """Reads every member of a checkpoint or .npz file, and compares it with its checksum.

    Neither `torch.load` nor a reader of single arrays does so.

    Args:
        path: the file.
        remedy: the end of the message if it is damaged.
    """
    if found := damage(path):
        raise UserError(f"{found}; {remedy}", path)


def damage(path: StrPath) -> str | None:
    """The fault of an archive, for a message; None if every member matches its checksum."""
    limits.regular(path)
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            with open(path, "rb") as file:
                file.seek(-END.size, os.SEEK_END)
                signature, _, _, _, entries, *_ = END.unpack(file.read())
            if signature != b"PK\5\6":
                raise ValueError("it does not end like an archive")
            # `zipfile` does not compare their number: an entry with a wrong length hides the following ones.
            if entries not in (len(members), MORE):
                return "damaged: its directory lists fewer members than were written"
            if sum(each.file_size for each in members) > limits.unpacked(os.path.getsize(path)):
                return f"unpacks to over {limits.RATIO} times its size"
            damaged = archive.testzip()
    except UNREADABLE as error:
        return f"damaged, or not such a file ({_why(error)})"
    return None if damaged is None else f"damaged: {damaged} in it does not match its checksum"


def save_checkpoint(state: Mapping[str, Any], path: Path) -> None:
    """Writes tensors and plain values with `torch.save`, atomically; its folder is created if necessary.

    `load_checkpoint` compares every part with its checksum.
    """
    import torch

    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path, "wb") as file, steady(file) as stream:
        torch.save(dict(state), stream)  # type: ignore[arg-type]


def load_checkpoint(path: StrPath, remedy: str) -> dict[str, Any]:
    """The content of a file by `torch.save`: tensors, on the CPU, and plain values; nothing in it is executed.

    It is an error if the file is damaged, or contains anything else or weights that are not finite; the message ends
    with `remedy`.
    """
    import torch

    check_archive(path, remedy)
    try:
        saved = torch.load(path, map_location="cpu", weights_only=True)
    except (*UNREADABLE, UnpicklingError) as error:  # the checksums cover the members, not the archive's directory
        raise UserError(f"damaged, or not a checkpoint ({_why(error)}); {remedy}", path) from None
    if not isinstance(saved, dict):
        raise UserError(f"not a checkpoint, but a {type(saved).__name__}; {remedy}", path)
    for part in saved.values():
        for name, each in part.items() if isinstance(part, dict) else ():  # an optimizer's numbers are nested deeper
            if isinstance(each, torch.Tensor) and (
                each.layout != torch.strided or each.is_meta or each.is_complex()
                or each.nbytes > each.untyped_storage().nbytes()  # an expanded tensor, whose numbers are not all stored
                or not each.float().isfinite().all()
            ):  # fmt: skip
                message = f"the weights {name!r} are not dense numbers that are finite in 32 bits"
                raise UserError(f"{message}; {remedy}", path)
    return saved


def _why(error: BaseException) -> str:
    """The first line of an error's message, or its kind, without torch's advice to unpickle refused content."""
    if not str(error).startswith("Weights only load failed"):
        return str(error).partition("\n")[0] or type(error).__name__
    named = re.search(r"GLOBAL (\S+)", str(error))
    return "it contains more than tensors and plain values" + (f": {named[1]}, which is not run" if named else "")


def digests(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """The sha256 of each file, by name."""
    return {name: sha256(folder / name) for name in names}


def check_digests(folder: Path, expected: Mapping[str, str], remedy: str) -> None:
    """Compares files with their sha256.

    Args:
        folder: the folder of the files.
        expected: the sha256 by the name of the file.
        remedy: the end of the message if a file is damaged.
    """
    for name, digest in expected.items():
        if not (folder / name).is_file():
            raise UserError(f"missing; {remedy}", folder / name)
        if sha256(folder / name) != digest:
            raise UserError(
                f"damaged or changed: its sha256 is not {digest[:8]}... as recorded; {remedy}", folder / name
            )


# Single files.


def note(path: Path) -> None:
    """Writes the sha256 of a file beside it, as FILE.sha256 for `sha256sum --check`."""
    write_text(_note(path), f"{sha256(path)}  {path.name}\n")


def is_as_noted(path: Path) -> bool:
    """Whether a file exists and is unchanged since `note` was called."""
    try:
        return files.read_text(_note(path)) == f"{sha256(path)}  {path.name}\n"
    except (OSError, UserError):
        return False


def is_made_here(path: Path) -> bool:
    """The same for a file in the cache; in addition, nobody else could have written the file or its note."""
    return private(path, _note(path)) and is_as_noted(path)


def check_note(path: Path, remedy: str) -> None:
    """Compares a file with its note, if it has one; `remedy` ends the message if they do not match."""
    if _note(path).exists() and not is_as_noted(path):
        raise UserError(f"damaged or changed: it does not match {_note(path).name} beside it; {remedy}", path)


def _note(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")
