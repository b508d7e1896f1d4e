"""Words from their characters by convolution and max-pooling (paper, section 4, NER; Ma and Hovy 2016)."""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from elmo_bench.nn.windows import largest


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
