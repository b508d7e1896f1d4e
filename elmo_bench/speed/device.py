"""Time and memory on a device, the same on a CPU and on a GPU, and how often a GPU is waited for."""

from __future__ import annotations

import gc
import time
import warnings
from collections.abc import Callable
from statistics import median
from typing import Any

import torch

from elmo_bench.speed.steps import Operations
from elmo_bench.system.machine import peak_mib

DTYPES = {"32-true": torch.float32, "bf16-mixed": torch.bfloat16}  # of products, by Lightning's name of a precision


def name(device: torch.device) -> str:
    """Of a GPU as its maker calls it; cpu."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type


def finished(device: torch.device) -> float:
    """The time in seconds when the device has done all that it was asked for."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


def seconds(work: Callable[[], Any], device: torch.device, rounds: int) -> float:
    """Of a call: the median of some rounds, after one that does not count."""
    work()
    taken = []
    for _ in range(rounds):
        started = finished(device)
        work()
        taken.append(finished(device) - started)
    return median(taken)


def memory(work: Callable[[], Any], device: torch.device) -> float:
    """Peak MiB during a call: of a GPU what was allocated, on a CPU of the process since its start."""
    gc.collect()  # of what was measured before
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    work()
    return torch.cuda.max_memory_allocated(device) / 2**20 if device.type == "cuda" else peak_mib()


def waits(work: Callable[[], Any], device: torch.device) -> int:
    """How often a call waits for a GPU; on a CPU, how many of its operations would wait for one."""
    if device.type != "cuda":
        with Operations() as operations:
            work()
        return operations.waits
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            work()
        finally:
            torch.cuda.set_sync_debug_mode("default")
    return sum("synchroniz" in str(each.message) for each in told)


def best_products(device: torch.device, size: int, rounds: int = 7) -> dict[str, float]:
    """FLOP a second of the product of two square matrices, by precision; float32 without TF32."""
    found = {}
    for precision, dtype in DTYPES.items():
        x, y = (torch.randn(size, size, device=device).to(dtype) for _ in range(2))
        found[precision] = 2 * size**3 / seconds(lambda x=x, y=y: torch.mm(x, y), device, rounds)
    return found


def copied_bytes(device: torch.device, size: int, rounds: int = 7) -> float:
    """Bytes a second that a copy of `size` float32 numbers on the device reads and writes."""
    x, y = torch.empty(size, device=device), torch.empty(size, device=device)
    return 8 * size / seconds(lambda: y.copy_(x), device, rounds)
