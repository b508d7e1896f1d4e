"""The standard streams, where one is closed, cannot show every character, or is read by another process; progress.

Python leaves a closed stream as None, on which `print` is silent and all else fails; and the next file that is opened
gets its number, so that what a library prints would go into that file.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterable
from typing import TypeVar

from elmo_bench.system.errors import UserError

LINES = "ELMO_BENCH_PROGRESS_LINES"  # set in the environment of a process whose progress its parent displays
T = TypeVar("T")
MARK = "\x1e"  # begins a line that replaces the previous one


class _Closed(io.TextIOWrapper):
    """In place of a closed stdout: what is printed is lost."""

    used = False

    def write(self, text: str) -> int:
        self.used = self.used or bool(text)
        return len(text)


def ready() -> None:
    """Makes all three usable, before any file is opened. Characters that one cannot show are escaped, as in `\\xb1`."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free: this one
    sys.stdin = sys.stdin or open(0, closefd=False)  # noqa: SIM115
    sys.stdout = sys.stdout or _Closed(io.FileIO(1, "w", closefd=False), "utf-8")
    sys.stderr = sys.stderr or open(2, "w", closefd=False)  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def check() -> None:
    """Called when a command is done; one that has printed to a closed stdout ends with an error."""
    if isinstance(sys.stdout, _Closed) and sys.stdout.used:
        raise UserError("done, but standard output is closed, so what it prints is lost; >/dev/null if that is wanted")


def tell(text: str) -> None:
    """Prints the progress of this process as a line for its parent (`run_jobs`), if that displays it."""
    if os.environ.get(LINES):
        print(f"{MARK}{text}", flush=True)


def tracked(items: Iterable[T], what: str, shown: bool | str = "auto") -> Iterable[T]:
    """The items one after another, while a bar on stderr says how many are done.

    Args:
        items: what is worked on.
        what: stands before the bar.
        shown: whether there is a bar; "auto": where stderr is a terminal.
    """
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    return track(items, what, console=console, disable=not (console.is_terminal if shown == "auto" else shown))
