"""Locks that give one process at a time access to a folder, also from several machines that share its file system.

Where the system's locks hold between machines (`shared_disks`), the lock is one of these: it ends with its process.
Elsewhere it is a lease: a file that its holder renews, and that another process takes over once it has not been renewed
for LEASE seconds.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import BaseFileLock, FileLock, SoftFileLease, Timeout

from elmo_bench.system.errors import UserError
from elmo_bench.system.storage import shared_disks
from elmo_bench.system.storage.disk import writing

LEASE = 120.0  # seconds without a sign of life after which a lease is free; it is renewed three times in them


@contextmanager
def held(folder: Path, waiting: str) -> Iterator[bool]:
    """Creates and locks a folder; yields whether it had to wait, and then prints `waiting` first.

    The lock is released when its process ends, however that happens; a lease at most LEASE seconds later.

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


def _lock(folder: Path) -> BaseFileLock:
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        if shared_disks.locks_hold(folder):
            return FileLock(folder / "lock", fallback_to_soft=False)
    return SoftFileLease(folder / "lease", lease_duration=LEASE, on_compromise=lambda _: _lost(folder))


def _lost(folder: Path) -> None:
    """Ends this process: while it stood still, its lease ran out, and another process works in the folder."""
    print(f"error: {folder}: this process stood still, and another one has taken over", file=sys.stderr, flush=True)
    os.kill(os.getpid(), signal.SIGTERM)


def _acquired(lock: BaseFileLock) -> bool:
    """Whether the lock could be taken at once."""
    try:
        with writing(lock.lock_file):
            lock.acquire(timeout=0)
    except Timeout:
        return False
    return True
