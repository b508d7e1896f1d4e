"""Opening text from outside: plain, .gz, .xz or .zst, always UTF-8, with one clear error."""

from __future__ import annotations

import gzip
import io
import lzma
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path

from elmo_bench.errors import UserError


class _Zstandard(io.RawIOBase):
    """The content of a .zst file of any number of frames; a truncated or damaged one is an OSError."""

    def __init__(self, path: Path):
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


def _zstandard(path: Path, mode: str) -> io.BufferedReader:
    return io.BufferedReader(_Zstandard(path), 1 << 20)


_OPENERS = {".gz": gzip.open, ".xz": lzma.open, ".zst": _zstandard}


@contextmanager
def open_text(path: str | PathLike[str]) -> Iterator[Iterator[str]]:
    """The lines of a text file, one after another, decompressed where its name ends in .gz, .xz or .zst.

    Raises:
        UserError: the file is missing, cannot be read, is damaged, or a line is not UTF-8 (the line is named).
    """
    path = Path(path)
    if not path.is_file():
        raise UserError("no such file; check the path and data_root", path)
    try:
        with _OPENERS.get(path.suffix, open)(path, "rb") as file:
            yield decode(file, path)
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        raise UserError(f"cannot be read to its end ({error}); is the file damaged?", path) from None


def decode(lines: Iterable[bytes], path: Path) -> Iterator[str]:
    """UTF-8 lines as strings. Raises `UserError` naming the line that is none."""
    for number, line in enumerate(lines, start=1):
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise UserError(f"not UTF-8 ({error.reason} at byte {error.start + 1})", path, number) from None
