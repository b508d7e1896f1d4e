"""Giving back what the C library's allocator keeps."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache


def trim() -> None:
    """Free pages back to the system, where the C library (glibc) knows how; elsewhere nothing.

    Tensors of ever new sizes leave holes that the next ones do not fit: without this, the memory of a long corpus is
    twice that of a short one.
    """
    if (release := _malloc_trim()) is not None:
        release(0)


@cache
def _malloc_trim() -> Callable[[int], int] | None:
    try:
        return ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError, TypeError):  # another C library, or an operating system without such a handle
        return None
