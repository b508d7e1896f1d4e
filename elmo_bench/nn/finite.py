"""Whether a training goes on with numbers: its losses, norms of gradients and weights are finite."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import torch
from torch import Tensor

EVERY = 50  # values between two looks at a GPU's, because each look waits for the device


class Fault(NamedTuple):
    """The first value that is not finite."""

    step: int
    what: str  # "loss", for example
    value: float  # nan, inf or -inf


class Watch:
    """Looks at the values of every step: at once on a CPU, a number of them together on a GPU."""

    def __init__(self) -> None:
        self._kept: list[tuple[int, str, Tensor]] = []

    def add(self, step: int, what: str, value: Tensor) -> Fault | None:
        """Takes a scalar; returns the first fault since the last look, if it is time to look."""
        self._kept.append((step, what, value.detach()))
        return self.look() if value.device.type == "cpu" or len(self._kept) >= EVERY else None

    def look(self) -> Fault | None:
        """The first fault among the values taken since the last look."""
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
