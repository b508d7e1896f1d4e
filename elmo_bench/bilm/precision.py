"""Products in bfloat16, `precision=bf16`: whether this machine has them.

The factors of all products are rounded to bfloat16, 8 significant bits; sums, states and the functions between the
products remain float32. With AMX they are several times as fast; with AVX512-BF16 alone they need not be.
"""

from __future__ import annotations

import sys

from elmo_bench.bilm.kernels.checked import kernels
from elmo_bench.system.errors import UserError

PRECISIONS = ("fp32", "bf16")


def granted(asked: str) -> str:
    """The precision to compute in: "bf16" if asked for and possible here; where it is not, one line on stderr says why.

    Raises:
        UserError: there is no such precision.
    """
    if asked not in PRECISIONS:
        raise UserError(f"precision is {asked!r}; known: {', '.join(PRECISIONS)}")
    if asked == "bf16" and kernels(half=True) is None:
        why = "no instructions for bfloat16 (AMX or AVX512-BF16), or no compiler that knows them"
        print(f"precision=bf16: {why}; computing in fp32", file=sys.stderr)
        return "fp32"
    return asked
