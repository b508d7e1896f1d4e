"""Unpacking the needed files of an archive, never outside their folder, and the digest of what they hold."""

from __future__ import annotations

import hashlib
import shutil
import tarfile
import zipfile
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import IO

from elmo_bench.system.errors import UserError
from elmo_bench.system.storage import limits
from elmo_bench.system.storage.disk import writing
from elmo_bench.system.storage.hashing import sha256
from elmo_bench.system.storage.integrity import UNREADABLE


def unpack(archive: Path, folder: Path, patterns: Sequence[str], limit: int) -> None:
    """Unpacks the members that match one of the patterns, without permissions and owners.

    Args:
        archive: a .tar.gz of GitHub, whose paths begin with a folder that is left away, or a .zip.
        folder: where they go.
        patterns: of paths, as `fnmatch` has them.
        limit: the most bytes that may be unpacked.
    """
    most = limits.RATIO * archive.stat().st_size
    try:
        for path, size, content in _members(archive):
            most -= size
            if most < 0:
                raise UserError(f"unpacks to over {limits.RATIO} times its size", archive)
            if not any(fnmatchcase(path, pattern) for pattern in patterns):
                continue
            limit -= size
            if limit < 0:
                raise UserError("holds more than its file in conf/data allows", archive)
            parts = PurePosixPath(path).parts
            if not parts or path.startswith("/") or ".." in parts or "\\" in path or ":" in parts[0]:
                raise UserError(f"{path!r} in it would be unpacked outside its folder; nothing of it is used", archive)
            if content is None:
                raise UserError(f"{path!r} in it is a link or a device, where a file is expected", archive)
            target = folder.joinpath(*parts)
            with writing(target):
                target.parent.mkdir(parents=True, exist_ok=True)
                with open(target, "wb") as file:
                    shutil.copyfileobj(content, file)
            if target.stat().st_size != size:
                raise UserError(f"{path!r} in it is not as long as announced", archive)
    except (*UNREADABLE, tarfile.TarError) as error:
        raise UserError(f"cannot be unpacked ({error or type(error).__name__}); is it damaged?", archive) from None


def _members(archive: Path) -> Iterator[tuple[str, int, IO[bytes] | None]]:
    """The members but for folders: path as the patterns see it, unpacked bytes, content; None of a link or device."""
    if ".zip" in archive.suffixes:
        with zipfile.ZipFile(archive) as packed:
            for info in packed.infolist():
                if not info.is_dir():
                    with packed.open(info) as content:
                        yield info.filename, info.file_size, content
        return
    with tarfile.open(archive, "r:gz") as packed:
        for info in packed:
            if not info.isdir():
                yield info.name.partition("/")[2], info.size, packed.extractfile(info) if info.isreg() else None


def content_digest(folder: Path, patterns: Sequence[str]) -> str:
    """The sha256 of the list that `sha256sum` prints for the matching files, in the order of their paths."""
    paths = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    matching = [path for path in paths if any(fnmatchcase(path, pattern) for pattern in patterns)]
    listed = "".join(f"{sha256(folder / path)}  {path}\n" for path in matching)
    return hashlib.sha256(listed.encode()).hexdigest()
