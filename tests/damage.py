"""Damage to a file as a disk, a cable or a power failure does it: it is refused in one line, or read as it was."""

import os
import random
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from elmo_bench.system.errors import UserError

EDGE = 512  # bytes at either end of a file, where formats keep what describes the rest


def flipped(content: bytes, chance: random.Random) -> bytes:
    """The content with one other bit."""
    changed = bytearray(content)
    changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def refusals(path: Path, read: Callable[[], Any], flips: int = 0, lengths: Iterable[int] = ()) -> list[str]:
    """What is said of the file with a flipped bit, `flips` times, and of its first bytes, for each of the lengths.

    Where nothing is said, what is read is the same: a flipped bit may lie in a padding or a time.
    """
    whole, content, chance = read(), path.read_bytes(), random.Random(1)
    said = []
    for broken in [flipped(content, chance) for _ in range(flips)] + [content[:length] for length in lengths]:
        path.write_bytes(broken)
        try:
            assert read() == whole
        except UserError as error:
            said.append(str(error))
    path.write_bytes(content)
    assert not any("\n" in line for line in said)
    return said


def damage(path: Path, draw: random.Random) -> str:
    """Flips a bit, cuts the file short, or fills a part of it with zeros. Returns what was done.

    The time of the last change stays: a disk that forgets does not set it.
    """
    content, times = path.read_bytes(), path.stat()
    done, changed = "", content
    while changed == content:
        done, changed = draw.choices((_flipped, _cut, _zeros), (6, 2, 2))[0](content, draw)
    path.unlink()  # another process may have mapped the file
    path.write_bytes(changed)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    return f"{path.name}: {done}"


def _place(size: int, draw: random.Random) -> int:
    """A byte, every other time one at either end."""
    if draw.random() < 0.5:
        return draw.randrange(size)
    near = draw.randrange(min(EDGE, size))
    return draw.choice((near, size - 1 - near))


def _flipped(content: bytes, draw: random.Random) -> tuple[str, bytes]:
    place, bit = _place(len(content), draw), draw.randrange(8)
    return f"bit {bit} of byte {place}", content[:place] + bytes([content[place] ^ 1 << bit]) + content[place + 1 :]


def _cut(content: bytes, draw: random.Random) -> tuple[str, bytes]:
    place = draw.choice((0, _place(len(content), draw)))
    return f"cut to {place} of {len(content)} bytes", content[:place]


def _zeros(content: bytes, draw: random.Random) -> tuple[str, bytes]:
    place = _place(len(content), draw)
    length = min(draw.choice((16, 512, 4096)), len(content) - place)
    return f"{length} zeros from byte {place}", content[:place] + bytes(length) + content[place + length :]
