"""Memory that runs out, on the machine or on a device, told in one line."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from elmo_bench.system.errors import UserError

# In the messages of torch, CUDA, cuDNN, cuBLAS and the C++ library; none of them has a type of its own on a CPU.
SIGNS = ("out of memory", "can't allocate memory", "cannot allocate memory", "not enough memory", "alloc_failed",
         "bad_alloc")  # fmt: skip


def ran_out(error: BaseException) -> bool:
    """Whether an error says that there is no memory left."""
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    known = isinstance(error, RuntimeError) and any(sign in str(error).lower() for sign in SIGNS)
    return isinstance(error, MemoryError) or known


@contextmanager
def explained(doing: Callable[[], str], remedy: str) -> Iterator[None]:
    """Turns the errors of exhausted memory in its block into one line.

    Args:
        doing: says what was done, with the size of the batch, as in "training on 64 sentences"; called only then.
        remedy: which setting needs less memory.

    Raises:
        UserError: the memory ran out.
    """
    try:
        yield
    except Exception as error:
        if not ran_out(error):
            raise
        raise UserError(f"out of memory while {doing()}; {remedy}") from error
