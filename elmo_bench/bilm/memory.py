"""Returns free memory to the system."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache


def trim() -> None:
    """Returns free pages to the system, if the C library (glibc) supports it; otherwise does nothing.

    Tensors of constantly changing sizes leave gaps that the next ones do not fit: without this, a long corpus takes
    twice as much memory as a short one.
    """
    if (release := _malloc_trim()) is not None:
        release(0)


@cache
def _malloc_trim() -> Callable[[int], int] | None:
    try:
        return ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError, TypeError):  # another C library, or an operating system without such a handle
        return None
