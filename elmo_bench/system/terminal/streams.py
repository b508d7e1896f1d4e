"""What a process tells of its progress: lines for its parent, or a bar."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TypeVar

LINES = "ELMO_BENCH_PROGRESS_LINES"  # set in the environment of a process whose progress its parent displays
T = TypeVar("T")
MARK = "\x1e"  # begins a line that replaces the previous one


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
