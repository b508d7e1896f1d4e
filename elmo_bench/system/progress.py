"""How far a process is, told in lines to the one that started it and shows them (`jobs`)."""

from __future__ import annotations

import os

LINES = "ELMO_BENCH_PROGRESS_LINES"  # set in the environment of a process whose lines are shown
MARK = "\x1e"  # begins a line that takes the place of the last one


def tell(text: str) -> None:
    """Prints where this process is, if another one wants to know."""
    if os.environ.get(LINES):
        print(f"{MARK}{text}", flush=True)
