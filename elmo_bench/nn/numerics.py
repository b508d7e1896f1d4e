"""Numerics of training: precision, norms of gradients and weights, and checks for finite numbers.

Under mixed precision (`trainer.precision=bf16-mixed`) autocast computes products in 16 bits. The scores that a loss or
a search compares, softmax and log-sum-exp stay in float32, on every device; without autocast nothing here changes a
result.
"""

from __future__ import annotations

import math
import sys
import timeit
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from typing import Any, NamedTuple, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.utils._triton import has_triton

Function = TypeVar("Function", bound=Callable[..., Any])
HALVES = (torch.bfloat16, torch.float16)
EVERY = 50  # values between two checks on a GPU, because each check waits for the device


# Precision.


@torch.no_grad()
def bfloat16_pays(place: torch.device) -> bool:
    """Whether a device multiplies bfloat16 faster than float32; a processor that emulates it is far slower."""
    if place.type != "cpu":
        return True

    def seconds(dtype: torch.dtype) -> float:
        x = torch.ones(256, 256, dtype=dtype)
        return min(timeit.repeat(lambda: torch.mm(x, x), number=1, repeat=3))

    return seconds(torch.bfloat16) < seconds(torch.float32)


def wide(x: Tensor) -> Tensor:
    """A 16-bit tensor as float32; any other unchanged."""
    return x.float() if x.dtype in HALVES else x


class ScoreLinear(nn.Linear):
    """A linear layer whose scores have the precision of its weights, also under autocast.

    For the last layer, which is narrow: 8 bits are too few to distinguish the scores of close classes, tags or words.
    """

    def forward(self, input: Tensor) -> Tensor:
        """(..., D) -> (..., K)."""
        with torch.autocast(input.device.type, enabled=False):
            return super().forward(input.to(self.weight.dtype))


def allow_tf32(allowed: bool) -> None:
    """Sets whether a GPU may compute products, LSTMs and convolutions of float32 in TF32, with 10 bits of fraction.

    By default torch's products do not use TF32, but its LSTMs and convolutions do.
    """
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = allowed


@contextmanager
def tf32(allowed: bool) -> Iterator[None]:
    """`allow_tf32` inside; afterwards restores the setting from outside.

    Torch has older and newer settings for it. An older setting cannot be read if the newer ones differ from it.
    """
    cuda, cudnn, cpu = torch.backends.cuda, torch.backends.cudnn, torch.backends.mkldnn
    places: Any = [cuda.matmul, cudnn.conv, cudnn.rnn, cpu.matmul] if hasattr(cudnn, "fp32_precision") else []
    newer = [place.fp32_precision for place in places]
    older = _read(torch.get_float32_matmul_precision, "highest"), _read(lambda: cudnn.allow_tf32, True)
    torch.set_float32_matmul_precision("highest")  # torch's default, on a CPU too
    allow_tf32(allowed)
    for place in places[:3]:
        place.fp32_precision = "tf32" if allowed else "ieee"
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(older[0])
        torch.backends.cudnn.allow_tf32 = older[1]
        for place, precision in zip(places, newer, strict=True):
            place.fp32_precision = precision


def _read(setting: Callable[[], Any], default: Any) -> Any:
    """An older setting, or torch's default for it if it cannot be read: then only the newer ones have been used."""
    try:
        return setting()
    except RuntimeError:
        return default


# Compiled functions.


def compiled(function: Function, device: torch.device) -> Function:
    """On a GPU, the function compiled into one or two kernels, if torch can; elsewhere the function itself."""
    return _compiled(function) if device.type == "cuda" and has_triton() else function


@cache
def _compiled(function: Any) -> Any:
    return torch.compile(function, dynamic=True)


def uncompiled(function: Function) -> Function:
    """Excludes a function from compilation by torch. Torch's own decorator would always import its compiler."""

    @wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        if torch.compiler.is_compiling() or "torch._dynamo" in sys.modules:
            return torch.compiler.disable(function)(*arguments, **named)
        return function(*arguments, **named)

    return call  # type: ignore[return-value]


# Norms of many tensors together.


def gradient_norm(parameters: Iterable[nn.Parameter]) -> Tensor:
    """The 2-norm of all gradients together, a scalar; not finite if one of them is not."""
    return nn.utils.get_total_norm([p.grad for p in parameters if p.grad is not None])


