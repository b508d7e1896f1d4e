"""The recurrent encoders of the task models, each over sentences of different lengths: padding is never read."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from elmo_bench.nn.numerics import Linear, linear, wide
from elmo_bench.nn.packing import Packing
from elmo_bench.nn.recurrent import COUPLED, GRU, HIGHWAY, recurrence


class BiLSTM(nn.Module):
    """One layer, both directions, each sentence on its own: padding is never read.

    Args:
        input_size: D.
        hidden_size: H, per direction.
    """

    def __init__(self, input_size: int, hidden_size: int):
        super().__init__()
        self.forward_lstm = nn.LSTM(input_size, hidden_size, batch_first=True)
        self.backward_lstm = nn.LSTM(input_size, hidden_size, batch_first=True)
        self.output_size = 2 * hidden_size

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """(B, T, D), mask (B, T) bool with the words first -> (B, T, 2H), zeros at padding."""
        return both_directions(self.forward_lstm, self.backward_lstm, x, mask)


def both_directions(forward: nn.RNNBase, backward: nn.RNNBase, x: Tensor, mask: Tensor) -> Tensor:
    """Two layers of one direction over (B, T, D), mask (B, T) with the words first -> (B, T, 2H), zeros at padding.

    Sentences are left-aligned, and reversed for the backward layer, so padding always comes after the last word. On a
    CPU the layers compute in float32 also under autocast: not every processor supports a 16-bit LSTM.
    """
    if x.device.type == "cpu" and torch.is_autocast_enabled("cpu"):
        with torch.autocast("cpu", enabled=False):
            return both_directions(forward, backward, wide(x), mask)
    ahead, _ = forward(x)  # (B, T, H)
    back, _ = backward(reverse(x, mask))
    return torch.cat([ahead, reverse(back, mask)], dim=-1) * mask.unsqueeze(2)


def reverse(x: Tensor, mask: Tensor) -> Tensor:
    """(B, T, D) with the words of each sentence in reverse order and the padding unchanged."""
    position = torch.arange(mask.shape[1], device=mask.device)  # (T,)
    mirrored = torch.where(mask, mask.sum(1, keepdim=True) - 1 - position, position)  # (B, T)
    return x.gather(1, mirrored.unsqueeze(2).expand_as(x))


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
        with torch.autocast("cpu", enabled=False):  # products this small are slower in 16 bits
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


class CoupledBiLSTM(nn.Module):
    """The biLSTM of Lee et al. 2017: coupled gates, a learned initial state, one dropout mask per sequence.

    c' = (1 - i) c + i tanh(j) and h' = tanh(c') sigmoid(o), where i is after its sigmoid and (i, j, o) are linear in
    the word and in h. Words are given without padding, sentence after sentence. One product computes the inputs of all
    steps.

    Args:
        input_size: D.
        hidden_size: H, per direction.
        dropout: on the recurrent h, with one mask for the whole sequence.
    """

    def __init__(self, input_size: int, hidden_size: int, dropout: float = 0.0):
        super().__init__()
        self.hidden_size, self.dropout, self.output_size = hidden_size, dropout, 2 * hidden_size
        self.input = Linear(input_size, 6 * hidden_size)
        self.recurrent = nn.Parameter(torch.empty(2, hidden_size, 3 * hidden_size))
        self.initial = nn.Parameter(torch.empty(2, 2, 1, hidden_size))  # direction, (c, h)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Orthonormal blocks from h to each gate, Glorot's uniform values elsewhere."""
        for weight in self.input.weight.chunk(2):
            nn.init.xavier_uniform_(weight)
        nn.init.zeros_(self.input.bias)
        for direction in self.recurrent.data:
            for block in direction.split(self.hidden_size, dim=1):
                nn.init.orthogonal_(block)
        for state in self.initial.data.flatten(0, 1):
            nn.init.xavier_uniform_(state)

    def forward(self, x: Tensor, lengths: Sequence[int]) -> Tensor:
        """(N, D), the words of sentences of these lengths, one after another -> (N, 2H)."""
        packing = Packing(lengths, x.device)
        sizes, (forward, backward) = packing.batch_sizes, packing.orders
        kept = None
        if self.training and self.dropout:
            kept = F.dropout(self.initial.new_ones(2, len(lengths), self.hidden_size), self.dropout)  # (2, B, H)
        ahead, back = self.input(x).chunk(2, dim=1)  # (N, 3H) each
        products = torch.stack([ahead[forward[0]], back[backward[0]]])  # (2, N, 3H), step after step
        c, h = (state.expand(-1, sizes[0], -1) for state in self.initial.unbind(1))  # (2, B, H) each
        states, _ = recurrence(COUPLED, products, self.recurrent.mT, sizes, h, c, mask=kept)
        ahead, back = states  # (N, H) each
        return torch.cat([ahead[forward[1]], back[backward[1]]], dim=1)


GATES = 5  # i, f, o, r, j


class HighwayLSTM(nn.Module):
    """One layer with highway connections, reading its packed rows from the first step to the last.

    For input x_t and the layer's own output h_{t-1}, with s the logistic function (He et al. 2017, section 2.2; Zhang
    et al. 2016):

        i, f, o, r = s(W x_t + U h_{t-1} + b)       gates, r that of the highway
        j = tanh(W x_t + U h_{t-1} + b)
        c_t = i * j + f * c_{t-1}
        h_t = (r * o * tanh(c_t) + (1 - r) * V x_t) * m        m: one dropout mask for all steps

    Written by hand because no library's LSTM has the highway. W x and V x of all words are one product, before the loop
    over time. Batches are packed (`Packing`), so padding is never computed.

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

        Under autocast only the product over all words is in 16 bits: cells keep the precision of the weights.
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
        n_layers: number of layers.
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

        The lengths of the sentences and the positions of the N words in the flattened mask repeat the mask's content,
        because reading the mask would wait for a GPU.
        """
        packing = Packing(mask.sum(1).tolist() if lengths is None else lengths, x.device)
        (order, place), (mirrored, _) = packing.orders
        places = mask.flatten().nonzero().squeeze(1) if places is None else places
        words = places[order]  # (N,) positions in the padded batch, step after step
        turned = place[mirrored]  # (N,) the packed position of the mirrored word of the sentence
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
