"""Whether somebody else could have written a file that this project makes again, with checksums that match."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def others(path: Path) -> str | None:
    """Why a file or folder may hold what somebody else wrote, in words; None where only those can write to it whose
    code runs here anyway: this user, root and the owner of this package. A missing one is nobody's.

    A group may write only if it is this user's own, as many systems give each user one; it may always read.
    """
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    if found.st_uid not in (os.geteuid(), 0, Path(__file__).stat().st_uid):
        return "it belongs to another user"
    if found.st_mode & stat.S_IWOTH or (found.st_mode & stat.S_IWGRP and found.st_gid != os.getegid()):
        return "other users may write to it (chmod go-w)"
    return None


def private(*paths: Path) -> bool:
    """Whether nobody else could have written any of these."""
    return not any(map(others, paths))
