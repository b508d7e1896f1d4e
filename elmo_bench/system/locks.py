"""Locks that give one process at a time access to a folder."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from elmo_bench.system.errors import UserError


@contextmanager
def held(folder: Path, waiting: str) -> Iterator[bool]:
    """Creates and locks a folder; yields whether it had to wait, and then prints `waiting` first.

    The lock is released when its process ends, however that happens.
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
    """Creates and locks a folder without waiting; with `wanted=False` does nothing.

    Raises:
        UserError: with this message, if another process holds the lock.
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
