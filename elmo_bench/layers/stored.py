"""The layers of a batch as the cache stores them: small to read and to move to a device, where they are expanded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from elmo_bench.layers.blocks import Blocks


class Stored(NamedTuple):
    """Blocks of sentences one after another, and where the vectors of a padded batch stand in them."""

    vectors: Tensor  # (N + 1, P) in the cache's dtype, the last one zero; P = W / parts
    index: Tensor  # (B, n_layers, T, parts) int64 into `vectors`

    def to(self, device: torch.device) -> Stored:
        """On a device; the copy to a GPU is asynchronous if `pinned`."""
        return Stored(*(part.to(device, non_blocking=True) for part in self))

    def pinned(self) -> Stored:
        """In page-locked memory, from which a GPU copies while it computes."""
        return Stored(*(part.pin_memory() for part in self))

    def expand(self) -> Tensor:
        """(B, n_layers, T, W) float32, zero-padded."""
        return F.embedding(self.index, self.vectors).flatten(3).float()


def stored(blocks: Blocks, pieces: Sequence[np.ndarray], rows: Sequence[Sequence[tuple[int, int]]]) -> Stored:
    """Puts the blocks of a batch together.

    Args:
        blocks: their layout.
        pieces: the blocks of the batch's distinct sentences.
        rows: for each row of the batch, number and length of each of its sentences; T is the longest sum of lengths.
    """
    parts = 2 if blocks.doubled else 1
    size = blocks.width // parts  # P
    numbers = np.empty(sum(map(len, pieces)) + size, dtype=blocks.dtype)
    starts, end = [], 0  # of each piece, in vectors of P numbers
    for piece in pieces:
        starts.append(end // size)
        numbers[end : end + len(piece)] = piece
        end += len(piece)
    numbers[end:] = 0
    return Stored(
        torch.from_numpy(numbers).view(-1, size), torch.from_numpy(_index(blocks, np.array(starts), rows, end // size))
    )


def _index(blocks: Blocks, starts: np.ndarray, rows: Sequence[Sequence[tuple[int, int]]], zero: int) -> np.ndarray:
    """(B, n_layers, T, parts): for each word, layer and part of a vector its place; `zero` on padding."""
    parts, longest = (2 if blocks.doubled else 1), max((sum(n for _, n in row) for row in rows), default=0)
    index = np.full((len(rows), longest, blocks.n_layers, parts), zero, dtype=np.int64)
    flat = [piece for row in rows for piece in row]
    lengths = np.array([n for _, n in flat], dtype=np.int64)
    number = np.repeat(np.array([i for i, _ in flat], dtype=np.int64), lengths)  # (N,): of each word's piece
    length = np.repeat(lengths, lengths)  # (N,): of that piece
    word = np.arange(len(number)) - np.repeat(np.cumsum(lengths) - lengths, lengths)  # (N,): the word's place in it
    first = starts[number] if len(number) else number
    places = np.empty((len(number), blocks.n_layers, parts), dtype=np.int64)
    places[:, 0] = (first + word)[:, None]  # stored once, whatever the parts
    upper = np.arange(blocks.n_layers - 1) * length[:, None] + word[:, None]  # (N, L)
    places[:, 1:] = ((first + length)[:, None] + upper * parts)[..., None] + np.arange(parts)
    in_row = np.arange(longest) < np.array([sum(n for _, n in row) for row in rows], dtype=np.int64)[:, None]  # (B, T)
    index[in_row] = places
    return index.transpose(0, 2, 1, 3).copy()