def clip(parameters: Iterable[nn.Parameter], norm: Tensor, bound: float) -> None:
    """Scales gradients of a known norm down to `bound`, as `clip_grad_norm_` does.

    On a CPU only if the norm is larger; elsewhere reading the norm would wait for the device.
    """
    if norm.device.type != "cpu" or bound / (norm + 1e-6) < 1:
        nn.utils.clip_grads_with_norm_(parameters, bound, norm)


def squared_norm(*weights: Tensor) -> Tensor:
    """The sum of the squares of all numbers, a scalar, whose gradient takes a single pass."""
    return _SquaredNorm.apply(*weights)  # type: ignore[return-value]


class _SquaredNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *weights: Tensor) -> Tensor:
        ctx.save_for_backward(*weights)
        return torch.stack([torch.linalg.vector_norm(weight) for weight in weights]).square().sum()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, ...]:
        return tuple(2 * gradients[0] * weight for weight in ctx.saved_tensors)


# Finite numbers.


class Fault(NamedTuple):
    """The first value that is not finite."""

    step: int
    what: str  # "loss", for example
    value: float  # nan, inf or -inf


class Watch:
    """Checks the values of every step: immediately on a CPU, several together on a GPU."""

    def __init__(self) -> None:
        self._kept: list[tuple[int, str, Tensor]] = []

    def add(self, step: int, what: str, value: Tensor) -> Fault | None:
        """Adds a scalar; returns the first fault since the last check, if a check is due."""
        self._kept.append((step, what, value.detach()))
        return self.look() if value.device.type == "cpu" or len(self._kept) >= EVERY else None

    def look(self) -> Fault | None:
        """The first fault among the values since the last check."""
        kept, self._kept = self._kept, []
        if not kept:
            return None
        values = torch.stack([value.float() for *_, value in kept]).tolist()
        known = ((step, what, value) for (step, what, _), value in zip(kept, values, strict=True))
        return next((Fault(*each) for each in known if not math.isfinite(each[-1])), None)


def all_finite(parameters: Iterable[Tensor]) -> bool:
    """Whether every number in these tensors is finite; waits for a GPU."""
    tests = [torch.isfinite(parameter.detach()).all() for parameter in parameters]
    return not tests or bool(torch.stack(tests).all())


# Large products in training, on a CPU by oneDNN, which on AMD's processors is twice as fast as the MKL of torch.mm.


@cache
def _by_onednn() -> bool:
    """Whether torch has this internal operation, and it computes the product."""
    x, weight = torch.linspace(-1, 1, 24).view(4, 6), torch.linspace(1, 2, 18).view(3, 6)
    try:
        found = torch.ops.mkldnn._linear_pointwise(x, weight, None, "none", [], "")
    except (AttributeError, RuntimeError, NotImplementedError):
        return False
    return torch.allclose(found, x @ weight.t(), atol=1e-5)


def product(a: Tensor, b: Tensor) -> Tensor:
    """(N, D), (D, K) -> (N, K), without gradients."""
    if a.device.type == "cpu" and a.dtype == b.dtype == torch.float32 and a.numel() and b.numel() and _by_onednn():
        a, b = (x if x.is_contiguous() or x.t().is_contiguous() else x.contiguous() for x in (a, b))  # else slow
        return torch.ops.mkldnn._linear_pointwise(a, b.t(), None, "none", [], "")
    return a @ b


def outer(a: Tensor, b: Tensor) -> Tensor:
    """(N, D), (N, K) -> (D, K), the sum of the rows' outer products; in float32, oneDNN is faster with the wider factor
    on the right."""
    swapped = a.shape[1] > b.shape[1] and a.dtype == torch.float32
    return product(b.t(), a).t() if swapped else product(a.t(), b)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`F.linear` with gradients: (..., D), (K, D), (K,) -> (..., K)."""
    plain = torch.compiler.is_compiling() or torch.is_autocast_enabled("cpu")
    if x.device.type == "cpu" and x.dtype == torch.float32 and not plain:
        out: Any = _Linear.apply(x.reshape(-1, weight.shape[1]), weight, bias)
        return out.view(*x.shape[:-1], len(weight))
    return F.linear(x, weight, bias)


class Linear(nn.Linear):
    """A linear layer that computes by `linear`."""

    def forward(self, input: Tensor) -> Tensor:
        """(..., D) -> (..., K)."""
        return linear(input, self.weight, self.bias)


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        out = product(x, weight.t())
        return out if bias is None else out.add_(bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (x, weight), (gradient,), needed = ctx.saved_tensors, gradients, ctx.needs_input_grad
        return (
            product(gradient, weight) if needed[0] else None,
            outer(gradient, x) if needed[1] else None,
            gradient.sum(0) if needed[2] else None,
        )
