"""Word senses by the nearest sense mean (section 5.3 of the paper), and their official score.

The vectors of all occurrences of a sense are averaged, layer by layer. A word of the test gets the sense whose mean is
nearest by cosine, among the senses of its lemma and part of speech; a word that the training text lacks gets its first
sense. An expression of several words has the mean of their vectors.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from elmo_bench.analysis.corpora.inventory import Word, frequencies
from elmo_bench.analysis.corpora.senses import Instance, SenseSentence
from elmo_bench.metrics.items import ratio
from elmo_bench.system.terminal.bars import tracked

GROUP = 2048  # sentences given to the source of layers at once: bounds the memory
TIE = 1e-5  # cosines no further apart are equal: layer 0 gives a form the same vector in every sentence


class Means(NamedTuple):
    """The mean vector of each sense.

    Attributes:
        vectors: (senses, L, W), of unit length.
        rows: of the senses of each word, by their keys, the most frequent sense first.
    """

    vectors: Tensor
    rows: dict[Word, dict[str, int]]


def occurrences(source: Any, sentences: Sequence[SenseSentence], what: str) -> Iterator[tuple[int, Instance, Tensor]]:
    """The number of its sentence, and the vectors (L, W), of every instance; numbers rounded to float16."""
    chosen = [i for i, sentence in enumerate(sentences) if sentence.instances]
    groups = [chosen[at : at + GROUP] for at in range(0, len(chosen), GROUP)]
    for group in tracked(groups, what):
        words = [sentences[i].words for i in group]
        for indices, flat in source.batches(words):
            pieces = flat.half().float().cpu().split([len(words[i]) for i in indices], dim=1)
            for i, layers in zip(indices, pieces, strict=True):  # layers: (L, T, W)
                for one in sentences[group[i]].instances:
                    yield group[i], one, layers[:, one.start : one.end].mean(dim=1)


def means(source: Any, sentences: Sequence[SenseSentence]) -> Means:
    """The mean of every sense that occurs in the sentences; an instance with several keys counts for each."""
    row = count()
    rows = {word: {key: next(row) for key, _ in keys.most_common()} for word, keys in frequencies(sentences).items()}
    sums = torch.zeros(sum(map(len, rows.values())), source.n_layers, source.width)
    for _, instance, vectors in occurrences(source, sentences, "sense means"):
        for key in instance.keys:
            sums[rows[instance.word][key]] += vectors
    return Means(F.normalize(sums, dim=-1), rows)


def nearest(known: Means, word: Word, vectors: Tensor) -> list[str] | None:
    """The nearest sense of a word in each layer, of equally near ones the most frequent; None for an unknown word.

    Args:
        vectors: (L, W).
    """
    if not (senses := known.rows.get(word)):
        return None
    keys, rows = list(senses), list(senses.values())
    near = torch.einsum("slw,lw->ls", known.vectors[rows], vectors)  # (L, senses)
    equal = near >= near.max(dim=1, keepdim=True).values - TIE * vectors.norm(dim=1, keepdim=True)
    return [keys[i] for i in equal.int().argmax(dim=1).tolist()]  # the first that is near enough


def counted(answer: str | None, gold: Sequence[str]) -> tuple[bool, bool, int]:
    """What an answer, or none, adds to the counts: right, attempted, and an instance; any of the gold keys is right."""
    return answer in gold, answer is not None, 1


def scores(counts: np.ndarray) -> dict[str, float]:
    """Precision over the attempted instances, recall over all, and the share that is attempted, in percent.

    Args:
        counts: (sentences, 3), right and attempted answers, and instances.
    """
    right, attempted, total = counts.sum(axis=0)
    return {
        "precision": ratio(100 * right, attempted),
        "recall": ratio(100 * right, total),
        "attempted": ratio(100 * attempted, total),
    }


def f1(sums: np.ndarray) -> np.ndarray:
    """The official F1 in percent: of right / attempted and right / total. (D, 3) -> (D,)."""
    right, attempted, total = sums.T
    return 200 * right / np.maximum(attempted + total, 1)


def disambiguate(
    source: Any, train: Sequence[SenseSentence], test: Sequence[SenseSentence], first: Mapping[Word, str]
) -> np.ndarray:
    """(L, sentences, 3) the counts of each layer of a source: right and attempted answers, and instances."""
    known = means(source, train)
    counts = np.zeros((source.n_layers, len(test), 3))
    for sentence, instance, vectors in occurrences(source, test, "answers"):
        answers = nearest(known, instance.word, vectors) or [first.get(instance.word)] * source.n_layers
        counts[:, sentence] += [counted(answer, instance.keys) for answer in answers]
    return counts


def first_sense(test: Sequence[SenseSentence], first: Mapping[Word, str]) -> np.ndarray:
    """(sentences, 3) the counts of the baseline that gives every word its first sense."""
    counts = np.zeros((len(test), 3))
    for i, sentence in enumerate(test):
        for instance in sentence.instances:
            counts[i] += counted(first.get(instance.word), instance.keys)
    return counts
