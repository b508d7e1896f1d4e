"""Small stand-ins for the parts around the one that a test is about."""

from __future__ import annotations

import hashlib
from pathlib import Path

import torch
from torch import Tensor, nn


class FakeBiLM(nn.Module):
    """The interface of a `BiLM`: vectors of hashed words, a neighbour's word mixed in above layer 0."""

    n_layers, width = 3, 8

    def __init__(self, seed: int = 0):
        super().__init__()
        weights = torch.randn(64, self.width, generator=torch.Generator().manual_seed(seed))
        self.table = nn.Embedding.from_pretrained(weights, freeze=False)
        self.sha256 = hashlib.sha256(str(seed).encode()).hexdigest()
        self.passes = 0

    @classmethod
    def from_files(cls, options: str, weights: str, state: str = "warm") -> FakeBiLM:
        bilm = cls(int(Path(weights).read_text()))
        bilm.sha256 = hashlib.sha256(Path(weights).read_bytes()).hexdigest()
        return bilm.requires_grad_(False)

    def layers(self, sentences: list[list[str]]) -> Tensor:
        """(B, 3, T, 8), zero-padded."""
        self.passes += 1
        longest = max(map(len, sentences))
        rows = []
        for sentence in sentences:
            ids = torch.tensor([sum(word.encode()) % 64 for word in sentence], device=self.table.weight.device)
            h = self.table(ids)  # (T, W)
            rows.append(nn.functional.pad(torch.stack([h, h + h.roll(1, 0), h - h.roll(-1, 0)]),
                                          (0, 0, 0, longest - len(sentence))))  # fmt: skip
        return torch.stack(rows)

    def as_cache(self) -> FakeCache:
        return FakeCache(self)


class FakeCache:
    """The interface of an `ActivationCache`."""

    def __init__(self, bilm: FakeBiLM, folder: str | Path | None = None):
        self.bilm, self.n_layers, self.width, self.sha256 = bilm, bilm.n_layers, bilm.width, bilm.sha256
        self.prepared: list[list[str]] = []

    def prepare(self, sentences: list[list[str]]) -> None:
        self.prepared = list(sentences)

    def layers(self, sentences: list[list[str]]) -> Tensor:
        return self.bilm.layers(sentences)
