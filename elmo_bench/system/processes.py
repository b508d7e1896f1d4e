"""How processes of this project start and end.

A child runs this copy of the code, and ends with its parent, even if that is killed.

Ctrl-C, `kill` or a closed terminal end a command within seconds, in one line. The first signal raises
`KeyboardInterrupt` in the main thread, so that temporary files are removed and child processes ended. If that has no
effect, in a library call that takes long or swallows the exception, a thread ends the process after `GRACE` seconds.
Signals ignored when the process started (`nohup`, a background job) stay ignored.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from elmo_bench.system import start

PARENT = "ELMO_BENCH_PARENT"  # in the environment of a process that must end with its parent: the parent's id
POLL = 0.2  # seconds
PR_SET_PDEATHSIG = 1  # from <sys/prctl.h>
HEARD = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
IGNORED = (signal.SIG_IGN, None)
GRACE = 8.0  # seconds


# Children.


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


# Signals.


class _Command:
    """The state of the running command."""

    running = False
    received: int | None = None  # the first signal
    advice = "run the command again"


def signal_received() -> int | None:
    """The number of the signal that is ending the running command, if there is one."""
    return _Command.received


def signal_line(number: int) -> str:
    """The line printed at the end."""
    name = "" if number == signal.SIGINT else f" ({signal.Signals(number).name})"
    return f"interrupted{name}; {_Command.advice}"


@contextmanager
def signals_heard(advice: str = _Command.advice) -> Iterator[None]:
    """While the block runs, a signal raises `KeyboardInterrupt` in it, and the process ends after GRACE at the latest.

    Does nothing outside the main thread, or inside another such block.

    Args:
        advice: how to continue, the second half of the printed line.
    """
    if _Command.running or threading.current_thread() is not threading.main_thread():
        yield
        return
    _Command.running, _Command.received, _Command.advice = True, None, advice
    before = {number: signal.signal(number, _interrupt) for number in HEARD if signal.getsignal(number) not in IGNORED}
    reading, writing = os.pipe()  # so that a thread learns of a signal even during a long call in the main thread
    os.set_blocking(writing, False)
    wakeup, done = signal.set_wakeup_fd(writing, warn_on_full_buffer=False), threading.Event()
    threading.Thread(target=_watch, args=(reading, done), daemon=True).start()
    try:
        yield
    finally:
        for number, handler in before.items():  # first, because from here on a signal has nothing to interrupt
            signal.signal(number, handler)
        _Command.running = False
        signal.set_wakeup_fd(wakeup)
        done.set()
        os.close(writing)


def end_at_signals() -> None:
    """Before a command runs, while modules are imported, and after it, a signal ends the process with one line."""
    for number in HEARD:
        if signal.getsignal(number) not in IGNORED:
            signal.signal(number, lambda number, _: _end(number))


def _end(number: int) -> None:
    """Ends the process at once with the line and the exit status of a signal."""
    with suppress(OSError):
        os.write(2, f"{signal_line(number)}\n".encode())
    os._exit(128 + number)


def _interrupt(number: int, frame: Any) -> None:
    if _Command.received is None:  # a second signal would interrupt the cleanup
        _Command.received = number
        raise KeyboardInterrupt


def _watch(reading: int, done: threading.Event) -> None:
    with open(reading, "rb", buffering=0) as pipe:  # read to its end, because a second signal is written into it, too
        while number := pipe.read(1):
            if number[0] in HEARD and signal.getsignal(number[0]) not in IGNORED and not done.wait(GRACE):
                _end(_Command.received or number[0])
