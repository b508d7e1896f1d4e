"""Reading text (UTF-8, also compressed) within limits; writing files atomically; checking who may write."""

from __future__ import annotations

import bz2
import fcntl
import glob
import gzip
import io
import lzma
import os
import secrets
import shutil
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from elmo_bench.system.errors import StrPath, UserError
from elmo_bench.system.storage import limits
from elmo_bench.system.storage.disk import writing

BUFFER = 1 << 20  # bytes read at once
ALONE = fcntl.LOCK_EX | fcntl.LOCK_NB  # an exclusive lock, without waiting for it
# By the ending of a packed file, behind that of its content; all take a path and "rb".
OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}
# Errors of reading a damaged file; NotImplementedError and RuntimeError are zipfile's, if it cannot unpack.
UNREADABLE = (OSError, EOFError, MemoryError, lzma.LZMAError, zlib.error, zipfile.BadZipFile, NotImplementedError,
              RuntimeError)  # fmt: skip


class _Unpacked(io.RawIOBase):
    """The content of a packed file, limited in proportion to the file's size; errors in reading it are `UserError`s.

    Args:
        source: the open content; closed with this one.
        path: the file.
    """

    def __init__(self, source: IO[bytes], path: Path):
        self.source, self.path, self.left = source, path, limits.unpacked(os.path.getsize(path))

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:  # type: ignore[override]
        with _readable(self.path):
            data = self.source.read(len(buffer))
        self.left -= len(data)
        if self.left < 0:
            raise UserError(f"unpacks to over {limits.RATIO} times its size; is this the right file?", self.path)
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self.source.close()
        super().close()


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except UNREADABLE as error:
        why = str(error) or type(error).__name__
        raise UserError(f"cannot be read to its end ({why}); is the file damaged?", path) from None


def open_bytes(path: StrPath) -> io.BufferedReader:
    """The bytes of a regular file, decompressed by its name's ending, within the limits of `limits`."""
    path = Path(path)
    limits.regular(path, missing=False)
    with _readable(path):
        if opener := OPENERS.get(path.suffix):
            return io.BufferedReader(_Unpacked(opener(path, "rb"), path), BUFFER)
        return io.BufferedReader(io.FileIO(path), BUFFER)


@contextmanager
def open_member(path: StrPath, choose: Callable[[list[str]], str | None]) -> Iterator[IO[bytes] | None]:
    """The bytes of one file in a .zip archive, within the same limits; None if `choose` selects no name."""
    path = Path(path)
    limits.regular(path, missing=False)
    with _readable(path):
        archive = zipfile.ZipFile(path)
    with archive:
        name = choose([name for name in archive.namelist() if not name.endswith("/")])
        if name is None:
            yield None
            return
        with _readable(path):
            member = io.BufferedReader(_Unpacked(archive.open(name), path), BUFFER)
        with member:
            yield member


def below(folder: Path) -> list[Path]:
    """The files of a folder and its subfolders, also linked ones, sorted by path. No folder is entered twice."""
    found: list[Path] = []
    entered = set()
    with _readable(folder):
        for place, folders, names in os.walk(folder, onerror=_raised, followlinks=True):
            folders.sort()
            if (real := os.path.realpath(place)) in entered:
                folders.clear()
                continue
            entered.add(real)
            found += [Path(place, name) for name in names]
    return sorted(filter(Path.is_file, found))


def _raised(error: OSError) -> None:
    raise error


def distinct(paths: Sequence[Path]) -> list[Path]:
    """The paths; a file that exists both plain and compressed is an error."""
    known: dict[Path, Path] = {}
    for path in paths:
        if (other := known.setdefault(plain(path), path)) != path:
            raise UserError(f"{other.name} is beside it, the same file plain or compressed; remove one", path)
    return list(paths)


@contextmanager
def open_text(path: StrPath) -> Iterator[Iterator[str]]:
    """The lines of a text file, decompressed if its name ends in .gz, .xz or .bz2."""
    with open_bytes(path) as file:
        yield decode(file, Path(path))


def plain(path: Path) -> Path:
    """The path without the ending of a compressed file."""
    return path.with_suffix("") if path.suffix in OPENERS else path


def ending(path: StrPath) -> str:
    """The last ending of a file's name in lower case, ignoring an ending for compression."""
    return plain(Path(path)).suffix.lower()


def numbered_lines(path: StrPath) -> Iterator[tuple[int, str]]:
    """The non-empty lines of a text file, without line ends, with their numbers from 1."""
    with open_text(path) as lines:
        for number, line in enumerate(lines, start=1):
            if line.strip():
                yield number, line.rstrip("\r\n")


