"""Plain text for a biLM: one tokenized sentence per line, concatenated into two streams of word types.

As in the release, the forward stream reads `<S> w1 .. wn` and predicts `w1 .. wn </S>`; the backward stream reads
`</S> wn .. w1` and predicts `wn .. w1 <S>`; sentences follow one another in the same order in both.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from elmo_bench.bilm.encoder import SENTENCE_BEGIN, SENTENCE_END
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage import json_text
from elmo_bench.system.storage.files import open_text

UNKNOWN = "<UNK>"
MARKS = (SENTENCE_BEGIN, SENTENCE_END, UNKNOWN)


class TextSource(NamedTuple):
    """A text file and how many tokens to use from its beginning (None: all)."""

    path: Path
    tokens: int | None = None

    def sentences(self) -> Iterator[list[str]]:
        """The words of each sentence."""
        check_text(self.path)
        taken = 0
        with open_text(self.path) as file:
            for words in filter(None, map(str.split, file)):
                if self.tokens is not None and taken + len(words) > self.tokens:
                    break
                taken += len(words)
                yield words
        if not taken:
            limit = "" if self.tokens is None else f" within the first {self.tokens} tokens"
            raise UserError(f"no sentence{limit}; expected one tokenized sentence per line", self.path)


def check_text(path: Path) -> None:
    """Raises `UserError` if a text begins with a line of JSON, whose keys and quotes would be words."""
    with open_text(path) as lines:
        first = next(lines, "")
    if json_text.begins_object(first) or json_text.begins_array(first):
        raise UserError("JSON, but plain text is needed: one whitespace-tokenized sentence per line", path, 1)


def sources(root: Path, text: Sequence[tuple[str, int | None]]) -> list[TextSource]:
    """The files of a list of (path, tokens) under a folder.

    A path may be a pattern (`news.en-*`) or a folder: all of its files in order of their names, hidden ones left out.
    The 1B Word Benchmark's `training-monolingual.tokenized.shuffled` is such a folder.
    """
    listed: list[TextSource] = []
    for name, tokens in text:
        path = root / name
        files = [path]
        if path.is_dir():
            files = _files(path, "*")
        elif any(sign in name for sign in "*?[") and not path.exists():
            files = _files(Path(path.anchor or "."), str(path.relative_to(path.anchor) if path.anchor else path))
        if not files:
            raise UserError("no such text; check the path and data_root", path)
        if tokens is not None and len(files) > 1:
            raise UserError(f"{tokens} tokens of {len(files)} files: name one file, or take all (null)", path)
        listed += [TextSource(file, tokens) for file in files]
    return listed


def _files(folder: Path, pattern: str) -> list[Path]:
    return sorted(p for p in folder.glob(pattern) if p.is_file() and not p.name.startswith("."))


class Stream(NamedTuple):
    """The inputs and targets of one direction: int32 arrays of equal length."""

    inputs: np.ndarray  # word types
    targets: np.ndarray  # vocabulary ids


@dataclass
class Corpus:
    """Sentences as word types.

    Attributes:
        types: distinct words, `<S>` and `</S>` first.
        tokens: int32 types of all sentences, one after another, without sentence markers.
        ends: int64, where each sentence ends in `tokens`.
    """

    types: list[str]
    tokens: np.ndarray
    ends: np.ndarray

    @classmethod
    def read(cls, sources: Sequence[TextSource], seed: int | None = None) -> Corpus:
        """Reads the sources in order and shuffles the sentences (seed None: no shuffling)."""
        ids: dict[str, int] = {SENTENCE_BEGIN: 0, SENTENCE_END: 1}
        tokens, ends = array("i"), array("q")
        for source in sources:
            for words in source.sentences():
                tokens.extend([ids.setdefault(word, len(ids)) for word in words])
                ends.append(len(tokens))
        whole = cls(list(ids), np.frombuffer(tokens, dtype=np.int32), np.frombuffer(ends, dtype=np.int64))
        return whole if seed is None else whole.shuffled(seed)

    def shuffled(self, seed: int) -> Corpus:
        """The same sentences in a random order determined by the seed."""
        order = np.random.default_rng(seed).permutation(len(self.ends))
        starts, lengths = np.append(0, self.ends[:-1])[order], np.diff(self.ends, prepend=0)[order]
        ends = np.cumsum(lengths)
        places = np.repeat(starts - (ends - lengths), lengths) + np.arange(len(self.tokens))
        return Corpus(self.types, self.tokens[places], ends)

    @property
    def counts(self) -> Counter[str]:
        """How often each word occurs, in order of first appearance."""
        numbers = np.bincount(self.tokens, minlength=len(self.types)).tolist()
        return Counter(dict(zip(self.types, numbers, strict=True)))

    def by_frequency(self, words: Sequence[str]) -> list[str]:
        """A given vocabulary sorted by frequency in this text, as the sampled softmax assumes.

        `<S>`, `</S>` and `<UNK>` come first; words that are not in the text come last, in the given order.
        """
        counts = self.counts
        return [*MARKS, *sorted((word for word in words if word not in MARKS), key=lambda word: -counts[word])]

    def targets(self, vocabulary: Sequence[str]) -> np.ndarray:
        """(types,) int32 vocabulary id of each type; that of `<UNK>` for types outside the vocabulary."""
        ids = {word: i for i, word in enumerate(vocabulary)}
        return np.array([ids.get(word, ids[UNKNOWN]) for word in self.types], dtype=np.int32)

    def unknown(self, vocabulary: Sequence[str]) -> tuple[int, int]:
        """How many of its words a vocabulary lacks: running words, and distinct ones."""
        lacking = self.targets(vocabulary) == vocabulary.index(UNKNOWN)  # (types,) bool
        return int(lacking[self.tokens].sum()), int(lacking[np.unique(self.tokens)].sum())

    def streams(self, vocabulary: Sequence[str]) -> tuple[Stream, Stream]:
        """The forward and the backward stream."""
        starts, to_target = np.concatenate([[0], self.ends[:-1]]), self.targets(vocabulary)
        mirror = np.repeat(starts + self.ends - 1, self.ends - starts) - np.arange(len(self.tokens))
        backward = self.tokens[mirror]  # each sentence reversed, the sentences in the same order
        return self._stream(self.tokens, 0, 1, to_target), self._stream(backward, 1, 0, to_target)

    def _stream(self, tokens: np.ndarray, first: int, last: int, to_target: np.ndarray) -> Stream:
        starts = np.concatenate([[0], self.ends[:-1]])
        inputs = np.insert(tokens, starts, first)  # the marker that opens each sentence
        following = np.append(inputs[1:], first)
        following = np.where(following == first, last, following)  # the marker that closes it
        return Stream(inputs, to_target[following])


def most_frequent(counts: Counter[str], size: int | None = None, least: int = 1) -> list[str]:
    """A vocabulary: `<S>`, `</S>`, `<UNK>`, then the words by frequency, ties in order of first appearance.

    Args:
        counts: the count of each word.
        size: maximum number of words, including the markers.
        least: words with a smaller count are left out.
    """
    words = [word for word, number in counts.most_common() if number >= least and word not in MARKS]
    return [*MARKS, *words][:size]
