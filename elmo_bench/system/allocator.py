"""The C library's allocator: memory that training frees stays with the process."""

from __future__ import annotations

import ctypes
import sys

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # of glibc's malloc.h
LARGEST = 1 << 30  # bytes


def keep_freed() -> bool:
    """Keeps freed memory for the next step, where the C library is glibc; returns whether it does.

    By default, large tensors go back to the system when they are freed, and every step has their pages zeroed again:
    a tenth of an NER step.
    """
    if sys.platform != "linux":
        return False
    adjust = getattr(ctypes.CDLL(None), "mallopt", None)
    return adjust is not None and all(adjust(key, LARGEST) == 1 for key in (MMAP_THRESHOLD, TRIM_THRESHOLD))
