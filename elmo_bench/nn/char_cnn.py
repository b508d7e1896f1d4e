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

    def forward(self, chars: Tensor) -> Tensor:
        """(B, T, C) int64 character ids, 0 for padding -> (B, T, output_size), zeros where a word is padding."""
        present = (chars != 0).any(-1)  # (B, T)
        words = chars[present]  # (N, C): the words alone
        lengths = (words != 0).sum(1)  # (N,)
        x = self.dropout(self.embedding(words)).transpose(1, 2)  # (N, size, C)
        pooled = []
        for convolution in self.convolutions:
            windows = convolution(x).relu()  # (N, filters, C + width - 1)
            ends = lengths.unsqueeze(1) + windows.shape[2] - chars.shape[2]  # (N, 1): windows with a character
            inside = torch.arange(windows.shape[2], device=chars.device) < ends  # (N, C + width - 1)
            pooled.append((windows * inside.unsqueeze(1)).amax(2))  # after ReLU, 0 is the smallest value
        found = torch.cat(pooled, 1)  # (N, output_size), in 16 bits under autocast
        out = found.new_zeros((*present.shape, self.output_size))
        out[present] = found
        return out
