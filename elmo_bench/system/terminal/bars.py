"""A progress bar on stderr."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from rich.console import Console
from rich.progress import track

T = TypeVar("T")


def tracked(items: Iterable[T], what: str, shown: bool | str = "auto") -> Iterable[T]:
    """The items one after another, while a bar says how many are done.

    Args:
        items: what is worked on.
        what: stands before the bar.
        shown: whether there is a bar; "auto": where stderr is a terminal.
    """
    console = Console(stderr=True)
    return track(items, what, console=console, disable=not (console.is_terminal if shown == "auto" else shown))
