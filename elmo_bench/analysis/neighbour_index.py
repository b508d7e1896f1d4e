"""An index of the vectors of a corpus, and the exact nearest neighbours of a vector in it.

The index is a folder of shards: float16 vectors of unit length, layer after layer, mapped into memory when they are
searched. Each shard has its sha256 beside it and is compared with it when the index is opened; one that is missing or
damaged is computed again, so that an interrupted indexing goes on where it stopped. Layer 0 does not depend on the
context: it has one row for each distinct word, that of its first occurrence.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from rich.console import Console
from rich.progress import track
from torch import Tensor
from torch.nn import functional as F

from elmo_bench.kernels.threads import in_parallel
from elmo_bench.system.storage.files import write_bytes
from elmo_bench.system.storage.hashing import fingerprint
from elmo_bench.system.storage.integrity import is_as_noted, note
from elmo_bench.system.storage.locks import held

FORMAT = 1
SHARD = 1 << 16  # tokens, about
SPARE = 4  # times as many rows as wanted are taken by float16 products, and then compared in float32


class Neighbour(NamedTuple):
    """A word of the corpus: its cosine, and its place."""

    cosine: float
    sentence: int
    token: int


class Index:
    """The vectors of all words of a corpus; missing shards are computed here.

    Args:
        source: of layers.
        sentences: the corpus.
        folder: for the indexes of all sources and corpora.

    Raises:
        Refused: the folder cannot be written, or its disk is full.
    """

    def __init__(self, source: Any, sentences: Sequence[list[str]], folder: Path):
        self.sentences = [sentence for sentence in sentences if sentence]
        self.layers, self.width, self.doubled = source.n_layers, source.width, source.doubled_first_layer
        self.starts = np.cumsum([0, *map(len, self.sentences)])  # the first token of each sentence, and the end
        self.words = _first_tokens(self.sentences)
        self.first = np.array(list(self.words.values()), dtype=np.int64)  # (distinct words,), ascending
        plain = {"format": FORMAT, "weights": source.sha256, **source.settings, "text": fingerprint(self.sentences, 64)}
        self.folder = folder / fingerprint(plain)
        self.groups = _groups(self.starts)
        with held(self.folder, f"another process is writing the index {self.folder}; waiting for it"):
            self._fill(source)
        self._mapped = [[self._rows(shard, layer) for layer in range(self.layers)] for shard in range(len(self.groups))]

    @property
    def tokens(self) -> int:
        """Words in the corpus."""
        return int(self.starts[-1])

    def search(self, vectors: Tensor, sentence: Sequence[str], token: int, number: int) -> list[list[Neighbour]]:
        """The nearest words to a word of a sentence in each layer, the nearest first.

        The words of the sentence itself are no neighbours if the corpus has it; in layer 0 the word itself is none.

        Args:
            vectors: (L, W), of the word.
            sentence, token: where it stands.
            number: how many neighbours.
        """
        itself, own = np.array([self.words.get(sentence[token], -1)]), self._same_sentence(list(sentence))
        return [self._nearest(at, vectors[at], number, own if at else itself) for at in range(self.layers)]

    def _nearest(self, layer: int, vector: Tensor, number: int, barred: np.ndarray) -> list[Neighbour]:
        query = F.normalize(vector[: self._size(layer)].float(), dim=0).half()

        def best(shard: int) -> list[tuple[float, int]]:
            return self._best(shard, layer, query, number, barred)

        found = [pair for pairs in in_parallel(best, range(len(self.groups))) for pair in pairs]
        return [self._place(*pair) for pair in sorted(found, key=lambda pair: (-pair[0], pair[1]))[:number]]

    def _best(self, shard: int, layer: int, query: Tensor, number: int, barred: np.ndarray) -> list[tuple[float, int]]:
        """Cosines and tokens of a shard's best candidates."""
        rows, tokens = self._mapped[shard][layer], self._tokens(shard, layer)
        near = rows @ query  # (n,)
        near[torch.from_numpy(_at(tokens, barred))] = -2
        candidates = near.topk(min(SPARE * number, len(near))).indices
        candidates = candidates[near[candidates] > -2]
        exact = rows[candidates].float() @ query.float()
        return list(zip(exact.tolist(), tokens[candidates.numpy()].tolist(), strict=True))

    def _place(self, cosine: float, token: int) -> Neighbour:
        sentence = int(np.searchsorted(self.starts, token, side="right")) - 1
        return Neighbour(cosine, sentence, token - int(self.starts[sentence]))

    def _same_sentence(self, sentence: list[str]) -> np.ndarray:
        """The tokens of all occurrences of a sentence."""
        at = [i for i, each in enumerate(self.sentences) if each == sentence]
        return np.concatenate([np.arange(self.starts[i], self.starts[i + 1]) for i in at] or [np.array([], np.int64)])

    # Shards.

    def _size(self, layer: int) -> int:
        """Numbers in a vector: of a layer 0 that repeats one, half the width."""
        return self.width // 2 if layer == 0 and self.doubled else self.width

    def _tokens(self, shard: int, layer: int) -> np.ndarray:
        """The tokens that the rows of a shard stand for, in order."""
        start, end = (int(self.starts[sentence]) for sentence in self.groups[shard])
        if layer:
            return np.arange(start, end)
        return self.first[np.searchsorted(self.first, start) : np.searchsorted(self.first, end)]

    def _path(self, shard: int) -> Path:
        return self.folder / f"{shard:05}.f16"

    def _rows(self, shard: int, layer: int) -> Tensor:
        """(n, W) float16, mapped."""
        shapes = [(len(self._tokens(shard, each)), self._size(each)) for each in range(layer + 1)]
        before = sum(n * size for n, size in shapes[:-1])
        if not shapes[-1][0]:
            return torch.zeros(shapes[-1], dtype=torch.float16)
        file = np.memmap(self._path(shard), np.float16, "c", offset=2 * before, shape=shapes[-1])  # nothing is written
        return torch.from_numpy(file)

    def _fill(self, source: Any) -> None:
        """Computes the shards that are missing or damaged."""
        missing = [i for i in range(len(self.groups)) if not is_as_noted(self._path(i))]
        console = Console(stderr=True)
        if missing:
            console.print(f"indexing {self.tokens} tokens in {self.folder}", soft_wrap=True)
        for shard in track(missing, "index", console=console, disable=not console.is_terminal):
            write_bytes(self._path(shard), self._computed(source, shard))
            note(self._path(shard))

    def _computed(self, source: Any, shard: int) -> bytes:
        start, end = self.groups[shard]
        sentences, offset = self.sentences[start:end], int(self.starts[start])
        vectors = torch.empty(self.layers, int(self.starts[end]) - offset, self.width, dtype=torch.float16)
        for indices, flat in source.batches(sentences):
            at = [torch.arange(*self.starts[start + i : start + i + 2].tolist()) - offset for i in indices]
            vectors[:, torch.cat(at)] = F.normalize(flat.cpu().float(), dim=-1).half()
        parts = []
        for layer in range(self.layers):
            rows = vectors[layer, torch.from_numpy(self._tokens(shard, layer) - offset), : self._size(layer)].float()
            parts.append(F.normalize(rows, dim=-1).half().numpy().tobytes())
        return b"".join(parts)


def _at(tokens: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Where those of the wanted numbers stand that occur in an ascending array."""
    at = np.searchsorted(tokens, wanted)
    return at[(at < len(tokens)) & (np.append(tokens, -2)[at] == wanted)]


def _first_tokens(sentences: Sequence[list[str]]) -> dict[str, int]:
    """The first token of each distinct word, in the order of the text."""
    first: dict[str, int] = {}
    for token, word in enumerate(word for sentence in sentences for word in sentence):
        first.setdefault(word, token)
    return first


def _groups(starts: np.ndarray) -> list[tuple[int, int]]:
    """The first sentence of each shard, and the one after its last."""
    edges, last = [0], 0
    for sentence in range(1, len(starts)):
        if starts[sentence] - starts[last] >= SHARD or sentence == len(starts) - 1:
            edges.append(sentence)
            last = sentence
    return list(pairwise(edges))
