"""The best rate of fp32 matrix products on this machine: the upper bound for the speed of the biLM."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from elmo_bench.kernels.packed_linear import FixedLinear

# (rows, in, out): a large square one, and the biLM's own (highway, input product, convolution).
SHAPES = ((2048, 2048, 2048), (512, 2048, 4096), (1024, 512, 16384), (8192, 112, 1024))
REPEATS = 7


class Rate(NamedTuple):
    """A product's speed."""

    flops: float  # per second
    kernel: str
    shape: tuple[int, int, int]


def rates(clock: Callable[[], float] = time.perf_counter, repeats: int = REPEATS) -> list[Rate]:
    """The best of several repeats for each shape, with `F.linear` and with packed weights; by `time.process_time` for
    one thread on a busy machine.
    """
    measured = []
    for shape in SHAPES:
        rows, inputs, outputs = shape
        x, weight = torch.randn(rows, inputs), torch.randn(outputs, inputs)
        packed = FixedLinear(weight, rows=rows)
        kernels: dict[str, Callable[[Tensor], Tensor]] = {"F.linear": lambda x, w=weight: F.linear(x, w)}
        if packed.packed:
            kernels["oneDNN, packed weights"] = packed
        for name, kernel in kernels.items():
            measured.append(Rate(2 * rows * inputs * outputs / _best(kernel, x, clock, repeats), name, shape))
    return measured


@torch.no_grad()
def _best(kernel: Callable[[Tensor], Tensor], x: Tensor, clock: Callable[[], float], repeats: int) -> float:
    """Seconds of the fastest repeat."""
    seconds = []
    for _ in range(repeats):
        started = clock()
        kernel(x)
        seconds.append(clock() - started)
    return min(seconds)
