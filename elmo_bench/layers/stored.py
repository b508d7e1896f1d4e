"""The layers of a sentence and of a batch as the cache stores them.

Those of a batch are small to read and to move to a device, where they are expanded.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

DIGEST_BYTES = 16
DTYPE = np.dtype(np.float16)  # of the stored numbers: half the size, a relative error below 1e-3


def digest(sentence: Sequence[str]) -> bytes:
    """Digest of the tokens, each preceded by its length because a token may contain any character."""
    tokens = (token.encode("utf-8", "surrogatepass") for token in sentence)
    parts = (len(token).to_bytes(4, "big") + token for token in tokens)
    return hashlib.blake2b(b"".join(parts), digest_size=DIGEST_BYTES).digest()


@dataclass(frozen=True)
class Blocks:
    """Converts the layers (n_layers, T, W) of a sentence to one block of numbers, layer after layer, and back.

    Attributes:
        doubled: layer 0 repeats a vector of W/2 numbers; the block stores it once.
    """

    n_layers: int
    width: int
    doubled: bool

    def elements(self, tokens: int) -> int:
        """Numbers in the block of a sentence of `tokens` words."""
        return tokens * (self._first + (self.n_layers - 1) * self.width)

    def nbytes(self, tokens: int) -> int:
        """Bytes of that block."""
        return self.elements(tokens) * DTYPE.itemsize

    def pack(self, layers: Tensor) -> bytes:
        """(n_layers, T, W) -> the bytes of the block."""
        first = layers[0, :, : self._first].reshape(-1)
        return torch.cat([first, layers[1:].reshape(-1)]).numpy().astype(DTYPE).tobytes()

    @property
    def _first(self) -> int:
        """Numbers of layer 0 that are stored per word."""
        return self.width // 2 if self.doubled else self.width


class Stored(NamedTuple):
    """Blocks of sentences one after another, and where the words of a padded batch stand in them."""

    vectors: Tensor  # (N + 1, P) float16, the last one zero; P = W / parts
    words: (
        Tensor  # (B, T, 3) int32: first vector of the word's sentence, length of the sentence (0: padding), place in it
    )
    n_layers: int
    parts: int  # vectors of P numbers in a vector of layers 1 to L

    def each(self, change: Callable[[Tensor], Tensor]) -> Stored:
        """With both tensors changed."""
        return self._replace(vectors=change(self.vectors), words=change(self.words))

    def expand(self) -> Tensor:
        """(B, n_layers, T, W) float32, zero-padded."""
        first, length, place = self.words.long()[:, None].unbind(-1)  # (B, 1, T) each
        upper = torch.arange(self.n_layers - 1, device=first.device)[:, None]  # (L, 1)
        part = torch.arange(self.parts, device=first.device)
        lowest = (first + place)[..., None].expand(*first.shape, self.parts)  # stored once, whatever the parts
        above = (first + length + (upper * length + place) * self.parts)[..., None] + part  # (B, L, T, parts)
        index = torch.cat([lowest, above], dim=1).masked_fill(length[..., None] == 0, len(self.vectors) - 1)
        return F.embedding(index, self.vectors).flatten(3).float()


def stored(blocks: Blocks, pieces: Sequence[np.ndarray], rows: Sequence[Sequence[tuple[int, int]]]) -> Stored:
    """Puts the blocks of a batch together.

    Args:
        blocks: their layout.
        pieces: the blocks of the batch's distinct sentences.
        rows: for each row of the batch, number and length of each of its sentences; T is the longest sum of lengths.
    """
    parts = 2 if blocks.doubled else 1
    size = blocks.width // parts  # P
    ends = np.cumsum([0, *map(len, pieces)])
    numbers = np.empty(ends[-1] + size, dtype=DTYPE)
    np.concatenate([*pieces, np.zeros(size, dtype=DTYPE)], out=numbers)
    vectors = torch.from_numpy(numbers).view(-1, size)
    return Stored(vectors, torch.from_numpy(_words(ends // size, rows)), blocks.n_layers, parts)


def _words(starts: np.ndarray, rows: Sequence[Sequence[tuple[int, int]]]) -> np.ndarray:
    """`Stored.words`, from the first vector of each piece."""
    totals = np.array([sum(length for _, length in row) for row in rows], dtype=np.int64)
    words = np.zeros((len(rows), totals.max(initial=0), 3), dtype=np.int32)
    flat = np.array([piece for row in rows for piece in row], dtype=np.int64).reshape(-1, 2)
    number, lengths = flat.T
    begin = np.repeat(np.cumsum(lengths) - lengths, lengths)
    each = np.stack([np.repeat(starts[number], lengths), np.repeat(lengths, lengths), np.arange(len(begin)) - begin], 1)
    words[np.arange(words.shape[1]) < totals[:, None]] = each
    return words
