"""One process at a time at a folder."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from elmo_bench.system.errors import UserError


@contextmanager
def held(folder: Path, waiting: str) -> Iterator[bool]:
    """Locks a folder, which is made; gives whether it had to wait, which `waiting` says.

    A process that dies, however, lets go of it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lock, waited = FileLock(folder / "lock"), False
    try:
        lock.acquire(timeout=0)
    except Timeout:
        print(waiting, file=sys.stderr, flush=True)
        waited = True
        lock.acquire()
    try:
        yield waited
    finally:
        lock.release()


@contextmanager
def alone(folder: Path, message: str, wanted: bool = True) -> Iterator[None]:
    """Locks a folder, which is made, or gives up at once; `wanted=False` does nothing.

    Raises:
        UserError: another process holds it, with this message.
    """
    if not wanted:
        yield
        return
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / "lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise UserError(message, folder) from None
    try:
        yield
    finally:
        lock.release()
