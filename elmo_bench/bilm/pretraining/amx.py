"""Calls the functions of `amx.cpp`: bfloat16 products of a training step and what is computed between them."""

from __future__ import annotations

import os
from ctypes import c_float
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from elmo_bench.nn.kernels import Kernels

SOURCE = Path(__file__).with_suffix(".cpp")
MULTIPLE = 32  # that all sizes are of


class Layer(NamedTuple):
    """One direction of one LSTM layer; the weights are bfloat16 and contiguous."""

    recurrent: Tensor  # (4C, P)
    projection: Tensor  # (P, C)
    bias: Tensor  # (4C,) float32
    clips: tuple[float, float]  # bounds on cells and outputs

    def sizes(self, gates: Tensor) -> tuple[int, int, int, int]:
        """Steps, rows, cells and width of the projection, from the gates (T, B, 4C)."""
        steps, rows, wide = gates.shape
        return steps, rows, wide // 4, len(self.projection)


class Amx:
    """The functions on contiguous tensors of the CPU, one thread each; Python's lock is free meanwhile.

    Raises:
        OSError: the library cannot be opened, or the system does not allow the instructions.
    """

    def __init__(self, path: str | os.PathLike[str]):
        self.kernels = Kernels(path)
        if self.kernels.library.permitted():
            raise OSError("the system has no room for the tile registers")

    def ahead(self, layer: Layer, gates: Tensor, cs: Tensor, hidden: Tensor, hs: Tensor) -> None:
        """One direction of a layer, forward.

        Args:
            layer: its weights.
            gates: (T, B, 4C) what the input gives to the gates; replaced by their pre-activations without bias.
            cs, hs: (T + 1, B, C) float32 and (T + 1, B, P), whose first are the states before; the others are written.
            hidden: (T, B, C), written: the outputs before the projection.
        """
        weights, clips = (layer.recurrent, layer.projection, layer.bias), map(c_float, layer.clips)
        self.kernels.call("recurrence_ahead", *weights, *layer.sizes(gates), *clips, gates, cs, hidden, hs)

    def back(self, layer: Layer, gates: Tensor, cs: Tensor, hs: Tensor, d_h: Tensor, d_bias: Tensor) -> None:
        """The gradients of `ahead`.

        Args:
            layer, cs, hs: as there.
            gates: (T, B, 4C) pre-activations; replaced by their gradients.
            d_h: (T, B, P) gradients of the outputs; replaced by those before the clip.
            d_bias: (4C,), written.
        """
        weights, clips = (layer.recurrent, layer.projection, layer.bias), map(c_float, layer.clips)
        self.kernels.call("recurrence_back", *weights, *layer.sizes(gates), *clips, gates, cs, hs, d_h, d_bias)

    def columns_product(self, x: Tensor, y: Tensor, out: Tensor) -> None:
        """Writes into `out` (I, J) float32 the transpose of x (N, I) times y (N, J), both bfloat16."""
        self.kernels.call("columns_product", x, y, len(x), *out.shape, out)

    def softmax(
        self, h: Tensor, weight: Tensor, correction: Tensor, true: Tensor, hits: tuple[Tensor, Tensor]
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The sampled softmax of the mean over rows, and its gradients without the part of the true logits.

        Args:
            h: (N, P) bfloat16.
            weight: (K, P) bfloat16, of the negatives.
            correction: (K,) to be added to the logits.
            true: (N,) logits of the targets.
            hits: rows, increasing, and columns of the logits to leave out.

        Returns:
            normalisers (N,), gradients of h (N, P), weight (K, P) and correction (K,).
        """
        normaliser, d_h, d_weight = torch.empty_like(true), torch.empty(h.shape), torch.empty(weight.shape)
        d_correction, work = torch.empty_like(correction), h.new_empty(len(h), len(weight))
        row, column = (hit.contiguous() for hit in hits)
        sizes, results = (len(row), *work.shape, h.shape[1]), (normaliser, d_h, d_weight, d_correction)
        self.kernels.call("softmax", h, weight, correction, true, row, column, *sizes, work, *results)
        return results


def fitting(*sizes: int) -> bool:
    """Whether the functions can compute with these sizes."""
    return not any(size % MULTIPLE for size in sizes)
