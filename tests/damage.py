"""Damage to a file: what reads it refuses it in one line, or reads what the file held."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from elmo_bench.system.errors import UserError


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
