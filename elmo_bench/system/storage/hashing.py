"""Digests of the content of files, and of plain settings."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from elmo_bench.system.errors import StrPath, UserError
from elmo_bench.system.storage import json_text, limits
from elmo_bench.system.storage.files import below, distinct, open_bytes, open_member, plain, private, replacing

MEMORY = "digests.json"  # in the cache: digests of large files
REMEMBERED = 1 << 20  # bytes; only the digests of larger files are stored


def fingerprint(plain: Any, digits: int = 16) -> str:
    """A hash of plain containers that does not depend on the order of keys."""
    text = json_text.dumps(plain, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:digits]


def sha256(path: StrPath) -> str:
    """The sha256 of a file's bytes; a pipe, a device or a folder is never opened."""
    limits.regular(path)
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def content_sha256(path: StrPath, memory: Path | None = None) -> str:
    """The sha256 of a file's decompressed content (.gz, .xz, .bz2, or .zip with one file in it).

    A file has the same digest compressed or not. A folder's digest covers the names (without these suffixes) and
    digests of all files below it, also in linked folders.

    Args:
        path: a file or a folder.
        memory: a JSON file that stores the digests of large files for later processes; it is ignored if damaged.
    """
    path = Path(path)
    if path.is_dir():
        digests = {}
        for file in distinct(below(path)):
            digests[plain(file).relative_to(path).as_posix()] = content_sha256(file, memory)
        return fingerprint(digests, digits=64)
    limits.regular(path, missing=False)
    stat = path.stat()
    state = stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino
    return _remembered(os.path.abspath(path), state, None if stat.st_size < REMEMBERED else memory)


@lru_cache
def _remembered(path: str, state: tuple[int, ...], memory: Path | None) -> str:
    """The digest of a file in this state; cached because a sweep needs it for every run."""
    entry = None if memory is None else _read(memory).get(path)
    if isinstance(entry, list) and entry[:-1] == [*state]:
        return entry[-1]
    if path.endswith(".zip"):
        with open_member(path, lambda names: names[0] if len(names) == 1 else None) as member:
            digest = sha256(path) if member is None else hashlib.file_digest(member, "sha256").hexdigest()  # type: ignore[arg-type]
    else:
        with open_bytes(path) as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    if memory is not None:
        with suppress(OSError):  # a full or read-only disk only costs time
            memory.parent.mkdir(parents=True, exist_ok=True)
            with replacing(memory) as file:
                file.write(json_text.sealed(json_text.dumps(_read(memory) | {path: [*state, digest]}, indent=0) + "\n"))
    return digest


def _read(memory: Path) -> dict[str, Any]:
    """The stored state and digest of each file; nothing if the memory may be wrong."""
    try:
        return json_text.read_sealed(memory, "memory of digests", "", always=True) if private(memory) else {}
    except UserError:
        return {}
