"""A bidirectional GRU over sentences of different lengths."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from elmo_bench.nn.kernels.products import linear
from elmo_bench.nn.lstm import both_directions
from elmo_bench.nn.numerics import wide
from elmo_bench.nn.packing import Packing
from elmo_bench.nn.recurrent import GRU, recurrence


class BiGRU(nn.Module):
    """One layer, both directions, each sentence on its own: padding is never read.

    On a GPU by cuDNN. On a CPU, where torch has no fast GRU, by `recurrence`.

    Args:
        input_size: D.
        hidden_size: H, per direction.
        deviation: standard deviation of the initial weights, drawn from a normal distribution truncated at two
            deviations, with zero biases (Clark and Gardner 2018); None: torch's own initialisation.
    """

    def __init__(self, input_size: int, hidden_size: int, deviation: float | None = None):
        super().__init__()
        self.forward_gru = nn.GRU(input_size, hidden_size, batch_first=True)
        self.backward_gru = nn.GRU(input_size, hidden_size, batch_first=True)
        self.output_size = 2 * hidden_size
        if deviation is not None:
            for weight in self.parameters():
                if weight.dim() == 2:
                    nn.init.trunc_normal_(weight, std=deviation, a=-2 * deviation, b=2 * deviation)
                else:
                    nn.init.zeros_(weight)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """(B, T, D), mask (B, T) bool with the words first -> (B, T, 2H), zeros at padding."""
        if x.device.type != "cpu":
            return both_directions(self.forward_gru, self.backward_gru, x, mask)
        with torch.autocast("cpu", enabled=False):  # small products, which 16 bits slow down
            return self._steps(wide(x), mask)

    def _steps(self, x: Tensor, mask: Tensor) -> Tensor:
        """Both directions; W x of all words is one product, and only the words of a batch are computed."""
        weight, bias, across, own = (
            torch.stack([getattr(layer, f"{name}_l0") for layer in (self.forward_gru, self.backward_gru)])
            for name in ("weight_ih", "bias_ih", "weight_hh", "bias_hh")
        )  # (2, 3H, D), (2, 3H), (2, 3H, H), (2, 3H)
        packing = Packing(mask.sum(1).tolist())
        places = mask.flatten().nonzero().squeeze(1)  # (N,)
        words = x.flatten(0, 1)[places]  # (N, D)
        both = zip(packing.orders, weight, bias, strict=True)
        products = torch.stack([linear(words[order], w, b) for (order, _), w, b in both])  # (2, N, 3H)
        start = products.new_zeros(2, len(x), across.shape[2])
        base = own[:, None].expand_as(products)
        states, _ = recurrence(GRU, base, across, packing.batch_sizes, start, start, products)
        ahead, back = (state[inverse] for state, (_, inverse) in zip(states, packing.orders, strict=True))
        out = x.new_zeros(mask.numel(), self.output_size)
        return out.index_copy(0, places, torch.cat([ahead, back], dim=1)).unflatten(0, mask.shape)
