"""Reading text (UTF-8, plain, .gz, .xz or .zst) with one clear error; writing files atomically."""

from __future__ import annotations

import fcntl
import glob
import gzip
import io
import lzma
import os
import secrets
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from os import PathLike
from pathlib import Path
from typing import IO, Any

from elmo_bench.system.disk import Refused, writing
from elmo_bench.system.errors import UserError


class _Zstandard(io.RawIOBase):
    """The content of a .zst file of any number of frames; OSError or EOFError if it is truncated or damaged."""

    def __init__(self, path: str | PathLike[str]):
        self.file, self.parts, self.rest = open(path, "rb"), None, b""  # noqa: SIM115 (closed with the stream)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:  # type: ignore[override]
        self.parts = self.parts or self._decompressed()
        while not self.rest:
            if (part := next(self.parts, None)) is None:
                return 0
            self.rest = part
        n = min(len(buffer), len(self.rest))
        buffer[:n], self.rest = self.rest[:n], self.rest[n:]
        return n

    def close(self) -> None:
        self.file.close()
        super().close()

    def _decompressed(self) -> Iterator[bytes]:
        import zstandard  # rarely needed

        frame, whole = None, True
        try:
            while data := self.file.read(1 << 18):
                while data:
                    frame = frame or zstandard.ZstdDecompressor().decompressobj()
                    yield frame.decompress(data)
                    whole, data = frame.eof, frame.unused_data
                    frame = None if whole else frame
        except zstandard.ZstdError as error:
            raise OSError(error) from None
        if not whole:
            raise EOFError("the last frame is cut short")


def _zstandard(path: str | PathLike[str], mode: str = "rb") -> io.BufferedReader:
    """Opens a .zst file as `gzip.open(path, "rb")` opens a .gz one."""
    return io.BufferedReader(_Zstandard(path), 1 << 20)


# By the suffix of a file's name; all take a path and "rb".
OPENERS: dict[str, Callable[..., IO[bytes]]] = {".gz": gzip.open, ".xz": lzma.open, ".zst": _zstandard}  # type: ignore[dict-item]


@contextmanager
def open_text(path: str | PathLike[str]) -> Iterator[Iterator[str]]:
    """The lines of a text file, decompressed if its name ends in .gz, .xz or .zst.

    Raises:
        UserError: the file is missing, cannot be read, is damaged, or a line is not UTF-8 (the line is named).
    """
    path = Path(path)
    if not path.is_file():
        raise UserError("no such file; check the path and data_root", path)
    try:
        with OPENERS.get(path.suffix, open)(path, "rb") as file:
            yield decode(file, path)
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        raise UserError(f"cannot be read to its end ({error}); is the file damaged?", path) from None


def read_text(path: str | PathLike[str]) -> str:
    """All of a text file. Raises `UserError` as `open_text` does."""
    with open_text(path) as lines:
        return "".join(lines)


def decode(lines: Iterable[bytes], path: Path) -> Iterator[str]:
    """UTF-8 lines as strings. Raises `UserError` naming the first line that is not UTF-8."""
    for number, line in enumerate(lines, start=1):
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise UserError(f"not UTF-8 ({error.reason} at byte {error.start + 1})", path, number) from None


@contextmanager
def replacement(path: str | PathLike[str], locked: bool = False) -> Iterator[Path]:
    """A temporary path to write to, renamed to `path` at the end: an atomic write, even if the machine crashes.

    It is in the same folder, which must exist. After an error or an interrupt `path` is unchanged, and the temporary
    file is removed; that of a killed process is removed by the next one that writes the same file.

    Args:
        path: of a file, new or to be replaced; of a link, the file that it leads to is replaced.
        locked: the caller holds a lock, so that no other process writes this file. The temporary file then always has
            the same name.

    Raises:
        Refused: the disk is full or read-only, the place belongs to another user, or is no place for a file.
    """
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file():
        kind = "a folder" if path.is_dir() else "a device or a pipe"
        raise Refused(f"is {kind}; give the name of a file", path)
    beside = path.with_name(f".{path.name}.partial")
    with writing(path), nullcontext(beside) if locked else _own(beside) as beside:
        try:
            yield beside
            _sync(beside)
            os.replace(beside, path)
        finally:
            with suppress(OSError):
                beside.unlink(missing_ok=True)


@contextmanager
def _own(common: Path) -> Iterator[Path]:
    """A temporary file of this process alone, locked as long as it is in use; those of killed processes go."""
    for other in common.parent.glob(f"{glob.escape(common.stem)}~????????.partial"):
        with suppress(OSError), open(other, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            other.unlink()
    with _claimed(common) as file:
        yield Path(file.name)


def _claimed(common: Path) -> IO[bytes]:
    """A new file with a random name, locked; tried again where another process removed it before it was locked."""
    while True:
        path = common.with_name(f"{common.stem}~{secrets.token_hex(4)}.partial")
        file = open(path, "xb")  # noqa: SIM115 (closed by the caller)
        with suppress(OSError):  # not every disk has locks
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if path.exists():
            return file
        file.close()


@contextmanager
def replacing(path: str | PathLike[str], mode: str = "w", locked: bool = False) -> Iterator[IO[Any]]:
    """A file to write, UTF-8 text ("w") or bytes ("wb"), that replaces `path` as `replacement` does."""
    with replacement(path, locked) as beside, open(beside, mode, encoding=None if "b" in mode else "utf-8") as file:
        yield file


def write_bytes(path: Path, content: bytes, locked: bool = False) -> None:
    """Writes a file atomically, `locked` as in `replacement`; its folder is made if necessary."""
    with writing(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path, "wb", locked) as file:
        file.write(content)


def write_text(path: Path, text: str) -> None:
    """Writes a UTF-8 text file as `write_bytes` does."""
    write_bytes(path, text.encode())


def _sync(path: Path) -> None:
    """Waits until the content of a file is on the disk: a renamed file may otherwise be empty after a power failure."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
