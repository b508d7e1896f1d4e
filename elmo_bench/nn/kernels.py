"""Calls the functions of `kernels.cpp`, the compiled part of training."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

import torch
from torch import Tensor

SOURCE = Path(__file__).with_suffix(".cpp")

Argument = Tensor | int | None | ctypes.c_double | ctypes.c_float


class Kernels:
    """The functions on tensors of the CPU, float32 where nothing else is said."""

    def __init__(self, path: str | os.PathLike[str]):
        self.library = ctypes.CDLL(os.fspath(path))

    def bernoulli(self, like: Tensor, p: float, scale: float) -> Tensor:
        """`scale` with probability p, else 0, in the shape of `like`: where `bernoulli_` would draw a one now."""
        out = torch.empty_like(like, memory_format=torch.contiguous_format)
        self._draw("bernoulli", p, scale, out)
        return out

    def relu_dropout(self, x: Tensor, p: float, scale: float) -> None:
        """Makes of x, which is contiguous, `x.relu() * bernoulli(x, p, scale)`."""
        self._draw("relu_dropout", p, scale, x)

    def relu_dropout_back(self, y: Tensor, d: Tensor, scale: float) -> Tensor:
        """The gradient of x, from the result of `relu_dropout` and its gradient."""
        out = torch.empty_like(y)
        self.call("relu_dropout_back", y, d.contiguous(), ctypes.c_float(scale), y.numel(), out)
        return out

    def relu_dropout_score_back(self, y: Tensor, d: Tensor, weight: Tensor, scale: float) -> Tensor:
        """The gradient of x (P, H), if the result y is multiplied by a weight (1, H): from the gradient d (P, 1)."""
        out = torch.empty_like(y)
        self.call("relu_dropout_score_back", y, d.contiguous(), weight, ctypes.c_float(scale), *y.shape, out)
        return out

    def _draw(self, name: str, p: float, scale: float, x: Tensor) -> None:
        """Calls a function that draws from torch's generator."""
        state = torch.get_rng_state()
        self.call(name, state, ctypes.c_double(p), ctypes.c_float(scale), x.numel(), x)
        torch.set_rng_state(state)

    def call(self, name: str, *arguments: Argument) -> None:
        """Calls a function; of a tensor it gets the address of the first number, of None 0."""
        if self.library[name](*map(_plain, arguments)):
            raise MemoryError(f"no memory for {name}")


def _plain(value: Argument) -> ctypes.c_void_p | ctypes.c_long | ctypes.c_double | ctypes.c_float:
    if value is None or isinstance(value, Tensor):
        return ctypes.c_void_p(None if value is None else value.data_ptr())
    return ctypes.c_long(value) if isinstance(value, int) else value
