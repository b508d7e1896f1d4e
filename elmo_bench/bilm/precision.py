"""Products in bfloat16, `precision=bf16`: whether they gain anything here.

The factors of all products are rounded to bfloat16, 8 significant bits; sums, states and the functions between the
products remain float32. A processor with AMX is several times as fast with them, but not every one with AVX512-BF16
alone is faster at all: they are timed before use.
"""

from __future__ import annotations

import sys
import time

import torch

from elmo_bench.kernels.checked import kernels
from elmo_bench.kernels.library import Kernels
from elmo_bench.system.errors import UserError

PRECISIONS = ("fp32", "bf16")
GAIN = 1.2  # times as fast as in float32: the least that is worth the difference
ROWS, SIZE, REPEATS = 48, 1024, 7  # of the product that is timed


def granted(asked: str) -> str:
    """The precision to compute in: "bf16" if asked for and of use here; where it is not, one line on stderr says why.

    Raises:
        UserError: there is no such precision.
    """
    if asked not in PRECISIONS:
        raise UserError(f"precision is {asked!r}; known: {', '.join(PRECISIONS)}")
    if asked == "bf16" and (why := obstacle()) is not None:
        print(f"precision=bf16: {why}; computing in fp32", file=sys.stderr)
        return "fp32"
    return asked


def obstacle() -> str | None:
    """Why this machine should not multiply in bfloat16; None if it should."""
    half, full = kernels(half=True), kernels()
    if half is None or full is None:
        return "no instructions for bfloat16 (AMX or AVX512-BF16), or no compiler that knows them"
    gain = _seconds(full) / _seconds(half)
    return None if gain >= GAIN else f"bfloat16 products are only {gain:.1f} times as fast as fp32 on this processor"


def _seconds(kernels: Kernels) -> float:
    """Of one product; the best of some repeats."""
    x, bias = torch.ones(ROWS, SIZE), torch.zeros(SIZE)
    weight, seconds = kernels.packed(torch.ones(SIZE, SIZE)), []
    for _ in range(REPEATS):
        started = time.perf_counter()
        kernels.linear(x, SIZE, weight, bias)
        seconds.append(time.perf_counter() - started)
    return min(seconds)
