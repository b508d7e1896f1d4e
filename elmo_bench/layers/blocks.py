"""A sentence in the cache: its key, and the block of numbers in which its layers are stored."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

DIGEST_BYTES = 16


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
        dtype: of the stored numbers.
    """

    n_layers: int
    width: int
    doubled: bool
    dtype: np.dtype

    def elements(self, tokens: int) -> int:
        """Numbers in the block of a sentence of `tokens` words."""
        return tokens * (self._first + (self.n_layers - 1) * self.width)

    def nbytes(self, tokens: int) -> int:
        """Bytes of that block."""
        return self.elements(tokens) * self.dtype.itemsize

    def pack(self, layers: Tensor) -> bytes:
        """(n_layers, T, W) -> the bytes of the block."""
        first = layers[0, :, : self._first].reshape(-1)
        return torch.cat([first, layers[1:].reshape(-1)]).numpy().astype(self.dtype).tobytes()

    @property
    def _first(self) -> int:
        """Numbers of layer 0 that are stored per word."""
        return self.width // 2 if self.doubled else self.width
