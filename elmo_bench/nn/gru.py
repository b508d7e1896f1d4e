"""A bidirectional GRU over sentences of different lengths."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from elmo_bench.nn.lstm import both_directions, reverse
from elmo_bench.nn.numerics import wide


class BiGRU(nn.Module):
    """One layer, both directions, each sentence on its own: padding is never read.

    On a GPU by cuDNN. On a CPU, where torch has no fast GRU, by a loop that takes half the time of `nn.GRU`.

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
        with torch.autocast("cpu", enabled=False):  # a loop of small products, which 16 bits slow down
            return self._loop(wide(x), mask)

    def _loop(self, x: Tensor, mask: Tensor) -> Tensor:
        """The definition (Cho et al. 2014), a step of both directions at a time; W x of all words is one product.

        r, z = sigmoid(W x + b + U h + d)       n = tanh(W_n x + b_n + r * (U_n h + d_n))       h' = n + z * (h - n)
        """
        weight, bias, across, own = (
            torch.stack([getattr(layer, f"{name}_l0") for layer in (self.forward_gru, self.backward_gru)])
            for name in ("weight_ih", "bias_ih", "weight_hh", "bias_hh")
        )  # (2, 3H, D), (2, 3H), (2, 3H, H), (2, 3H)
        size, across, own = across.shape[2], across.mT, own[:, None]
        both = torch.stack([x, reverse(x, mask)]).transpose(1, 2).flatten(1, 2)  # (2, T * B, D)
        products = torch.baddbmm(bias[:, None], both, weight.mT).unflatten(1, (-1, len(x)))  # (2, T, B, 3H)
        h, states = products.new_zeros(2, len(x), size), []
        for of_rz, of_n in zip(*(part.unbind(1) for part in products.split([2 * size, size], dim=3)), strict=True):
            rz, n = torch.baddbmm(own, h, across).split([2 * size, size], dim=2)
            r, z = (of_rz + rz).sigmoid().chunk(2, dim=2)  # (2, B, H) each
            n = torch.addcmul(of_n, r, n).tanh()
            h = torch.lerp(n, h, z)
            states.append(h)
        ahead, back = torch.stack(states, dim=2)  # (B, T, H) each
        return torch.cat([ahead, reverse(back, mask)], dim=-1) * mask.unsqueeze(2)
