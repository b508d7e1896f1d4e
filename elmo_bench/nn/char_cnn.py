"""Words from their characters by convolution and max-pooling (paper, section 4, NER; Ma and Hovy 2016).

`largest` has the convolutions with each filter's largest value over a word, also for the biLM: on a CPU by compiled
functions, elsewhere by torch. A gradient goes back only through the largest window of each word, which is a fraction of
a convolution's work.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from math import sqrt
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from elmo_bench.nn.kernels.library import Kernels, checked, most_threads
from elmo_bench.nn.numerics import linear

NEAR, NEAR_HALF = 1e-5, 0.2  # largest difference accepted by the check; rounding can change which window is the largest
ROOM = 64  # rows of zeros after the last word, which the compiled functions may read
Places = Sequence[tuple[int, Tensor]]


class CharCNN(nn.Module):
    """Character embeddings, convolutions of one or more widths, ReLU, the largest value over the word.

    A filter of width w sees every window with at least one character, so it can recognise the beginning and the end of
    a word. Only real words are computed, and padding never changes them.

    Args:
        n_characters: the size of the character vocabulary; id 0 is padding.
        size: dimension of the character embeddings.
        filters: {width: number of filters}.
        dropout: on the character embeddings.
    """

    def __init__(self, n_characters: int, size: int, filters: Mapping[int, int], dropout: float = 0.0):
        super().__init__()
        self.embedding = nn.Embedding(n_characters, size, padding_idx=0)
        bound = sqrt(3 / size)
        with torch.no_grad():
            self.embedding.weight[1:].uniform_(-bound, bound)
        self.dropout = nn.Dropout(dropout)
        self.widths = [*map(int, filters)]
        self.convolutions = nn.ModuleList(
            nn.Conv1d(size, int(number), int(width), padding=int(width) - 1) for width, number in filters.items()
        )
        self.output_size = sum(int(number) for number in filters.values())

    def forward(self, chars: Tensor, places: Tensor | None = None) -> Tensor:
        """(B, T, C) int64 character ids, 0 for padding -> (B, T, output_size), zeros where a word is padding.

        `places` are the positions of the N words in the flattened (B, T); finding them here would wait for a GPU.
        """
        if places is None:
            places = (chars != 0).any(-1).flatten().nonzero().squeeze(1)  # (N,)
        words = chars.flatten(0, 1)[places]  # (N, C)
        found = self._pool(self.dropout(self.embedding(words)), (words != 0).sum(1))
        out = found.new_zeros(chars.shape[0] * chars.shape[1], self.output_size)
        return out.index_copy(0, places, found).unflatten(0, chars.shape[:2])

    def _pool(self, x: Tensor, lengths: Tensor) -> Tensor:
        """(n, C, size), (n,) -> (n, output_size)."""
        beside = max(self.widths) - 1
        places = [(beside + 1 - width, lengths + width - 1) for width in self.widths]  # windows with a character
        return largest(F.pad(x, (0, 0, beside, beside)), self.convolutions, places).relu()


def largest(x: Tensor, convolutions: Iterable[Any], places: Places) -> Tensor:
    """Each filter's largest value over the windows of a word.

    Args:
        x: (n, K, D) vectors of the characters of n words.
        convolutions: `nn.Conv1d` of one width after another.
        places: for each width the first window, and (n,) the number of windows of each word, at least one.

    Returns:
        (n, F), of the dtype of products.
    """
    half = torch.is_autocast_enabled(x.device.type)
    of_halves = x.shape[2] % 2 == 0 and torch.get_autocast_dtype(x.device.type) == torch.bfloat16
    usable = x.device.type == "cpu" and x.dtype == torch.float32 and (of_halves or not half)
    found: Any = kernels(half) if usable and not torch.compiler.is_compiling() else None
    weights, biases = zip(*((layer.weight, layer.bias) for layer in convolutions), strict=True)
    out = (_by_kernels if found else _by_torch)(found, x, weights, biases, places)
    return out.bfloat16() if found and half else out


def _by_torch(_: Any, x: Tensor, weights: Sequence[Tensor], biases: Sequence[Tensor], places: Places) -> Tensor:
    """The same by products: a training step takes three quarters of the time that it takes with `conv1d`."""
    pooled = []
    for weight, bias, (first, count) in zip(weights, biases, places, strict=True):
        starts, width = x.shape[1] - first - weight.shape[2] + 1, weight.shape[2]
        rows = torch.cat([x[:, first + i : first + i + starts] for i in range(width)], dim=2)  # (n, starts, width * D)
        outside = torch.arange(starts, device=x.device) >= count[:, None]  # (n, starts)
        values = linear(rows, weight.mT.flatten(1), bias).masked_fill(outside[..., None], -torch.inf)
        pooled.append(values.max(dim=1).values)
    return torch.cat(pooled, dim=1)


def _by_kernels(
    kernels: Kernels, x: Tensor, weights: Sequence[Tensor], biases: Sequence[Tensor], places: Places
) -> Tensor:
    given = [x, *(weight.mT.flatten(1) for weight in weights)]
    zero = torch.stack([part.detach().sum() for part in given]).sum() * 0  # NaN if one is, as a maximum would hide it
    out: Any = _Largest.apply(kernels, places, *given)
    return out + (torch.cat([*biases]) + zero)


class _Largest(torch.autograd.Function):
    """Without bias; weights are (number, width * D)."""

    @staticmethod
    def forward(ctx: Any, kernels: Kernels, places: Places, x: Tensor, *weights: Tensor) -> Tensor:
        rows = F.pad(x.flatten(0, 1), (0, 0, 0, ROOM))  # (n * K + ROOM, D)
        features = sum(map(len, weights))
        out, where = x.new_empty(2, len(x), features + kernels.panel)  # a width's last panel extends into the next
        ctx.given = kernels, places, x.shape, [len(weight) for weight in weights]
        _each("windows", ctx.given, kernels.factors(rows), [kernels.packed(weight) for weight in weights], out, where)
        ctx.save_for_backward(rows, where, *weights)
        return out[:, :features]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (rows, where, *weights), panel = ctx.saved_tensors, ctx.given[0].panel
        gradient = F.pad(gradients[0], (0, panel))
        to_rows = torch.zeros_like(rows)
        to = [weight.new_empty(len(weight), -(-weight.shape[1] // panel) * panel) for weight in weights]
        _each("windows_back", ctx.given, rows, weights, gradient, where, to_rows, to)
        to_weights = [given[:, : weight.shape[1]] for given, weight in zip(to, weights, strict=True)]
        return None, None, to_rows[:-ROOM].view(ctx.given[2]), *to_weights


def _each(
    name: str, given: tuple, rows: Tensor, weights: Sequence[Tensor], out: Tensor, where: Tensor,
    to_rows: Tensor | None = None, to_weights: Sequence[Tensor] = (),
) -> None:  # fmt: skip
    """One width after another; the order is that of the structure in `windows.h`."""
    kernels, places, (words, columns, _), numbers = given
    done, size = 0, rows.shape[1]
    for i, ((first, count), number) in enumerate(zip(places, numbers, strict=True)):
        to = (0, 0) if to_rows is None else (to_rows[first:], to_weights[i])
        kernels.call(
            name, most_threads(), rows[first:], weights[i], count, words, columns * size, size, weights[i].shape[1],
            number, out.shape[1], out.view(-1)[done:], where.view(-1)[done:], *to,
        )  # fmt: skip
        done += number


@cache
def kernels(half: bool = False) -> Kernels | None:
    """The compiled functions, from `library.checked`."""
    return checked(half, difference, NEAR_HALF if half else NEAR)


def difference(kernels: Kernels) -> float:
    """The largest difference of values and gradients from torch's, on small random input, relative to their norm."""
    random, made = torch.Generator().manual_seed(0), []
    shapes = (9, 12, 16), (3, 16, 1), (70, 16, 2), (9, 16, 3), (3,), (70,), (9,)
    x, *given = leaves = [torch.randn(shape, generator=random).float().requires_grad_() for shape in shapes]
    for way in (_by_torch, _by_kernels):
        out = way(kernels, x, given[:3], given[3:], [(1, torch.arange(1, 10))] * 3)
        made.append([out.detach(), *torch.autograd.grad(out.square().sum(), leaves)])
    return max(float((a - b).norm() / a.norm()) for a, b in zip(*made, strict=True))
