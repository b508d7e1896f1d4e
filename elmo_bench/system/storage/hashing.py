"""Digests of the content of files, and of plain settings."""

from __future__ import annotations

import bz2
import hashlib
import json
import os
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

from elmo_bench.system.storage import json_text, limits
from elmo_bench.system.storage.files import OPENERS as TEXT_OPENERS
from elmo_bench.system.storage.files import check, open_bytes, open_member, replacing
from elmo_bench.system.storage.owners import private

OPENERS: dict[str, Callable[..., IO[bytes]]] = {**TEXT_OPENERS, ".bz2": bz2.open}  # type: ignore[dict-item]
MEMORY = "digests.json"  # in the cache: digests of large files
REMEMBERED = 1 << 20  # bytes; only the digests of larger files are stored


def fingerprint(plain: Any, digits: int = 16) -> str:
    """A hash of plain containers that does not depend on the order of keys."""
    text = json_text.dumps(plain, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:digits]


def sha256(path: str | os.PathLike[str]) -> str:
    """The sha256 of a file's bytes. Raises `UserError` for a pipe, a device or a folder, which are never opened."""
    limits.regular(path)
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def content_sha256(path: str | os.PathLike[str], memory: Path | None = None) -> str:
    """The sha256 of a file's decompressed content (.gz, .xz, .bz2, or .zip with one file in it).

    A file has the same digest compressed or not. A folder's digest is that of the names (without these suffixes) and
    digests of all files below it.

    Args:
        path: a file or a folder.
        memory: a JSON file that stores the digests of large files for later processes, each with a checksum: a
            damaged entry is not used.

    Raises:
        UserError: there is no such file, or it cannot be read to its end.
    """
    path = Path(path)
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.is_file())
        names = {_plain_name(file.relative_to(path)): content_sha256(file, memory) for file in files}
        return fingerprint(names, digits=64)
    check(path)
    stat = path.stat()
    state = stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino
    return _remembered(os.path.abspath(path), state, None if stat.st_size < REMEMBERED else memory)


def _plain_name(path: Path) -> str:
    return (path.with_suffix("") if path.suffix in OPENERS else path).as_posix()


@lru_cache
def _remembered(path: str, state: tuple[int, ...], memory: Path | None) -> str:
    """The digest of a file in this state; cached because a sweep needs it for every run."""
    entry = None if memory is None else _read(memory).get(path)
    if isinstance(entry, list) and entry == _entry(path, state, entry[-1:]):
        return entry[-1]
    digest = _content(Path(path))
    if memory is not None:
        with suppress(OSError):  # a full or read-only disk only costs time
            _write(memory, {**_read(memory), path: _entry(path, state, [digest])})
    return digest


def _entry(path: str, state: tuple[int, ...], digest: list[Any]) -> list[Any]:
    """What is remembered of a file: its state, a checksum of the entry, its digest."""
    return [*state, fingerprint([path, state, digest]), *digest]


def _read(memory: Path) -> dict[str, Any]:
    if not private(memory):
        return {}
    try:
        known = json.loads(memory.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return known if isinstance(known, dict) else {}


def _write(memory: Path, known: dict[str, Any]) -> None:
    memory.parent.mkdir(parents=True, exist_ok=True)
    with replacing(memory) as file:
        file.write(json_text.dumps(known, indent=0) + "\n")


def _content(path: Path) -> str:
    if path.suffix == ".zip":
        with open_member(path, lambda names: names[0] if len(names) == 1 else None) as member:
            return sha256(path) if member is None else hashlib.file_digest(member, "sha256").hexdigest()  # type: ignore[arg-type]
    with open_bytes(path, OPENERS) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
