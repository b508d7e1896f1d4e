"""The exact nearest neighbours of words in their sentences among all words of a corpus, in each layer.

The corpus is read once for all queries, from the cache of layers where that is given. Layer 0 does not depend on the
context: there each distinct word counts once, at its first occurrence.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from elmo_bench.layers.cache import ActivationCache
from elmo_bench.layers.source import Layers, frozen_layers
from elmo_bench.system.terminal.bars import tracked

GROUP = 64  # sentences whose layers are read at once


class Query(NamedTuple):
    """A word in its sentence."""

    sentence: list[str]
    token: int

    @property
    def word(self) -> str:
        return self.sentence[self.token]


class Neighbour(NamedTuple):
    """A word of the corpus: its cosine, and its place."""

    cosine: float
    sentence: int
    token: int


def search(
    source: Layers, corpus: Sequence[list[str]], queries: Sequence[Query], number: int
) -> list[list[list[Neighbour]]]:
    """For each query and layer the nearest words, the nearest first.

    The words of the query's own sentence are no neighbours if the corpus has it; in layer 0 the word itself is none.
    """
    if isinstance(source, ActivationCache):
        source.prepare([*corpus, *(query.sentence for query in queries)])
    own = [frozen_layers(source, [query.sentence])[0, :, query.token].cpu() for query in queries]
    wanted = F.normalize(torch.stack(own), dim=-1)  # (Q, L, W)
    found: list[list[list[Neighbour]]] = [[[] for _ in range(source.n_layers)] for _ in queries]
    seen: set[str] = set()
    for start in tracked(range(0, len(corpus), GROUP), "neighbours"):
        group = corpus[start : start + GROUP]
        places = [(start + i, token) for i, sentence in enumerate(group) for token in range(len(sentence))]
        words = [word for sentence in group for word in sentence]
        first = [word not in seen and not seen.add(word) for word in words]
        cosines = torch.einsum("lnw,qlw->qln", F.normalize(_words(source, group), dim=-1), wanted)
        for query, near, by_layer in zip(queries, cosines, found, strict=True):
            context_free = [new and word != query.word for new, word in zip(first, words, strict=True)]
            others = [sentence != query.sentence for sentence in group for _ in sentence]
            for layer, each in enumerate(near):
                allowed = torch.tensor(others if layer else context_free)
                by_layer[layer] = _nearest(by_layer[layer], each, allowed, places, number)
    return found


def _words(source: Layers, group: Sequence[list[str]]) -> Tensor:
    """(L, N, W), the layers of all words of some sentences, one after another."""
    layers = frozen_layers(source, group).cpu()  # (B, L, T, W)
    return torch.cat([one[:, : len(sentence)] for one, sentence in zip(layers, group, strict=True)], dim=1)


def _nearest(
    known: list[Neighbour], cosines: Tensor, allowed: Tensor, places: Sequence[tuple[int, int]], number: int
) -> list[Neighbour]:
    """The nearest of those known and of more words, (N,) each, the nearest first."""
    best, at = cosines.masked_fill(~allowed, -2).topk(min(number, len(cosines)))
    more = [Neighbour(near, *places[i]) for near, i in zip(best.tolist(), at.tolist(), strict=True) if near > -2]
    return sorted([*known, *more], key=lambda one: (-one.cosine, one.sentence, one.token))[:number]
