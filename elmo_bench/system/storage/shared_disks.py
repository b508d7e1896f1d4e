"""Whether a file system's locks (flock) hold between the machines that share it; asked once for each file system."""

from __future__ import annotations

import fcntl
import os
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import NamedTuple

from elmo_bench.system.errors import UserError

CHOICE = "ELMO_BENCH_LOCKS"  # flock or lease: what the user knows of the file system
MOUNTS = Path("/proc/self/mountinfo")


class Mount(NamedTuple):
    """A mounted file system: its folder, kind and options."""

    folder: str
    kind: str
    options: frozenset[str]


def locks_hold(folder: Path) -> bool:
    """Whether flock in this folder excludes processes of all machines; where it does not, one line says so.

    Raises:
        UserError: the variable ELMO_BENCH_LOCKS is neither flock nor lease.
        OSError: the folder cannot be written to.
    """
    choice = os.environ.get(CHOICE)
    if choice not in (None, "", "flock", "lease"):
        raise UserError(f"{CHOICE}={choice}: choose from flock, lease")
    return choice == "flock" if choice else _checked(folder.stat().st_dev, folder)


_known: dict[int, bool] = {}


def _checked(device: int, folder: Path) -> bool:
    if device not in _known:
        why = _reason(mount_of(folder.resolve(), _mounts())) or _refused(folder)
        if why:
            print(f"{folder}: {why}; locked by files that are renewed ({CHOICE}=flock to change)", file=sys.stderr)
        _known[device] = why is None
    return _known[device]


def _reason(mount: Mount | None) -> str | None:
    """Why the locks of a file system do not reach other machines, by its kind and options; None: they do."""
    if mount is None:
        return None
    kind, options = mount.kind, mount.options
    if kind == "lustre" and "flock" not in options:
        return "locks of this Lustre do not hold between machines (mounted without the option flock)"
    if kind.startswith("nfs") and options & {"nolock", "local_lock=all", "local_lock=flock"}:
        return "locks of this NFS do not hold between machines (mounted with nolock or local_lock)"
    if kind in ("beegfs", "fuse.sshfs"):
        return f"locks of {kind} may not hold between machines"
    return None


def _refused(folder: Path) -> str | None:
    """Why flock fails here, tried on a temporary file; None: it works."""
    with tempfile.TemporaryFile(dir=folder) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            return f"this file system has no locks ({error.strerror})"
    return None


def mount_of(path: Path, mounts: list[Mount]) -> Mount | None:
    """The mount in which a path lies: of those above it the deepest, and of equal ones the last."""
    above = [mount for mount in mounts if path.is_relative_to(mount.folder)]
    return max(reversed(above), key=lambda mount: len(mount.folder), default=None)


@cache
def _mounts() -> list[Mount]:
    try:
        lines = MOUNTS.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:  # not on Linux
        return []
    return [parsed(line) for line in lines]


def parsed(line: str) -> Mount:
    """A line of mountinfo: `36 35 98:0 / /data rw,noatime shared:1 - nfs4 server:/ rw,local_lock=none`."""
    before, _, after = line.partition(" - ")
    folder, own = before.split()[4:6]
    kind, _, shared = after.split()[:3]
    return Mount(folder.replace("\\040", " "), kind, frozenset([*own.split(","), *shared.split(",")]))
