"""Splits words into the pieces that a Hugging Face model reads, and long sentences into windows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from torch import Tensor

from elmo_bench.layers.source import Sentences
from elmo_bench.system.errors import UserError

Pieces = list[int]  # of one word


class Window(NamedTuple):
    """One input of a model: a sentence, or a part of a long one.

    Attributes:
        ids: all pieces, including the tokenizer's special tokens around them.
        starts: the position of each word's first piece in `ids`.
        counts: the number of pieces of each word, at least 1.
    """

    ids: list[int]
    starts: list[int]
    counts: list[int]


class WordPieces:
    """A tokenizer's pieces of words that are given one by one.

    Every word has at least one piece: a word for which the tokenizer gives no piece (empty, or only control characters)
    is read as the unknown piece, or as "?" if the tokenizer has no unknown piece.

    Args:
        tokenizer: a fast one of `transformers`.
        limit: the most pieces, special tokens included, that the model reads at once; None: any number.

    Raises:
        UserError: the tokenizer gives no pieces, or the limit leaves no room for them.
    """

    def __init__(self, tokenizer: Any, limit: int | None):
        self.tokenizer = tokenizer
        sample = tokenizer([["a"]], is_split_into_words=True)
        ids = sample["input_ids"][0]
        inside = [place for place, word in enumerate(sample.word_ids(0)) if word is not None]
        if not inside:
            raise UserError("the tokenizer has no piece for the letter a, nor an unknown piece")
        self.before, self.after = ids[: inside[0]], ids[inside[-1] + 1 :]  # special tokens
        self.room = None if limit is None else limit - len(self.before) - len(self.after)
        if self.room is not None and self.room < 1:
            raise UserError(f"the model reads {limit} pieces at most, which its special tokens fill")
        unknown = tokenizer.unk_token_id
        self.unknown: Pieces = [unknown] if unknown is not None else self._encode(["?"])[0][:1]

    def windows(self, sentences: Sentences) -> list[list[Window]]:
        """The windows of each sentence: one, or the fewest possible for a sentence beyond the limit.

        A sentence is cut between words, without overlap; only a word that is too long for a window loses its last
        pieces. An empty sentence has no window.
        """
        words = list(dict.fromkeys(word for sentence in sentences for word in sentence))
        pieces = dict(zip(words, self._encode(words), strict=True))
        return [list(self._windows([pieces[word] for word in sentence])) for sentence in sentences]

    def _encode(self, words: Sequence[str]) -> list[Pieces]:
        """The pieces of each word, without special tokens."""
        if not words:
            return []
        texts = [[word.encode("utf-8", "replace").decode()] for word in words]  # a lone surrogate becomes "?"
        encoded = self.tokenizer(texts, is_split_into_words=True, add_special_tokens=False, verbose=False)["input_ids"]
        return [ids or self.unknown for ids in encoded]

    def _windows(self, words: Sequence[Pieces]) -> Iterator[Window]:
        chosen: list[Pieces] = []
        size = 0
        for pieces in words:
            pieces = pieces[: self.room]
            if self.room is not None and size + len(pieces) > self.room:
                yield self._window(chosen)
                chosen, size = [], 0
            chosen.append(pieces)
            size += len(pieces)
        if chosen:
            yield self._window(chosen)

    def _window(self, words: Sequence[Pieces]) -> Window:
        ids, starts = list(self.before), []
        for pieces in words:
            starts.append(len(ids))
            ids += pieces
        return Window(ids + self.after, starts, [len(pieces) for pieces in words])


def pool(hidden: Tensor, starts: Tensor, counts: Tensor, pooling: str) -> Tensor:
    """The vectors of words from those of their pieces.

    Args:
        hidden: (L, P, W), all layers of all pieces.
        starts: (N,) position in P of each word's first piece; the others follow it.
        counts: (N,) number of pieces of each word.
        pooling: "first" takes the first piece's vector; "mean" the mean over the word's pieces.

    Returns:
        (L, N, W).
    """
    vectors = hidden[:, starts]
    if pooling == "first":
        return vectors
    for k in range(1, int(counts.max())):  # each word at most once per iteration: the order of the sums is fixed
        longer = (counts > k).nonzero().squeeze(1)  # (n,)
        vectors = vectors.index_add(1, longer, hidden[:, starts[longer] + k])
    return vectors / counts[:, None]
