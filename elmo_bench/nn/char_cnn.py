"""Words from their characters by convolution and max-pooling (paper, section 4, NER; Ma and Hovy 2016)."""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from elmo_bench.nn.compiled import usable
from elmo_bench.nn.dropout import Dropout
from elmo_bench.nn.reductions import largest


class CharCNN(nn.Module):
    """Character embeddings, convolutions of one or more widths, ReLU, the largest value over the word.

    A filter of width w sees every window with at least one character, so it can recognise the beginning and the end of
    a word. Only real words are computed, and padding never changes them. On a CPU each distinct word of a batch is
    computed once, and without padding.

    Args:
        n_characters: the size of the character vocabulary; id 0 is padding.
        size: of a character's embedding.
        filters: {width: number of filters}.
        dropout: on the character embeddings.
    """

    def __init__(self, n_characters: int, size: int, filters: Mapping[int, int], dropout: float = 0.0):
        super().__init__()
        self.embedding = nn.Embedding(n_characters, size, padding_idx=0)
        bound = sqrt(3 / size)
        with torch.no_grad():
            self.embedding.weight[1:].uniform_(-bound, bound)
        self.dropout = Dropout(dropout)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(size, int(number), int(width), padding=int(width) - 1) for width, number in filters.items()
        )
        self.output_size = sum(int(number) for number in filters.values())

    def forward(self, chars: Tensor) -> Tensor:
        """(B, T, C) int64 character ids, 0 for padding -> (B, T, output_size), zeros where a word is padding."""
        places = (chars != 0).any(-1).flatten().nonzero().squeeze(1)  # (N,) of the words
        words = chars.flatten(0, 1)[places]  # (N, C)
        found = self._without_padding(words) if chars.device.type == "cpu" else self._padded(words)
        out = found.new_zeros(chars.shape[0] * chars.shape[1], self.output_size)
        return out.index_copy(0, places, found).unflatten(0, chars.shape[:2])

    def _padded(self, words: Tensor) -> Tensor:
        """(N, C) -> (N, output_size), every word with all its padding."""
        return self._pool(self.dropout(self.embedding(words)).transpose(1, 2), (words != 0).sum(1))

    def _without_padding(self, words: Tensor) -> Tensor:
        """The same on a CPU, each character computed once for each distinct word."""
        if not len(words):
            return words.new_zeros(0, self.output_size, dtype=self.embedding.weight.dtype)
        if self.training and self.dropout.p:  # a mask makes equal words differ
            return self._of_row(self.dropout(self.embedding(words))[words != 0], (words != 0).sum(1))
        words, which = distinct(words)  # (U, C), (N,)
        found = self._of_row(self.embedding(words[words != 0]), (words != 0).sum(1))  # (U, output_size)
        return F.embedding(which, found)  # whose gradient is faster than that of an index

    def _of_row(self, x: Tensor, lengths: Tensor) -> Tensor:
        """(M, size) the characters of all words in a row, (U,) characters of each word -> (U, output_size)."""
        word = torch.arange(len(lengths)).repeat_interleave(lengths)  # (M,) of each character
        pooled = []
        for convolution in self.convolutions:
            assert isinstance(convolution, nn.Conv1d)
            weight, between = convolution.weight, convolution.kernel_size[0] - 1  # zeros between two words
            place = torch.arange(len(x)) + between * (word + 1)  # (M,)
            row = x.new_zeros(len(x) + between * (len(lengths) + 1), x.shape[1]).index_copy(0, place, x)
            windows = row.unfold(0, between + 1, 1).flatten(1)  # (M + U (width - 1), size * width), word after word
            scores = F.linear(windows, weight.flatten(1), convolution.bias)
            pooled.append(largest(scores, lengths + between, usable(scores)).relu())
        return torch.cat(pooled, 1)

    def _pool(self, x: Tensor, lengths: Tensor) -> Tensor:
        """(n, size, C), (n,) -> (n, output_size)."""
        pooled = []
        for convolution in self.convolutions:
            windows = convolution(x).relu()  # (n, filters, C + width - 1)
            ends = lengths.unsqueeze(1) + windows.shape[2] - x.shape[2]  # (n, 1): windows with a character
            inside = torch.arange(windows.shape[2], device=x.device) < ends  # (n, C + width - 1)
            pooled.append((windows * inside.unsqueeze(1)).amax(2))  # after ReLU, 0 is the smallest value
        return torch.cat(pooled, 1)


def distinct(words: Tensor) -> tuple[Tensor, Tensor]:
    """The different rows of (N, C) int64, on the CPU: (U, C), and the number of each row among them (N,)."""
    rows = np.ascontiguousarray(words.numpy())
    keys = rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1]))).ravel() if rows.size else rows[:, 0]
    _, first, which = np.unique(keys, return_index=True, return_inverse=True)
    return words[torch.from_numpy(first)], torch.from_numpy(which)
