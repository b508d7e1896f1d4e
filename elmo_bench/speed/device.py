"""What is measured on a device, a CPU or a GPU: its name, its clock, and a process of its own."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from typing import Any

import torch

from elmo_bench.system import children


def in_own_process(module: str, *arguments: object, limit: float | None = None) -> Any:
    """What a module prints as JSON in its last line, run as a process, whose peak memory is its own.

    Args:
        module: its dotted name, or its name in this package.
        arguments: of its command line; None is an empty one.
        limit: in seconds.

    Raises:
        subprocess.SubprocessError: the process failed, or did not end within the limit.
    """
    words = ["" if argument is None else str(argument) for argument in arguments]
    command = children.python(module if "." in module else f"elmo_bench.speed.{module}", *words)
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
