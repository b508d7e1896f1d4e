"""A source as a folder of checked files: from a user's folder, a mirror, or its public address.

From an archive only the needed files are unpacked, never outside their folder.
"""

from __future__ import annotations

import hashlib
import shutil
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import IO, NamedTuple

from elmo_bench.sources.download import Patience, download
from elmo_bench.sources.pages import Source
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage import limits
from elmo_bench.system.storage.disk import writing
from elmo_bench.system.storage.hashing import content_sha256, sha256
from elmo_bench.system.storage.integrity import UNREADABLE

Problem = str | None  # why a file is refused, or None


class SourcePlaces(NamedTuple):
    """The places of sources.

    Args:
        downloads: the folder for fetched and unpacked files, in the data folder.
        offline: a folder with archives and files named as in `Source.downloads`, or another data folder; then nothing
            is fetched.
        mirror: the address of such a folder on a server, which is tried first.
        patience: the limits of a download.
    """

    downloads: Path
    offline: Path | None = None
    mirror: str | None = None
    patience: Patience = Patience()


def obtain(source: Source, places: SourcePlaces) -> Path:
    """The folder of a source, with the content required by its configuration file."""
    if source.is_made:
        folder = made_folder(source, places)
        if folder is None:
            raise UserError(f"needed here: {_wrong_folder(source, places.downloads.parent)}", places.downloads.parent)
        return folder
    root = places.offline or places.downloads
    for folder in (root / source.folder, places.downloads / source.folder):
        if source.url is None and folder.is_dir() and _wrong_folder(source, folder) is None:
            return folder
    for name, (url, digest) in source.downloads().items():
        _fetch(name, url, digest, source, places)
    return (places.downloads if source.members else root) / source.folder


def made_folder(source: Source, places: SourcePlaces) -> Path | None:
    """The data folder with the files of other data sets: the user's, or the output folder."""
    folders = filter(None, (places.offline, places.downloads.parent))
    return next((folder for folder in folders if _wrong_folder(source, folder) is None), None)


def missing(sources: Iterable[Source], offline: Path) -> list[str]:
    """A line for each file that is missing in a user's folder."""
    return [
        f"{offline / name}: get it from {url}"
        for source in sources
        if not source.is_made
        if source.url is not None or not (offline / source.name).is_dir()
        for name, (url, _) in source.downloads().items()
        if not (offline / name).is_file()
    ]


def _fetch(name: str, url: str, digest: str | None, source: Source, places: SourcePlaces) -> None:
    """Fetches a file of a source if it is missing: from the mirror, if it has the right one, else from its address.

    An archive is unpacked.
    """

    def wrong(path: Path) -> Problem:
        problem = _wrong_file(path, digest)
        if problem or not source.members:
            return problem
        folder = places.downloads / source.folder
        shutil.rmtree(folder, ignore_errors=True)
        try:
            unpack(path, folder, source.members, source.limit)
        except UserError as error:
            return error.message
        return _wrong_folder(source, folder) if source.url is None else None

    path = (places.offline or places.downloads) / name
    problem = wrong(path) if path.is_file() else f"no such file; get it from {url}"
    if problem is None:
        return
    if places.offline is not None:
        raise UserError(problem, path)
    mirrored = [] if places.mirror is None else [f"{places.mirror.rstrip('/')}/{name}"]
    for address in (*mirrored, url):
        print(f"fetching {address}", file=sys.stderr, flush=True)
        try:
            download(address, path, source.limit, wrong, places.patience)
            break
        except UserError as error:
            if address == url:
                raise
            print(f"{error}; trying the public address", file=sys.stderr, flush=True)
            path.with_name(f"{path.name}.part").unlink(missing_ok=True)


def _wrong_file(path: Path, digest: str | None, hashed: Callable[[Path], str] = sha256) -> Problem:
    if digest is None or (found := hashed(path)) == digest:
        return None
    return f"not the file that conf/data names: its sha256 is {found[:12]}..., not {digest[:12]}..."


def _wrong_folder(source: Source, folder: Path) -> Problem:
    if source.members:
        same = content_digest(folder, source.members) == source.sha256
        return None if same else "its files are not those that conf/data names (another commit, or a file was changed)"
    for path, digest in source.files.items():
        if not (folder / path).is_file():
            return f"{path} is missing in it"
        if wrong := _wrong_file(folder / path, digest, content_sha256 if source.is_made else sha256):
            return f"{path}: {wrong}"
    return None


# Archives.


def unpack(archive: Path, folder: Path, patterns: Sequence[str], limit: int) -> None:
    """Unpacks the members that match one of the patterns, without permissions and owners.

    Args:
        archive: a .tar.gz of GitHub, whose top folder is left out, or a .zip.
        folder: for the unpacked files.
        patterns: patterns of paths, for `fnmatch`.
        limit: maximum number of unpacked bytes.
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
                raise UserError("contains more bytes than its file in conf/data allows", archive)
            parts = PurePosixPath(path).parts
            if not parts or path.startswith("/") or ".." in parts or "\\" in path or ":" in parts[0]:
                raise UserError(f"{path!r} in it would be unpacked outside its folder; nothing of it is used", archive)
            if content is None:
                raise UserError(f"{path!r} in it is a link or a device, not a file", archive)
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
    """The members except folders: path for the patterns, unpacked bytes, content; None for a link or device."""
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
