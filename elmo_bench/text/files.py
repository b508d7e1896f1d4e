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
    """A .zst file's content; what is wrong with it is an OSError, as with the other formats."""

    def __init__(self, path: Path):
        import zstandard  # rarely needed

        self.error = zstandard.ZstdError
        file = open(path, "rb")  # noqa: SIM115 (closed with the stream)
        self.stream = zstandard.ZstdDecompressor().stream_reader(file, closefd=True, read_across_frames=True)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:  # type: ignore[override]
        try:
            return self.stream.readinto(buffer)
        except self.error as error:
            raise OSError(error) from None

    def close(self) -> None:
        self.stream.close()
        super().close()


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
