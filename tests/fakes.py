"""Small stand-ins for the parts around the one that a test is about."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor, nn

from elmo_bench.layers.source import Sentences
from elmo_bench.nn.packing import padded
from elmo_bench.task import Embedded


class Table(nn.Module):
    """What of a `FakeBiLM` can be trained."""

    def __init__(self, vectors: Tensor):
        super().__init__()
        self.table = nn.Embedding.from_pretrained(vectors, freeze=True)


def embedded(*lengths: int, size: int = 6, elmo: int = 0, extra: int = 0) -> Embedded:
    """Random vectors of sentences, with `extra` columns of padding; what stands at padding is noise."""
    mask = torch.arange(max(lengths) + extra) < torch.tensor(lengths).unsqueeze(1)
    return Embedded(torch.randn(*mask.shape, size), torch.randn(*mask.shape, elmo) if elmo else None, mask)


class FakeBiLM:
    """A source of layers: vectors of hashed words, a neighbour's word mixed in above layer 0.

    Args:
        options: read by no one.
        weights: a file that holds the seed.
        state: read by no one.
        seed: of the vectors, where there is no file.
    """

    n_layers, width = 3, 8
    cacheable, doubled_first_layer = True, False

    def __init__(self, options: str = "", weights: str | None = None, state: str = "warm", seed: int = 0):
        content = str(seed).encode() if weights is None else Path(weights).read_bytes()
        vectors = torch.randn(64, self.width, generator=torch.Generator().manual_seed(int(content)))
        self.module = Table(vectors)
        self.sha256 = hashlib.sha256(content).hexdigest()
        self.settings = {"source": "fake", "state": state}
        self.passes = 0

    @property
    def table(self) -> Tensor:
        """The vectors, (64, W)."""
        return self.module.table.weight

    def layers(self, sentences: Sentences) -> Tensor:
        """(B, 3, T, 8), zero-padded."""
        self.passes += 1
        rows = [torch.empty(self.n_layers, 0, self.width, device=self.table.device), *map(self._row, sentences)]
        return padded(torch.cat(rows, dim=1), [len(sentence) for sentence in sentences])

    @torch.no_grad()
    def batches(self, sentences: Sentences) -> Iterator[tuple[list[int], Tensor]]:
        """One sentence after another."""
        for i, sentence in enumerate(sentences):
            yield [i], self._row(sentence)

    def _row(self, sentence) -> Tensor:
        """(3, T, 8) of one sentence."""
        ids = torch.tensor([sum(word.encode()) % 64 for word in sentence], dtype=torch.long, device=self.table.device)
        h = nn.functional.embedding(ids, self.table)  # (T, W)
        return torch.stack([h, h + h.roll(1, 0), h - h.roll(-1, 0)])


def pages_of(results: Path) -> str:
    """The Markdown pages of a report, one after another."""
    return "\n".join(path.read_text(encoding="utf-8") for path in sorted(results.rglob("*.md")))
