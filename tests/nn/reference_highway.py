"""A reference implementation of the alternating highway LSTM: padded batches, separate steps, autograd's gradients."""

import torch
import torch.nn.functional as F
from torch import Tensor

from elmo_bench.nn.highway_lstm import GATES, AlternatingHighwayLSTM, HighwayLSTM


def forward(model: AlternatingHighwayLSTM, x: Tensor, mask: Tensor, kept: list[Tensor | None] | None = None) -> Tensor:
    """The same as `model(x, mask)`: (B, T, D) -> (B, T, H). `kept` gives a dropout mask (B, H) for each layer."""
    for number, layer in enumerate(model.layers):
        assert isinstance(layer, HighwayLSTM)
        x = _layer(layer, x, mask, None if kept is None else kept[number], backward=number % 2 == 1)
    return x


def _layer(layer: HighwayLSTM, x: Tensor, mask: Tensor, kept: Tensor | None, backward: bool) -> Tensor:
    hidden = layer.recurrent.shape[1]
    h = c = x.new_zeros(len(x), hidden)  # (B, H)
    outputs = [h] * x.shape[1]
    for t in reversed(range(x.shape[1])) if backward else range(x.shape[1]):
        reached = mask[:, t : t + 1]  # (B, 1)
        read, highway = F.linear(x[:, t], layer.weight).split([GATES * hidden, hidden], dim=1)
        i, f, o, r, j = (read + layer.bias + F.linear(h, layer.recurrent)).chunk(GATES, dim=1)
        cell = torch.sigmoid(i) * torch.tanh(j) + torch.sigmoid(f) * c
        r = torch.sigmoid(r)
        out = r * torch.sigmoid(o) * torch.tanh(cell) + (1 - r) * highway
        out = out if kept is None else out * kept
        h, c = torch.where(reached, out, h), torch.where(reached, cell, c)
        outputs[t] = torch.where(reached, out, 0.0)
    return torch.stack(outputs, dim=1)
