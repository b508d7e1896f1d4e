"""The token encoder in training: one product computes all filters on all windows of the distinct words.

A window of w characters is the beginning of a window of the widest filter, so that one product with zero-padded filters
covers all widths. Words are sorted by length, longest first, and windows by start position: the maximum over a word's
windows is then a running maximum over slices, and the backward pass only needs to know which window won.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from elmo_bench.bilm.characters import PADDING, character_table, used_characters
from elmo_bench.bilm.encoder import TokenEncoder
from elmo_bench.bilm.pretraining.pointwise import EAGER, Pointwise


class Windows(NamedTuple):
    """The windows of some words, sorted by position: all windows at a first character, then at a second, ..."""

    characters: Tensor  # (N, W) int32 ids
    starts: list[int]  # how many windows begin at each start; never increasing
    needed: list[int]  # how many of these the words have; the others are of padding
    filters: list[int]  # how many filters, narrowest first, fit into a word at each start

    def to(self, device: torch.device) -> Windows:
        return self._replace(characters=self.characters.to(device, non_blocking=True))


# Numbers of words and windows are rounded up to multiples of this for products in bfloat16: oneDNN compiles one for
# every new size, in about 5 ms, which took a third of an update. In float32 nothing is compiled, and nothing rounded.
FEW_SIZES = 32


class WordTypes:
    """Character ids of every word type of a corpus.

    Args:
        types: the words.
        encoder: of the biLM that reads them.
        multiple: what the numbers of words and of windows at each start are rounded up to.
    """

    def __init__(self, types: list[str], encoder: TokenEncoder, multiple: int = 1):
        self.multiple = multiple
        options = encoder.options
        self.length, self.shapes = options.max_characters, options.filters
        self.width = max(width for width, _ in options.filters)
        table = character_table(types, self.length)  # (types, K)
        self.used = used_characters(table)
        beyond = np.full((len(table), self.width - 1), PADDING + 1, dtype=table.dtype)  # for narrow filters at the end
        self.ids = np.concatenate([table, beyond], axis=1)

    def distinct(self, *inputs: np.ndarray) -> tuple[Windows, list[np.ndarray]]:
        """Windows of the distinct types of the inputs, longest first, and each input's indices into these words.

        A word's windows are those that contain one of its characters, and a single one of padding only for all others.
        """
        types, index = np.unique(np.concatenate([x.reshape(-1) for x in inputs]), return_inverse=True)
        order = np.argsort(-self.used[types], kind="stable")
        types, index = types[order], np.argsort(order)[index]
        pieces = np.split(index, np.cumsum([x.size for x in inputs])[:-1])
        return self.windows(types), [p.reshape(x.shape) for p, x in zip(pieces, inputs, strict=True)]

    def windows(self, types: np.ndarray) -> Windows:
        """Windows of words that are sorted by length, longest first.

        Up to the next multiples of `multiple`, repetitions of the last word and further windows of padding are added,
        which change neither a vector nor a gradient.
        """
        numbers = np.minimum(self.used[types] + 1, self.length)  # windows of each word
        needed = [int((numbers > start).sum()) for start in range(int(numbers[0]))]
        types = np.pad(types, (0, -len(types) % self.multiple), mode="edge")
        starts = [n + -n % self.multiple for n in needed]
        words = np.concatenate([types[:n] for n in starts])  # (N,)
        first = np.repeat(np.arange(len(starts)), starts)  # (N,)
        ids = self.ids[words[:, None], first[:, None] + np.arange(self.width)]  # (N, W)
        fitting = [sum(n for width, n in self.shapes if start + width <= self.length) for start in range(len(starts))]
        return Windows(torch.from_numpy(ids.astype(np.int32)), starts, needed, fitting)


class _Maxima(torch.autograd.Function):
    """Embedding, product and maximum over the windows of each word."""

    @staticmethod
    def forward(ctx, characters, filters, windows, dtype, pointwise):  # type: ignore[override]
        embedded, weight = characters.to(dtype), filters.to(dtype)  # (262, D), (F, W * D)
        x = F.embedding(windows.characters, embedded).flatten(1)  # (N, W * D)
        numbers = torch.arange(len(windows.starts), dtype=dtype, device=weight.device)
        best = at = weight.new_empty(0)  # (U, F); the number of the winning window is small and so exact in any dtype
        for step, (piece, fitting) in enumerate(zip(x.split(windows.starts), windows.filters, strict=True)):
            values = piece @ weight.t()  # (n, F)
            if step == 0:
                best, at = values, torch.zeros_like(values)
                continue
            if fitting < len(weight):
                values[:, fitting:] = float("-inf")
            n = len(piece)
            pointwise.pool(best[:n].view(-1), at[:n].view(-1), values.view(-1), numbers[step])
        ctx.save_for_backward(x, weight, at, numbers)
        ctx.windows, ctx.pointwise, ctx.shape = windows, pointwise, characters.shape
        return best

    @staticmethod
    @once_differentiable
    def backward(ctx, d_best):  # type: ignore[override]
        x, weight, at, numbers = ctx.saved_tensors
        starts, d_best = ctx.windows.starts, d_best.contiguous()
        d_filters, d_x = torch.zeros(weight.shape, device=x.device), torch.empty_like(x)
        d_values = torch.empty_like(d_best)  # (U, F)
        for step, (piece, d_piece) in enumerate(zip(x.split(starts), d_x.split(starts), strict=True)):
            n = len(piece)
            won = d_values[:n]
            ctx.pointwise.unpool(d_best[:n].view(-1), at[:n].view(-1), numbers[step], won.view(-1))
            d_filters += won.t() @ piece  # (F, W * D)
            torch.mm(won, weight, out=d_piece)
        d_characters = torch.zeros(ctx.shape, device=x.device)
        d_characters.index_add_(0, ctx.windows.characters.view(-1), d_x.view(-1, ctx.shape[1]).float())
        return d_characters, d_filters, None, None, None


def encode(
    encoder: TokenEncoder, windows: Windows, dtype: torch.dtype = torch.float32, pointwise: Pointwise = EAGER
) -> Tensor:
    """(U, P) vectors of words in `dtype`, with gradients for the encoder's parameters (paper, section 3.4).

    Equal to `TokenEncoder.forward` up to rounding. Products and intermediate values are in `dtype`.
    """
    filters, biases = [], []
    for convolution in encoder.convolutions:
        assert isinstance(convolution, nn.Conv1d)
        assert convolution.bias is not None
        flat = convolution.weight.transpose(1, 2).flatten(1)  # (n, w * D)
        wide = windows.characters.shape[1] * convolution.in_channels
        filters.append(F.pad(flat, (0, wide - flat.shape[1])))
        biases.append(convolution.bias)
    best = _Maxima.apply(encoder.characters.weight, torch.cat(filters), windows, dtype, pointwise)
    x = encoder.activation(best + torch.cat(biases).to(dtype))  # (U, F)
    for highway in encoder.highways:
        gate = torch.sigmoid(_linear(highway.carry, x))  # type: ignore[arg-type]
        x = x + gate * (F.relu(_linear(highway.transform, x)) - x)  # type: ignore[arg-type]
    return _linear(encoder.projection, x) if isinstance(encoder.projection, nn.Linear) else x


def _linear(layer: nn.Linear, x: Tensor) -> Tensor:
    return F.linear(x, layer.weight.to(x.dtype), layer.bias.to(x.dtype))
