"""Words as ids, padded to a rectangle: the input form of text for a model. Part of the contract in task.py."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from torch import Tensor


class Tokens(NamedTuple):
    """One text field of a batch, as a reader's `collate` emits it.

    `sentences[b]` has the words of row b of the tensors; T is the length of the longest row. If a row has several
    sentences (a paragraph), `parts[b]` may give the number of words in each: the biLM then reads them one by one.
    """

    words: Tensor  # (B, T) int64 into reader.vocabularies["words"]; 0 is padding
    chars: Tensor | None  # (B, T, C) int64 into reader.vocabularies["chars"], the task's own characters; 0 is padding
    sentences: list[list[str]]  # for the biLM, which makes its own character ids or looks up its cached layers
    mask: Tensor  # (B, T) bool, true on words
    parts: list[list[int]] | None = None  # None: each row is one sentence
    layers: Any = None  # `layers.shards.Stored`: the framework adds them to a batch if they are cached
    places: Tensor | None = None  # (N,) int64, the words' positions in the flattened (B, T); None: taken from the mask

    def each(self, change: Callable[[Tensor], Tensor]) -> Tokens:
        """A copy with every tensor changed: moved to a device, for example."""
        changed = {name: change(part) for name, part in self._asdict().items() if isinstance(part, Tensor)}
        return self._replace(**changed, layers=None if self.layers is None else self.layers.each(change))

    @property
    def lengths(self) -> list[int]:
        """The number of words of each row, known without reading a tensor."""
        return [len(sentence) for sentence in self.sentences]


def sentences_of(tokens: Tokens) -> list[list[tuple[str, ...]]]:
    """The sentences of each row, in the biLM's form."""
    if tokens.parts is None:
        return [[tuple(words)] for words in tokens.sentences]
    return [
        [tuple(words[end - length : end]) for length, end in zip(lengths, accumulate(lengths), strict=True)]
        for words, lengths in zip(tokens.sentences, tokens.parts, strict=True)
    ]


def lengths(rows: Iterable[Any], fields: Sequence[str]) -> list[int]:
    """Words in the longest field of each row."""
    return [max(sum(map(len, _sentences(row[field]))) for field in fields) for row in rows]


def sentences(splits: Iterable[Iterable[Any]], fields: Sequence[str]) -> Iterator[list[str]]:
    """All distinct sentences of the splits, in the biLM's form (many questions may share a paragraph)."""
    seen: set[tuple[str, ...]] = set()
    for rows in splits:
        for row in rows:
            for field in fields:
                for sentence in _sentences(row[field]):
                    if (key := tuple(sentence)) not in seen:
                        seen.add(key)
                        yield sentence


def _sentences(value: Any) -> Iterable[list[str]]:
    """A field contains words, or the sentences of a document."""
    return value if value and not isinstance(value[0], str) else [value]
