"""Products with fixed weights: packed once for oneDNN where that works, else plain `F.linear`.

torch's own `F.linear` repacks a weight at every call and, on processors that are not Intel's, runs far below the
machine's rate on the few rows of an LSTM step. The operator used here is private to torch, so it is tried once,
compared with `F.linear`, and not used if it is missing or gives other results.
"""

from __future__ import annotations

from functools import cache

import torch
import torch.nn.functional as F
from torch import Tensor

LEAST = 16  # rows of a plain product: MKL computes fewer by other routines, which add up in another order


class FixedLinear:
    """x -> x W^T + b for a frozen float32 weight on the CPU; anything else goes through `F.linear`.

    On a CPU, a row's result has the same bits whatever the number of rows, from two on.

    Args:
        weight: (out, in).
        bias: (out,) or None.
        rows: the number of rows to optimise the packing for.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None = None, rows: int = 32):
        weight, self.bias = weight.detach().contiguous(), None if bias is None else bias.detach()
        self.packed = weight.device.type == "cpu" and weight.dtype == torch.float32 and _onednn_works()
        self.weight = torch.ops.mkldnn._reorder_linear_weight(weight, rows) if self.packed else weight

    def __call__(self, x: Tensor) -> Tensor:
        """(N, in) -> (N, out); N is at least 1."""
        if not self.packed:
            return F.linear(_filled(x), self.weight, self.bias)[: len(x)]
        return torch.ops.mkldnn._linear_pointwise(x, self.weight, self.bias, "none", [], "")

    def add_to(self, total: Tensor, x: Tensor) -> Tensor:
        """total + x W^T; the bias is not added."""
        if not self.packed:
            return torch.addmm(_filled(total), _filled(x), self.weight.t())[: len(x)]
        return torch.ops.mkldnn._linear_pointwise(x, total, self.weight, None, "add")


def _filled(x: Tensor) -> Tensor:
    """(N, D) -> (N or LEAST, D), with rows of zeros below."""
    return x if len(x) >= LEAST else F.pad(x, (0, 0, 0, LEAST - len(x)))


@cache
def _onednn_works() -> bool:
    """Whether the private operator exists here and computes what `F.linear` computes."""
    generator = torch.Generator().manual_seed(0)  # leaves the run's own random numbers alone
    x, weight, bias = (torch.randn(size, generator=generator) for size in ((5, 24), (40, 24), (40,)))
    try:
        packed = torch.ops.mkldnn._reorder_linear_weight(weight, 5)
        product = torch.ops.mkldnn._linear_pointwise(x, packed, bias, "none", [], "")
        summed = torch.ops.mkldnn._linear_pointwise(x, product, packed, None, "add")
    except (AttributeError, RuntimeError, NotImplementedError):
        return False
    expected = F.linear(x, weight, bias)
    return torch.allclose(product, expected, atol=1e-4) and torch.allclose(summed, 2 * expected - bias, atol=1e-4)
