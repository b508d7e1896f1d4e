"""The paper's Table 4: the exact nearest neighbours of words in their sentences among all words of a corpus, by layer.

The corpus is read once for all queries, from the cache of layers if there is one. Layer 0 does not depend on context:
there each distinct word counts once, at its first occurrence.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from torch.nn import functional as F

from elmo_bench.analysis.settings import NeighboursConfig
from elmo_bench.analysis.study import GROUP, Study, words_of
from elmo_bench.layers.cache import ActivationCache
from elmo_bench.layers.source import Layers, frozen_layers
from elmo_bench.records.studies import StudyCell, StudyRecord
from elmo_bench.system.console import tracked
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage.files import numbered_lines
from elmo_bench.text.columns import read_blocks

NOTE = (
    "The {number} nearest words by cosine among {tokens} words of text, in each layer, without those of the sentence "
    "itself. Layer 0 knows no context: its neighbours are words. Cosine: of the nearest and of the last neighbour. "
    "Same word: how many of the neighbours are the same word. Shown: the first {shown}, each in [ ] with the words "
    "around it. {scale}"
)
SHOWN, CONTEXT = 4, 3  # neighbours in a cell, and words on each side of one


def corpus(settings: NeighboursConfig) -> list[list[str]]:
    """The non-empty sentences of the text, up to `settings.tokens` tokens; a text without words is refused."""
    if settings.text is None:
        raise UserError("no text: give text=FILE, and format=columns if it has one word per line")
    path, sentences, tokens = Path(settings.text), [], 0
    if settings.format == "columns":
        listed = (block.column(settings.column) for block in read_blocks(path, comment="# "))
    else:
        listed = (line.split() for _, line in numbered_lines(path))
    for sentence in filter(None, listed):
        tokens += len(sentence)
        if settings.tokens is not None and tokens > settings.tokens:
            break
        sentences.append(sentence)
    if not sentences:
        raise UserError("contains no words", settings.text)
    return sentences


def measure(study: Study[NeighboursConfig], queries: Sequence[dict[str, str]] | None = None) -> StudyRecord:
    """The table of the settings' queries, or of others."""
    queries = study.settings.queries if queries is None else queries
    if not isinstance(queries, list) or not queries:
        raise UserError("no queries: give word=WORD and sentence='TOKEN TOKEN ...'")
    placed = [place(query) for query in queries]  # checks them before anything is computed
    (source,) = study.open(cached=True).values()
    sentences = corpus(study.settings)
    found = search(source, sentences, placed, study.settings.number)
    cells = [cell for query, near in zip(placed, found, strict=True) for cell in _cells(sentences, query, near)]
    words, note = sum(map(len, sentences)), study.run.scale.note
    note = NOTE.format(number=study.settings.number, tokens=words, shown=SHOWN, scale=note)
    return study.record(4, "nearest neighbours", note, cells)


def place(query: dict[str, str]) -> Query:
    """A query of the settings: the first occurrence of its word in its sentence."""
    if not isinstance(query, dict) or set(query) != {"word", "sentence"}:
        raise UserError("queries: each is {word: WORD, sentence: 'TOKEN TOKEN ...'}")
    word, sentence = str(query["word"]), str(query["sentence"]).split()
    if word not in sentence:
        raise UserError(f"word={word}: not in the sentence; its words are {' '.join(sentence) or 'none'}")
    return Query(sentence, sentence.index(word))


def _cells(corpus: Sequence[list[str]], query: Query, found: list[list[Neighbour]]) -> Iterator[StudyCell]:
    source = _in_context(*query, CONTEXT)
    for layer, near in enumerate(found):
        words = [corpus[one.sentence][one.token] for one in near]
        if near:
            yield StudyCell(source, "cosine, nearest", near[0].cosine, layer)
            yield StudyCell(source, "cosine, last", near[-1].cosine, layer)
        same = sum(word.lower() == query.word.lower() for word in words)
        yield StudyCell(source, "same word", same, layer, n=len(near))
        shown = [_in_context(corpus[one.sentence], one.token, CONTEXT if layer else 0) for one in near[:SHOWN]]
        yield StudyCell(source, "neighbours", 0, layer, text=" / ".join(shown))


def _in_context(sentence: Sequence[str], token: int, width: int) -> str:
    """A word in brackets with the words around it; alone, without brackets, if no context is wanted."""
    if not width:
        return sentence[token]
    before, after = sentence[max(0, token - width) : token], sentence[token + 1 : token + 1 + width]
    return " ".join([*before, f"[{sentence[token]}]", *after])


# The search.


class Query(NamedTuple):
    """A word in its sentence."""

    sentence: list[str]
    token: int

    @property
    def word(self) -> str:
        return self.sentence[self.token]


class Neighbour(NamedTuple):
    """A word of the corpus: its cosine, and its position."""

    cosine: float
    sentence: int
    token: int


def search(
    source: Layers, corpus: Sequence[list[str]], queries: Sequence[Query], number: int
) -> list[list[list[Neighbour]]]:
    """For each query and layer the nearest words, the nearest first.

    Words of the query's own sentence, if it is in the corpus, do not count as neighbours; in layer 0, neither does the
    word itself.
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
        cosines = torch.einsum("lnw,qlw->qln", F.normalize(words_of(source, group), dim=-1), wanted)
        for query, near, by_layer in zip(queries, cosines, found, strict=True):
            context_free = [new and word != query.word for new, word in zip(first, words, strict=True)]
            others = [sentence != query.sentence for sentence in group for _ in sentence]
            for layer, each in enumerate(near):
                allowed = each.masked_fill(~torch.tensor(others if layer else context_free), -2)
                best, at = (chosen.tolist() for chosen in allowed.topk(min(number, len(places))))
                more = [Neighbour(cosine, *places[i]) for cosine, i in zip(best, at, strict=True) if cosine > -2]
                near_first = sorted(by_layer[layer] + more, key=lambda one: (-one.cosine, one.sentence, one.token))
                by_layer[layer] = near_first[:number]
    return found
