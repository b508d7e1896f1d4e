"""Locks that give one process at a time access to a folder, also from several machines that share its file system.

The lock is one of the system's (flock), which ends with its process.
"""

from __future__ import annotations

import errno
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import BaseFileLock, FileLock, Timeout

from elmo_bench.system.errors import UserError
from elmo_bench.system.storage.disk import writing

NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP)


@contextmanager
def held(folder: Path, waiting: str) -> Iterator[bool]:
    """Creates and locks a folder; yields whether it had to wait, and then prints `waiting` first.

    The lock is released when its process ends, however that happens.

    Raises:
        UserError: the folder belongs to another user, its disk is full or read-only, or its file system has no locks.
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
def exclusive(folder: Path, message: str, wanted: bool = True) -> Iterator[None]:
    """Creates and locks a folder without waiting; with `wanted=False` does nothing.

    Raises:
        UserError: with this message, if another process holds the lock; else as in `held`.
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


def _lock(folder: Path) -> BaseFileLock:
    with writing(folder):
        folder.mkdir(mode=0o755, parents=True, exist_ok=True)  # the cache trusts no folder that others may write to
    return FileLock(folder / "lock", fallback_to_soft=False)


def _acquired(lock: BaseFileLock) -> bool:
    """Whether the lock could be taken at once."""
    try:
        with writing(lock.lock_file):
            lock.acquire(timeout=0)
    except Timeout:
        return False
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise
        raise UserError(
            "this file system has no locks (flock); put results_root and cache_root on one that has", lock.lock_file
        ) from None
    return True