def read_text(path: StrPath, line: bool = False) -> str:
    """The complete text of a file, which may be a single long line; with `line`, only its first line."""
    with open_bytes(path) as file:
        content = (file.readline if line else file.read)(limits.WHOLE + 1)
    if len(content) > limits.WHOLE:
        raise UserError(f"contains more than {limits.WHOLE >> 20} MiB; is this the right file?", path)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        number = content.count(b"\n", 0, error.start) + 1
        place = error.start - content.rfind(b"\n", 0, error.start)
        raise UserError(f"not UTF-8 ({error.reason} at byte {place})", path, number) from None


def decode(file: IO[bytes], path: Path) -> Iterator[str]:
    """The lines of an open file as strings; a line that is not UTF-8 or too long is an error."""
    for number, line in enumerate(iter(lambda: file.readline(limits.LINE + 1), b""), start=1):
        if len(line) > limits.LINE:
            raise UserError(f"a line of over {limits.LINE >> 20} MiB; is this the right file?", path, number)
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise UserError(f"not UTF-8 ({error.reason} at byte {error.start + 1})", path, number) from None


@contextmanager
def replacement(path: StrPath) -> Iterator[Path]:
    """A temporary path to write to, renamed to `path` at the end: an atomic write, even if the machine crashes.

    It is in the same folder, which must exist. After an error or an interrupt `path` is unchanged, and the temporary
    file is removed; the leftovers of a killed process are removed by the next process that writes the same file.

    Args:
        path: a new file, or a file to replace; for a link, its target is replaced.
    """
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file():
        kind = "a folder" if path.is_dir() else "a device or a pipe"
        raise UserError(f"is {kind}; give the name of a file", path)
    with writing(path), partial(path) as beside:
        mode = stat.S_IMODE(beside.stat().st_mode)
        yield beside
        beside.chmod(mode)  # a library may have put a file of its own there
        # Without these two, the file may be empty, or have its old name, after a power failure.
        with _opened(beside) as content:
            os.fsync(content)
        os.replace(beside, path)
        with suppress(PermissionError), _opened(path.parent) as names:  # may be written to, but not read
            os.fsync(names)


@contextmanager
def partial(path: Path, folder: bool = False) -> Iterator[Path]:
    """A new file, or folder, beside a path: only for this process, locked while in use, and removed afterwards.

    Leftovers of killed processes are removed first. Only the owner may write to it, whatever the umask, so files made
    from it can be trusted (`others`).
    """
    for other in path.parent.glob(f".{glob.escape(path.name)}~????????.partial"):
        with suppress(OSError), _opened(other) as left:
            fcntl.flock(left, ALONE)
            shutil.rmtree(other) if other.is_dir() else other.unlink()
    with ExitStack() as held:
        own = None
        while own is None or not own.exists():  # another process may have removed it before the lock
            own = path.with_name(f".{path.name}~{secrets.token_hex(4)}.partial")
            if folder:
                own.mkdir(0o755)
            else:
                os.close(os.open(own, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
            with suppress(OSError):  # not every disk has locks
                fcntl.flock(held.enter_context(_opened(own)), ALONE)
        try:
            yield own
        finally:
            with suppress(OSError):
                shutil.rmtree(own) if folder else own.unlink()


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    """The descriptor of a file or folder; an `OSError` where a link leads elsewhere."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)  # opening a pipe would wait
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def replacing(path: StrPath, mode: str = "w") -> Iterator[IO[Any]]:
    """A file to write, UTF-8 text ("w") or bytes ("wb"), that replaces `path` like `replacement`."""
    with replacement(path) as beside, open(beside, mode, encoding=None if "b" in mode else "utf-8") as file:
        yield file


def write_bytes(path: Path, content: bytes | memoryview) -> None:
    """Writes a file atomically, like `replacement`; its folder is created if necessary."""
    with writing(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
    with replacement(path) as beside:
        beside.write_bytes(content)


def write_text(path: Path, text: str) -> None:
    """Writes a UTF-8 text file like `write_bytes`."""
    write_bytes(path, text.encode())


# Whether somebody else could have written a file that this project makes again, with checksums that match.


def others(path: Path) -> str | None:
    """The reason why somebody else could have written a file or folder, for a message; None for a missing file.

    Also None if only users could have written it whose code runs here anyway: this user, root and the owner of this
    package.

    A group may write only if it is this user's private group, as on many systems; any group may read.
    """
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    if found.st_uid not in (os.geteuid(), 0, Path(__file__).stat().st_uid):
        return "it belongs to another user"
    if found.st_mode & stat.S_IWOTH or (found.st_mode & stat.S_IWGRP and found.st_gid != os.getegid()):
        return "other users may write to it (chmod go-w)"
    return None


def private(*paths: Path) -> bool:
    """Whether nobody else could have written any of these files."""
    return not any(map(others, paths))
