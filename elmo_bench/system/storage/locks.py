"""Locks that give one process at a time access to a folder, also from several machines that share its file system.

The lock is one of the system's (flock), which ends with its process. With ELMO_BENCH_LOCKS=lease, for file systems
whose locks do not hold between machines, it is a lease: a file that its holder renews, and that another process takes
over once it has not been renewed for LEASE seconds.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import BaseFileLock, FileLock, SoftFileLease, Timeout

from elmo_bench.system.errors import UserError
from elmo_bench.system.storage.disk import writing

CHOICE = "ELMO_BENCH_LOCKS"  # flock or lease
NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP)
LEASE = 120.0  # seconds without a sign of life after which a lease is free; it is renewed three times in them


@contextmanager
def held(folder: Path, waiting: str) -> Iterator[bool]:
    """Creates and locks a folder; yields whether it had to wait, and then prints `waiting` first.

    The lock is released when its process ends, however that happens; a lease at most LEASE seconds later.

    Raises:
        Refused: the folder belongs to another user, or its disk is full or read-only.
        UserError: its file system has no locks, or ELMO_BENCH_LOCKS is neither flock nor lease.
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
        Refused, UserError: as in `held`.
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
    choice = os.environ.get(CHOICE) or "flock"
    if choice not in ("flock", "lease"):
        raise UserError(f"{CHOICE}={choice}: choose from flock, lease")
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    if choice == "flock":
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
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise
        raise UserError(f"this file system has no locks; {CHOICE}=lease does without", lock.lock_file) from None
    return True
