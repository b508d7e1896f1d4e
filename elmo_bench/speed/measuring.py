"""How speed and memory are measured: calls in turn, and functions in a process of their own."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from timeit import timeit
from typing import Any, TypeVar

import torch
from torch.utils.benchmark import timer

from elmo_bench.system import children
from elmo_bench.system.storage import json_text
from elmo_bench.system.storage.files import write_text
from elmo_bench.system.terminal import console

Name = TypeVar("Name")


def in_turn(
    ways: Mapping[Name, Callable[[], Any]], rounds: int, clock: Callable[[], float] = timer
) -> dict[Name, list[float]]:
    """The seconds of calls, each called once a round, so that the load of the machine affects all of them alike.

    Args:
        clock: torch's, which waits for a GPU; `time.process_time` where other programs are to count little.
    """
    taken = [[timeit(way, timer=clock, number=1) for way in ways.values()] for _ in range(rounds)]
    return {name: [seconds[i] for seconds in taken] for i, name in enumerate(ways)}


def in_own_process(function: Callable[..., Any], *arguments: Any, limit: float | None = None) -> Any:
    """What a function of a module returns in a process of its own, whose peak memory is its own.

    Args:
        arguments: these and the answer are JSON.
        limit: in seconds.

    Raises:
        subprocess.SubprocessError: the process failed, or did not end within the limit.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "call.json"
        write_text(file, json_text.dumps([function.__module__, function.__name__, arguments]))
        command = children.python(__name__, str(file))
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=limit)
    return json.loads(done.stdout.splitlines()[-1])


def device_name(device: torch.device) -> str:
    """Of a GPU as its maker calls it; cpu."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type


def _answer(file: str) -> None:
    module, name, arguments = json_text.read(file)
    print(json_text.dumps(getattr(import_module(module), name)(*arguments)))


if __name__ == "__main__":
    console.report(lambda: _answer(sys.argv[1]))
