"""Time and memory of a call on a device, the same on a CPU and on a GPU."""

import gc
from collections.abc import Callable
from statistics import median
from typing import Any

import torch

from elmo_bench.speed.measuring import in_turn
from elmo_bench.system.machine import peak_mib

DTYPES = {"32-true": torch.float32, "bf16-mixed": torch.bfloat16}  # of products, by Lightning's name of a precision


def seconds(work: Callable[[], Any], rounds: int) -> float:
    """Of a call: the median of some rounds, after one that does not count."""
    _, *taken = in_turn({"work": work}, 1 + rounds)["work"]
    return median(taken)


def memory(work: Callable[[], Any], device: torch.device) -> float:
    """Peak MiB during a call: of a GPU what was allocated, on a CPU of the process since its start."""
    gc.collect()  # of what was measured before
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    work()
    return torch.cuda.max_memory_allocated(device) / 2**20 if device.type == "cuda" else peak_mib()
