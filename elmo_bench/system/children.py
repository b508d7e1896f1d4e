"""Python processes that run this copy of the code, and end with their parent, even if it is killed."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time

from elmo_bench.system import start

PARENT = "ELMO_BENCH_PARENT"  # in the environment of a process that must end with its parent: the parent's id
POLL = 0.2  # seconds
PR_SET_PDEATHSIG = 1  # from <sys/prctl.h>


def python(module: str, *arguments: str) -> list[str]:
    """The command line of a process that runs a module with this copy of the project (`start`)."""
    return [sys.executable, "-P", start.__file__, "-m", module, *arguments]


def environment() -> dict[str, str]:
    """Additions to the environment of a process that this one starts."""
    return {PARENT: str(os.getpid())}


def end_with_parent(parent: int | None = None) -> None:
    """Ends this process as soon as its parent has ended: on Linux the kernel does it, elsewhere a thread.

    Args:
        parent: the id of the process that started this one; None: from `environment`, if set there. It is compared
            with the current parent, since the original one may have ended before this call.
    """
    given = os.environ.pop(PARENT, None)  # processes that this one starts have another parent
    parent = parent or (int(given) if given and given.isdecimal() else None)
    if parent in (None, os.getpid()):  # a launcher that runs jobs in its own process, as with n_jobs=1
        return

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(POLL)
        os.kill(os.getpid(), signal.SIGKILL)

    if sys.platform != "linux" or ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0):
        threading.Thread(target=watch, daemon=True).start()
    elif os.getppid() != parent:  # it ended before the kernel was asked
        watch()
