"""Locks that give one process at a time access to a folder."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from elmo_bench.system.disk import writing
from elmo_bench.system.errors import UserError


@contextmanager
def held(folder: Path, waiting: str) -> Iterator[bool]:
    """Creates and locks a folder; yields whether it had to wait, and then prints `waiting` first.

    The lock is released when its process ends, however that happens.

    Raises:
        Refused: the folder belongs to another user, or its disk is full or read-only.
    """
    lock = _lock(folder)
    if waited := not _acquired(lock):
        print(waiting, file=sys.stderr, flush=True)
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
        Refused: as in `held`.
    """
    if not wanted:
        yield
        return
    lock = _lock(folder)
    if not _acquired(lock):
        raise UserError(message, folder)
    try:
        yield
    finally:
        lock.release()


def _lock(folder: Path) -> FileLock:
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    return FileLock(folder / "lock")


def _acquired(lock: FileLock) -> bool:
    """Whether the lock could be taken at once."""
    try:
        with writing(lock.lock_file):
            lock.acquire(timeout=0)
    except Timeout:
        return False
    return True
