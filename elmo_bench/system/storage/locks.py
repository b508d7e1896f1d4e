"""Locks that give one process at a time access to a folder, also among machines that share its file system.

They are locks of the system (flock), which end with their process.
"""

from __future__ import annotations

import errno
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from elmo_bench.system.errors import UserError
from elmo_bench.system.storage import limits
from elmo_bench.system.storage.disk import writing

NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP)


@contextmanager
def held(folder: Path, message: str, wait: bool = False) -> Iterator[bool]:
    """Creates and locks a folder; yields whether it had to wait.

    The lock is released when its process ends, however that happens.

    Args:
        folder: the folder to lock.
        message: shown if another process holds the lock: as the error or, before the wait, as a line on stderr.
        wait: whether to wait until the other process has released it.
    """
    with writing(folder):
        folder.mkdir(mode=0o755, parents=True, exist_ok=True)  # the cache trusts no folder that others may write to
    limits.regular(folder / "lock")
    lock, waited = FileLock(folder / "lock", fallback_to_soft=False), False
    try:
        with writing(lock.lock_file):
            lock.acquire(timeout=0)
    except Timeout:
        if not wait:
            raise UserError(message, folder) from None
        print(message, file=sys.stderr, flush=True)
        lock.acquire()
        waited = True
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise
        raise UserError(
            "this file system has no locks (flock); put results_root and cache_root on one with locks", lock.lock_file
        ) from None
    try:
        yield waited
    finally:
        lock.release()
