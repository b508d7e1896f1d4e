"""Deep alternating LSTM with highway connections (He et al. 2017, section 2.2; Zhang et al. 2016).

For input x_t and a layer's own output h_{t-1}, with s the logistic function:

    i, f, o, r = s(W x_t + U h_{t-1} + b)       gates, r that of the highway
    j = tanh(W x_t + U h_{t-1} + b)
    c_t = i * j + f * c_{t-1}
    h_t = (r * o * tanh(c_t) + (1 - r) * V x_t) * m        m: one dropout mask for all steps (Gal and Ghahramani 2016)

The first layer reads forward, the next backward, and so on. Written by hand because no library's LSTM has the highway.
W x and V x of all words are one product, before the loop over time. Batches are packed: time-major rows, the longest
sentences first; step t holds only the sentences that reach it, so padding is never computed.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from elmo_bench.nn.kernels.products import linear
from elmo_bench.nn.packing import Packing
from elmo_bench.nn.recurrent import HIGHWAY, recurrence

GATES = 5  # i, f, o, r, j


class HighwayLSTM(nn.Module):
    """One layer, reading its packed rows from the first step to the last.

    Args:
        input_size: D.
        hidden_size: H.
    """

    def __init__(self, input_size: int, hidden_size: int):
        super().__init__()
        self.weight = nn.Parameter(torch.empty((GATES + 1) * hidden_size, input_size))  # W of i, f, o, r, j, then V
        self.bias = nn.Parameter(torch.zeros(GATES * hidden_size))
        self.recurrent = nn.Parameter(torch.empty(GATES * hidden_size, hidden_size))  # U
        for matrix in (*self.weight.data.chunk(GATES + 1), *self.recurrent.data.chunk(GATES)):
            nn.init.orthogonal_(matrix)
        self.bias.data.chunk(GATES)[1].fill_(1)  # f: cells remember at first

    def forward(self, x: Tensor, packing: Packing, mask: Tensor | None = None) -> Tensor:
        """(N, D) packed rows -> (N, H); a mask (B, H) multiplies every output.

        Under autocast only the product over all words takes its 16 bits: cells keep the precision of the weights.
        """
        hidden = self.recurrent.shape[1]
        bias = F.pad(self.bias, (0, hidden))  # V x has none
        products = linear(x, self.weight, bias).to(bias.dtype)  # (N, 6H): W x + b, then V x
        with torch.autocast(x.device.type, enabled=False):
            of_gates, of_highway = products[None].split([GATES * hidden, hidden], dim=2)
            start, sizes = products.new_zeros(1, packing.batch_sizes[0], hidden), packing.batch_sizes
            rows = None if mask is None else mask[None]
            (h,), _ = recurrence(HIGHWAY, of_gates, self.recurrent[None], sizes, start, start, of_highway, rows)
            return h if mask is None else h * mask[packing.sentences]


class AlternatingHighwayLSTM(nn.Module):
    """Layers that alternate between reading forward and backward, each sentence on its own.

    Args:
        input_size: D.
        hidden_size: H, of every layer.
        n_layers: how many.
        dropout: on a layer's outputs, for its next step and for the next layer; one mask for all steps.
    """

    def __init__(self, input_size: int, hidden_size: int = 300, n_layers: int = 8, dropout: float = 0.1):
        super().__init__()
        sizes = [input_size, *[hidden_size] * (n_layers - 1)]
        self.layers = nn.ModuleList(HighwayLSTM(size, hidden_size) for size in sizes)
        self.dropout, self.output_size = dropout, hidden_size

    def forward(
        self, x: Tensor, mask: Tensor, lengths: Sequence[int] | None = None, places: Tensor | None = None
    ) -> Tensor:
        """(B, T, D), mask (B, T) bool with the words first, one or more each -> (B, T, H), zeros at padding.

        The lengths of the sentences, and the places of the N words in the flattened mask, say what the mask says; to
        ask the mask, a GPU would be waited for.
        """
        packing = Packing(mask.sum(1).tolist() if lengths is None else lengths, x.device)
        (order, place), (mirrored, _) = packing.orders
        places = mask.flatten().nonzero().squeeze(1) if places is None else places
        words = places[order]  # (N,), their places in the padded batch, step after step
        turned = place[mirrored]  # (N,), the packed place of the word as far from the sentence's end
        h = x.flatten(0, 1)[words]  # (N, D)
        for number, layer in enumerate(self.layers):
            h = h if number == 0 else h[turned]
            h = layer(h, packing, self._kept(h, len(mask)))  # (N, H)
        if len(self.layers) % 2 == 0:
            h = h[turned]
        out = h.new_zeros(mask.numel(), self.output_size)
        return out.index_copy(0, words, h).unflatten(0, mask.shape)

    def _kept(self, x: Tensor, n_sentences: int) -> Tensor | None:
        """The dropout mask (B, H) of zeros and 1 / (1 - dropout) in training, else None."""
        if not self.training or self.dropout == 0:
            return None
        return F.dropout(x.new_ones(n_sentences, self.output_size), self.dropout)
