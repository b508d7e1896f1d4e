"""Padding sentences into tensors, the base class of the tasks' readers, and grouping sentences into batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
import torch
from torch import Tensor

from elmo_bench.text.tokens import Tokens
from elmo_bench.text.vocabulary import Vocabulary


def pad(rows: Sequence[Sequence[int]]) -> Tensor:
    """Lists of ids -> (B, T) int64, padded at the end with 0."""
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    padded = np.zeros((len(rows), lengths.max(initial=0)), dtype=np.int64)
    padded[np.arange(padded.shape[1]) < lengths[:, None]] = np.fromiter(chain.from_iterable(rows), np.int64)
    return torch.from_numpy(padded)


def pad_tokens(
    sentences: Sequence[Sequence[str]],
    words: Vocabulary,
    chars: Vocabulary | None = None,
    *,
    lower: bool = False,
    char_limit: int = 50,
) -> Tokens:
    """One text field of a batch.

    Args:
        sentences: B lists of words, none empty.
        words: ids of words, looked up in lower case if `lower`.
        chars: ids of characters, which keep their case; None leaves them out.
        char_limit: maximum number of characters of a word; the rest is cut off.
    """
    sentences = [list(sentence) for sentence in sentences]
    ids = pad([[words[word.lower() if lower else word] for word in sentence] for sentence in sentences])  # (B, T)
    lengths = torch.tensor([len(sentence) for sentence in sentences])
    mask = torch.arange(ids.shape[1]) < lengths.unsqueeze(1)  # (B, T)
    known = None if chars is None else _characters(sentences, chars, mask, char_limit)
    return Tokens(ids, known, sentences, mask, places=mask.flatten().nonzero().squeeze(1))


def _characters(sentences: list[list[str]], chars: Vocabulary, mask: Tensor, limit: int) -> Tensor:
    numbers: dict[str, int] = {}  # each distinct word is looked up once
    places = [numbers.setdefault(word, len(numbers)) for sentence in sentences for word in sentence]
    rows = pad([[chars[char] for char in word[:limit]] for word in numbers])  # (distinct words, C)
    out = rows.new_zeros(*mask.shape, rows.shape[1])
    out[mask] = rows[places]
    return out  # (B, T, C)


class TextReader:
    """Base of the readers: looks words and labels up in vocabularies.

    Attributes:
        data: `task.data`; its `columns` maps the names of table columns: {ours: theirs}.
        vocabularies: of the training split, by name, "words" and perhaps others; none before `load`.
        lower: look words up in lower case; characters always keep their case.
        char_limit: longer words are cut to this many characters.
    """

    data: Mapping[str, Any]
    lower: bool
    char_limit: int = 50

    @property
    def columns(self) -> dict[str, str]:
        return dict(self.data.get("columns") or {})

    @cached_property
    def vocabularies(self) -> dict[str, Vocabulary]:
        return {}

    def text(self, sentences: Sequence[Sequence[str]]) -> Tokens:
        """One text field of a batch."""
        words, chars = self.vocabularies["words"], self.vocabularies.get("chars")
        return pad_tokens(sentences, words, chars, lower=self.lower, char_limit=self.char_limit)

    def gold(
        self, rows: Sequence[Mapping[str, Any]], key: str, ids: Callable[[Any], Any] = lambda value: value
    ) -> dict[str, Tensor]:
        """The label `key` of a batch, int64: the `ids` of each row's value; nothing if a row has no value."""
        given = [row.get(key) for row in rows]
        return {} if None in given else {key: torch.tensor(list(map(ids, given)))}

    def gold_tags(self, rows: Sequence[Mapping[str, Any]], sentences: Callable[[Any], Any]) -> dict[str, Tensor]:
        """The label "tags" of a batch, (B, T) int64, 0 (O) at padding and for tags unknown in training; as `gold`.

        Args:
            rows: rows with "tags".
            sentences: maps a row's "tags" to the tags of each of its lines in the batch.
        """
        given, known = [row.get("tags") for row in rows], self.vocabularies["labels"]
        if None in given:
            return {}
        lines = [tags for each in given for tags in sentences(each)]
        return {"tags": pad([[known[tag if tag in known else "O"] for tag in tags] for tags in lines])}


class BucketSampler:
    """Batches of sentences of similar length, in random order.

    The batches are a pure function of (lengths, seed, epoch), the same on every machine, so a resumed run sees the same
    batches as an uninterrupted one. Their number and sizes are the same in every epoch: sentences are shuffled, sorted
    by length rounded up to a multiple of `step` and cut into batches, which are then shuffled.

    Args:
        lengths: the lengths of the sentences, by index.
        batch_size: maximum number of sentences in a batch.
        seed: the seed of the shuffling.
        token_budget: maximum number of padded tokens (sentences x rounded length) in a batch; a longer sentence is a
            batch by itself. None: no limit.
        shuffle: False orders the sentences by rounded length, longest first, so that an evaluation reaches its peak
            memory at the start.
        step: the width of a bucket in tokens.
    """

    def __init__(
        self,
        lengths: Sequence[int],
        batch_size: int,
        seed: int = 0,
        token_budget: int | None = None,
        shuffle: bool = True,
        step: int = 4,
    ):
        if batch_size < 1:
            raise ValueError("batch_size must be 1 or more")
        self.rounded = -(-np.asarray(lengths, dtype=np.int64) // step) * step  # (N,)
        self.seed, self.shuffle = seed, shuffle
        self._cuts = self._cut(np.sort(self.rounded)[::-1], batch_size, token_budget)

    @staticmethod
    def _cut(rounded: np.ndarray, batch_size: int, token_budget: int | None) -> list[slice]:
        """The slices of the sentences, longest first, that form the batches; they depend on the lengths alone."""
        cuts, start = [], 0
        while start < len(rounded):
            longest = max(int(rounded[start]), 1)
            size = batch_size if token_budget is None else min(batch_size, max(token_budget // longest, 1))
            cuts.append(slice(start, min(start + size, len(rounded))))
            start += size
        return cuts

    def batches(self, epoch: int) -> list[list[int]]:
        """All batches of an epoch, with each index once."""
        if not self.shuffle:
            order = np.argsort(-self.rounded, kind="stable")
            return [order[cut].tolist() for cut in self._cuts]
        random = np.random.default_rng([self.seed, epoch])
        order = random.permutation(len(self.rounded))
        order = order[np.argsort(-self.rounded[order], kind="stable")]
        return [order[self._cuts[i]].tolist() for i in random.permutation(len(self._cuts))]

    def __len__(self) -> int:
        return len(self._cuts)
