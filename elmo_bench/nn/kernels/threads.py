"""Threads that compute side by side on a CPU, each with its share of torch's threads."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from threading import local
from typing import TypeVar

import torch
from torch import Tensor

from elmo_bench.system.machine import cores

Result = TypeVar("Result")


def direction_threads(run: Callable[[int], Result], like: Tensor) -> list[Result]:
    """`run(0)` and `run(1)`, in parallel where that helps: without gradients, on a CPU with two or more threads."""
    threads = torch.get_num_threads()
    if torch.is_grad_enabled() or like.device.type != "cpu" or threads < 2:
        return [run(0), run(1)]
    return list(_pool(os.getpid(), threads).map(torch.no_grad()(run), range(2)))  # the mode is per thread


@cache
def _pool(process: int, threads: int) -> ThreadPoolExecutor:
    """One pool per process, since threads do not survive a fork."""
    pool = ThreadPoolExecutor(2, "bilm", lambda: torch.set_num_threads(threads // 2))
    list(pool.map(lambda _: time.sleep(0.01), range(2)))  # both start now
    torch.set_num_threads(threads)  # the calls above also changed the default of new threads
    return pool


# torch's threads wait for each other at the end of each operation. Beside a busy process that takes as long as the
# system leaves the core to it, some milliseconds, where a copy takes some microseconds.


class _Outside(local):
    threads: int | None = None  # torch's number outside of `torch_alone`


_outside = _Outside()


@contextmanager
def torch_alone() -> Iterator[None]:
    """For compiled functions and the copies around them: torch's operations inside take one thread."""
    before = torch.get_num_threads()
    _outside.threads = before
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
        _outside.threads = None


def most_threads() -> int:
    """Of compiled functions: as many as torch uses, but no more than can run at once, as they wait for each other."""
    return min(_outside.threads or torch.get_num_threads(), cores())


def copied(x: Tensor) -> Tensor:
    """A contiguous copy without gradients, on a CPU by one thread."""
    return torch.from_numpy(x.numpy().copy()) if x.device.type == "cpu" else x.contiguous()
