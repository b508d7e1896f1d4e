"""Time and memory on a device, the same on a CPU and on a GPU, and how often a GPU is waited for."""

from __future__ import annotations

import gc
import json
import subprocess
import time
import warnings
from collections.abc import Callable
from statistics import median
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from elmo_bench.system import children
from elmo_bench.system.machine import peak_mib

DTYPES = {"32-true": torch.float32, "bf16-mixed": torch.bfloat16}  # of products, by Lightning's name of a precision


class Operations(TorchDispatchMode):
    """Counts the operations that compute something: the launches of a GPU."""

    def __init__(self) -> None:
        super().__init__()
        self.number = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.number += not func.is_view
        return func(*args, **(kwargs or {}))


def in_own_process(module: str, *arguments: object, limit: float | None = None) -> Any:
    """What a module of this package prints as JSON in its last line, run as a process, whose peak memory is its own.

    Args:
        module: its name.
        arguments: of its command line; None is an empty one.
        limit: seconds.

    Raises:
        subprocess.SubprocessError: the process failed, or did not end within the limit.
    """
    words = ["" if argument is None else str(argument) for argument in arguments]
    command = children.python(f"elmo_bench.speed.{module}", *words)
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=limit)
    return json.loads(done.stdout.splitlines()[-1])


def name(device: torch.device) -> str:
    """Of a GPU as its maker calls it; cpu."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type


def finished(device: torch.device, clock: Callable[[], float] = time.perf_counter) -> float:
    """The time in seconds when the device has done all that it was asked for."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return clock()


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
    """How often a call waits for a GPU, copies included; `standin.waits` counts the same on a CPU."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            work()
        finally:
            torch.cuda.set_sync_debug_mode("default")
    return sum("synchroniz" in str(each.message) for each in told)
