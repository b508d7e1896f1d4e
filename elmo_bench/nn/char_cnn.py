"""Words from their characters by convolution and max-pooling (paper, section 4, NER; Ma and Hovy 2016)."""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt

import torch
from torch import Tensor, nn


class CharCNN(nn.Module):
    """Character embeddings, convolutions of one or more widths, ReLU, the largest value over the word.

    A filter of width w sees every window with at least one character, so it can recognise the beginning and the end of
    a word. Only real words are computed, and padding never changes them.

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

    def forward(self, chars: Tensor, places: Tensor | None = None) -> Tensor:
        """(B, T, C) int64 character ids, 0 for padding -> (B, T, output_size), zeros where a word is padding.

        `places` are those of the N words in the flattened (B, T); to find them, a GPU would be waited for.
        """
        if places is None:
            places = (chars != 0).any(-1).flatten().nonzero().squeeze(1)  # (N,)
        words = chars.flatten(0, 1)[places]  # (N, C)
        found = self._pool(self.dropout(self.embedding(words)).transpose(1, 2), (words != 0).sum(1))
        out = found.new_zeros(chars.shape[0] * chars.shape[1], self.output_size)
        return out.index_copy(0, places, found).unflatten(0, chars.shape[:2])

    def _pool(self, x: Tensor, lengths: Tensor) -> Tensor:
        """(n, size, C), (n,) -> (n, output_size)."""
        pooled = []
        for convolution in self.convolutions:
            windows = convolution(x).relu()  # (n, filters, C + width - 1)
            ends = lengths.unsqueeze(1) + windows.shape[2] - x.shape[2]  # (n, 1): windows with a character
            inside = torch.arange(windows.shape[2], device=x.device) < ends  # (n, C + width - 1)
            pooled.append((windows * inside.unsqueeze(1)).amax(2))  # after ReLU, 0 is the smallest value
        return torch.cat(pooled, 1)
