"""Unpacking the needed files of an archive, never outside their folder, and the digest of what they hold."""

from __future__ import annotations

import hashlib
import shutil
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import IO, NamedTuple

from elmo_bench.system.errors import UserError
from elmo_bench.system.storage import limits
from elmo_bench.system.storage.disk import writing
from elmo_bench.system.storage.hashing import sha256
from elmo_bench.system.storage.integrity import UNREADABLE


class _Member(NamedTuple):
    name: str  # in the archive
    size: int  # bytes, unpacked
    plain: bool  # whether it is a file, and no link or device
    open: Callable[[], IO[bytes] | None]


def unpack(archive: Path, folder: Path, patterns: Sequence[str], limit: int) -> None:
    """Unpacks the members that match one of the patterns, without permissions and owners.

    Args:
        archive: a .tar.gz of GitHub, whose paths begin with a folder that is left away, or a .zip.
        folder: where they go.
        patterns: of paths, as `fnmatch` has them.
        limit: the most bytes that may be unpacked.

    Raises:
        UserError: the archive is damaged, holds too much, or a member that matches would leave the folder or is a link;
            the disk is full, or may not be written.
    """
    try:
        most = limits.RATIO * archive.stat().st_size
        for member, path in _paths(archive):
            most -= member.size
            if most < 0:
                raise UserError(f"unpacks to over {limits.RATIO} times its size", archive)
            if not any(fnmatchcase(path, pattern) for pattern in patterns):
                continue
            limit -= member.size
            if limit < 0:
                raise UserError("holds more than its file in conf/data allows", archive)
            _write(member, _inside(folder, path, archive), archive)
    except (*UNREADABLE, tarfile.TarError) as error:
        raise UserError(f"cannot be unpacked ({error or type(error).__name__}); is it damaged?", archive) from None


def _paths(archive: Path) -> Iterator[tuple[_Member, str]]:
    """The members, folders left out, and their paths as the patterns see them."""
    if archive.suffix == ".zip":
        with zipfile.ZipFile(archive) as packed:
            for info in packed.infolist():
                if not info.is_dir():
                    yield (
                        _Member(info.filename, info.file_size, True, lambda info=info: packed.open(info)),
                        info.filename,
                    )
        return
    with tarfile.open(archive, "r:gz") as packed:
        for info in packed:
            if not info.isdir():
                member = _Member(info.name, info.size, info.isreg(), lambda info=info: packed.extractfile(info))
                yield member, info.name.partition("/")[2]


def _inside(folder: Path, path: str, archive: Path) -> Path:
    """Where a member goes. Raises `UserError` if that is not below the folder."""
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or ".." in parts or "\\" in path or ":" in parts[0]:
        raise UserError(f"{path!r} in it would be unpacked outside its folder; nothing of it is used", archive)
    return folder.joinpath(*parts)


def _write(member: _Member, target: Path, archive: Path) -> None:
    content = member.open() if member.plain else None
    if content is None:
        raise UserError(f"{member.name!r} in it is a link or a device, where a file is expected", archive)
    with content, writing(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        with open(target, "wb") as file:
            shutil.copyfileobj(content, file)
    if target.stat().st_size != member.size:
        raise UserError(f"{member.name!r} in it is not as long as announced", archive)


def content_digest(folder: Path, patterns: Sequence[str]) -> str:
    """The sha256 of the list that `sha256sum` prints for the matching files, in the order of their paths."""
    paths = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    matching = [path for path in paths if any(fnmatchcase(path, pattern) for pattern in patterns)]
    listed = "".join(f"{sha256(folder / path)}  {path}\n" for path in matching)
    return hashlib.sha256(listed.encode()).hexdigest()
