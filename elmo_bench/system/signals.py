"""The end of a command by a signal: Ctrl-C, `kill`, or a closed terminal end it within seconds, in one line.

The first signal raises `KeyboardInterrupt` in the main thread, so that temporary files are removed and child processes
ended. If that has no effect, in a library call that takes long or swallows the exception, a thread ends the process
after `GRACE` seconds. Signals ignored when the process started (`nohup`, a background job) stay ignored.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

HEARD = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
IGNORED = (signal.SIG_IGN, None)
GRACE = 8.0  # seconds


class _Command:
    """The state of the running command."""

    running = False
    received: int | None = None  # the first signal
    advice = "run the command again"


def received() -> int | None:
    """The number of the signal that is ending the running command, if there is one."""
    return _Command.received


def line(number: int) -> str:
    """The line printed at the end."""
    name = "" if number == signal.SIGINT else f" ({signal.Signals(number).name})"
    return f"interrupted{name}; {_Command.advice}"


@contextmanager
def heard(advice: str = _Command.advice) -> Iterator[None]:
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


def at_once() -> None:
    """Before a command runs, while modules are imported, and after it, a signal ends the process with one line."""
    for number in HEARD:
        if signal.getsignal(number) not in IGNORED:
            signal.signal(number, lambda number, _: end(number))


def end(number: int) -> None:
    """Ends the process at once with the line and the exit status of a signal."""
    with suppress(OSError):
        os.write(2, f"{line(number)}\n".encode())
    os._exit(128 + number)


def _interrupt(number: int, frame: Any) -> None:
    if _Command.received is None:  # a second signal would interrupt the cleanup
        _Command.received = number
        raise KeyboardInterrupt


def _watch(reading: int, done: threading.Event) -> None:
    with open(reading, "rb", buffering=0) as pipe:  # read to its end, because a second signal is written into it, too
        while number := pipe.read(1):
            if number[0] in HEARD and signal.getsignal(number[0]) not in IGNORED and not done.wait(GRACE):
                end(_Command.received or number[0])
