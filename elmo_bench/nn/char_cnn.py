"""Words from their characters by convolution and max-pooling (paper, section 4, NER; Ma and Hovy 2016)."""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt

import numpy as np
import torch
from torch import Tensor, nn


class CharCNN(nn.Module):
    """Character embeddings, convolutions of one or more widths, ReLU, the largest value over the word.

    A filter of width w sees every window with at least one character, so it can recognise the beginning and the end of
    a word. Only real words are computed, and padding never changes them. On a CPU each distinct word of a batch is
    computed once, and without most of its padding.

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
        self.dropout = nn.Dropout(dropout)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(size, int(number), int(width), padding=int(width) - 1) for width, number in filters.items()
        )
        self.output_size = sum(int(number) for number in filters.values())

    def forward(self, chars: Tensor) -> Tensor:
        """(B, T, C) int64 character ids, 0 for padding -> (B, T, output_size), zeros where a word is padding."""
        places = (chars != 0).any(-1).flatten().nonzero().squeeze(1)  # (N,) of the words
        words, which = chars.flatten(0, 1)[places], None  # (N, C)
        if chars.device.type == "cpu" and not (self.training and self.dropout.p):  # a mask makes equal words differ
            words, which = distinct(words)  # (U, C), (N,)
        found = self._encode(self.dropout(self.embedding(words)), (words != 0).sum(1))
        found = found if which is None else found.index_select(0, which)
        out = found.new_zeros(chars.shape[0] * chars.shape[1], self.output_size)
        return out.index_copy(0, places, found).unflatten(0, chars.shape[:2])

    def _encode(self, x: Tensor, lengths: Tensor) -> Tensor:
        """(U, C, size), (U,) characters of each word -> (U, output_size). Short words are computed without padding."""
        groups = similar(lengths) if x.device.type == "cpu" else [torch.arange(len(x), device=x.device)]
        parts = []
        for rows in groups:
            longest = int(lengths[rows].max()) if x.device.type == "cpu" else x.shape[1]
            parts.append(self._pool(x[rows, :longest].transpose(1, 2), lengths[rows]))
        place = torch.cat([*groups, lengths.new_zeros(0)]).argsort()
        found = torch.cat(parts) if parts else x.new_zeros(0, self.output_size)  # in 16 bits under autocast
        return found.index_select(0, place)

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


def similar(lengths: Tensor) -> list[Tensor]:
    """Groups of rows whose lengths are close: up to 2, 4, 8 and so on."""
    bounds = torch.tensor([2**k for k in range(1, int(lengths.max()).bit_length())]) if len(lengths) else lengths
    group = torch.bucketize(lengths, bounds)  # (N,)
    return [rows for number in range(len(bounds) + 1) if len(rows := (group == number).nonzero().squeeze(1))]
