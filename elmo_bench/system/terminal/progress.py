"""Progress of a process, printed as lines for the parent process that displays them (`jobs`)."""

from __future__ import annotations

import os

LINES = "ELMO_BENCH_PROGRESS_LINES"  # set in the environment of a process whose progress is displayed
MARK = "\x1e"  # begins a line that replaces the previous one


def tell(text: str) -> None:
    """Prints the progress of this process, if its parent displays it."""
    if os.environ.get(LINES):
        print(f"{MARK}{text}", flush=True)
