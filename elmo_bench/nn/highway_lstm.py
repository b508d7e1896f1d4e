"""Deep alternating LSTM with highway connections (He et al. 2017, section 2.2; Zhang et al. 2016), made fast.

For input x_t and a layer's own output h_{t-1}, with s the logistic function:

    i, f, o, r = s(W x_t + U h_{t-1} + b)       gates, r that of the highway
    j = tanh(W x_t + U h_{t-1} + b)
    c_t = i * j + f * c_{t-1}
    h_t = (r * o * tanh(c_t) + (1 - r) * V x_t) * m        m: one dropout mask for all steps (Gal and Ghahramani 2016)

The first layer reads forward, the next backward, and so on. Written by hand because no library's LSTM has the highway.
Everything that does not depend on the step before is one product over all steps: W x and V x, and in training the
gradients of x, W, V and U. A step is then one product and the cell, in compiled loops (`masked_loops.py`) or else in
torch's operations (`highway_steps.py`). For the latter, batches are packed: time-major rows, the longest sentences
first; step t holds only the sentences that reach it.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from elmo_bench.nn.compiled import loopable
from elmo_bench.nn.dropout import dropout
from elmo_bench.nn.highway_steps import GATES, Packed, Steps
from elmo_bench.nn.kernels import Kernels
from elmo_bench.nn.masked_loops import Layer, masked_loops
from elmo_bench.nn.precision import half, wide
from elmo_bench.nn.recurrent import HIGHWAY, Loops, Words


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

    def forward(self, x: Tensor, sizes: list[int], mask: Tensor | None = None) -> Tensor:
        """(N, D) packed rows, the sentences of each step -> (N, H); a mask (B, H) multiplies every output.

        Under autocast only the products over all words take its 16 bits: cells keep the precision of the weights.
        """
        products = half(x)
        with torch.autocast(x.device.type, enabled=False):
            return Steps.apply(x.to(self.bias.dtype), self.weight, self.bias, self.recurrent, mask, sizes, products)

    def by_loops(self, layer: Layer, x: Tensor, mask: Tensor | None) -> Tensor:
        """(N, D) words without padding -> (N, H), by compiled loops; a mask (B, H), the longest sentences first."""
        bias, kept = F.pad(self.bias, (0, self.recurrent.shape[1])), None if mask is None else mask[None]
        return masked_loops(layer, x, self.weight, bias, self.recurrent[None], mask=kept)


class AlternatingHighwayLSTM(nn.Module):
    """Layers that alternate between reading forward and backward, each sentence on its own: padding is never computed.

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

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """(B, T, D), mask (B, T) bool with the words first, one or more each -> (B, T, H), zeros at padding."""
        if (kernels := loopable(x)) is not None:
            return self._by_loops(kernels, x, mask)
        packed = Packed.of(mask)
        h = x.flatten(0, 1)[packed.places]  # (N, D)
        for number, layer in enumerate(self.layers):
            h = h if number == 0 else h[packed.turned]
            h = layer(h, packed.sizes, self._kept(h, len(mask)))  # (N, H)
        if len(self.layers) % 2 == 0:
            h = h[packed.turned]
        return self._padded(h, packed.places, mask)

    def _by_loops(self, kernels: Kernels, x: Tensor, mask: Tensor) -> Tensor:
        """`forward` in compiled loops, which read the words where they stand."""
        words = Words.of(mask)
        loops = Loops(HIGHWAY, kernels, words._replace(places=words.rows), half(x))
        h = wide(x.flatten(0, 1).index_select(0, words.among))  # (N, D)
        for number, layer in enumerate(self.layers):
            assert isinstance(layer, HighwayLSTM)
            h = layer.by_loops(Layer(loops, (number % 2,)), h, self._kept(h, len(mask)))  # (N, H)
        return self._padded(h, words.among, mask)

    def _padded(self, h: Tensor, places: Tensor, mask: Tensor) -> Tensor:
        """(N, H) and the words' places in the padded batch, flattened -> (B, T, H)."""
        out = h.new_zeros(mask.numel(), self.output_size)
        return out.index_copy(0, places, h).unflatten(0, mask.shape)

    def _kept(self, x: Tensor, n_sentences: int) -> Tensor | None:
        """The dropout mask (B, H) of zeros and 1 / (1 - dropout) in training, else None."""
        if not self.training or self.dropout == 0:
            return None
        return dropout(x.new_ones(n_sentences, self.output_size), self.dropout)
