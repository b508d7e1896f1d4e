"""The paper's Table 5: word senses by the nearest sense mean (section 5.3), and their official score.

The vectors of all occurrences of a sense are averaged, layer by layer. A word of the test gets the sense whose mean is
nearest by cosine, among the senses of its lemma and part of speech; a word that the training text lacks gets its first
sense. An expression of several words has the mean of their vectors.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import count, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from elmo_bench.analysis import senses
from elmo_bench.analysis.senses import Instance, SenseSentence, Word, frequencies
from elmo_bench.analysis.settings import WsdConfig
from elmo_bench.analysis.study import Score, Study, clusters
from elmo_bench.metrics.items import ratio
from elmo_bench.records.studies import StudyCell, StudyRecord
from elmo_bench.system.errors import UserError
from elmo_bench.system.terminal.streams import tracked
from elmo_bench.text.vocabulary import coverage

NOTE = (
    "Fine-grained F1 in percent over {instances} instances: precision over the attempted instances, recall over all; "
    "any of several gold keys is right. An instance has the sense whose mean over {train} sentences is nearest "
    "by cosine, or its first sense if these lack the word. 95 % intervals over the {clusters} of test. {scale}"
)
FIRST = "first sense"
HARDLY = 0.1  # the share of the words from which on an inventory is taken to be meant for a text
AT_ONCE = 2048  # sentences given to the source of layers at once: bounds the memory
TIE = 1e-5  # cosines no further apart are equal: layer 0 gives a form the same vector in every sentence


def load(settings: WsdConfig, split: str) -> list[SenseSentence]:
    """The sentences of train or test. Raises `UserError` for malformed files, or a file without senses."""
    keys = [split] if settings.format == "columns" else [split, f"{split}_senses"]
    named = [getattr(settings, key) for key in keys]
    if None in named:
        raise UserError(f"format={settings.format} needs {split}=FILE and {split}_senses=FILE")
    read = {"columns": senses.read_columns, "xml": senses.read_xml, "mini": senses.read_mini}[settings.format]
    found = list(islice(read(*map(Path, named)), settings.sentences))
    if not any(sentence.instances for sentence in found):
        raise UserError("holds no word with a sense", named[0])
    return found


def measure(study: Study[WsdConfig]) -> StudyRecord:
    """The table."""
    train, test = (load(study.settings, split) for split in ("train", "test"))
    first, documents = _first(study.settings, train, test), [sentence.document for sentence in test]
    counts = first_sense(test, first)
    cells = _cells(study, FIRST, counts[None], documents)
    for name, source in study.open(cached=False).items():
        cells += _cells(study, name, disambiguate(source, train, test, first), documents)
    note = NOTE.format(
        instances=int(counts[:, 2].sum()), train=len(train), clusters=clusters(documents), scale=study.run.scale.note
    )  # fmt: skip
    return study.record(5, "word senses", note, cells)


def _first(settings: WsdConfig, train: list[SenseSentence], test: list[SenseSentence]) -> dict[tuple[str, str], str]:
    """The first senses: of the inventory, whose keys are then required, or of the training text."""
    if settings.inventory is None:
        return senses.first_senses(train)
    path = Path(settings.inventory)
    numbers = senses.read_index(path)
    for split, sentences in (("train", train), ("test", test)):
        gold = getattr(settings, f"{split}_senses") or getattr(settings, split)
        senses.check_keys(sentences, numbers, path, Path(gold))
    first = senses.first_of_index(numbers)
    words = [instance.word for sentence in test for instance in sentence.instances]
    mend = "is it index.sense of the WordNet that the keys are of, the first sense numbered 1?"
    known = sum(word in first for word in words)
    print(coverage(path, known, len(words), "first senses of the words of test", HARDLY, mend), file=sys.stderr)
    return first


def _cells(study: Study[WsdConfig], name: str, counts: np.ndarray, documents: list[str | None]) -> list[StudyCell]:
    """Of one source of layers, or of the first senses, which have none."""
    cells = study.by_layer(name, "F1", [Score(each[None], documents, f1) for each in counts], name != FIRST)
    for number, each in enumerate(counts):
        layer = None if name == FIRST else number
        cells += [StudyCell(name, quantity, value, layer) for quantity, value in scores(each).items()]
    return cells


# The method and its score.


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
    groups = [chosen[at : at + AT_ONCE] for at in range(0, len(chosen), AT_ONCE)]
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
    """The nearest sense to (L, W) vectors in each layer, of equal ones the most frequent; None for an unknown word."""
    if not (rows_of := known.rows.get(word)):
        return None
    keys, rows = list(rows_of), list(rows_of.values())
    near = torch.einsum("slw,lw->ls", known.vectors[rows], vectors)  # (L, senses)
    equal = near >= near.max(dim=1, keepdim=True).values - TIE * vectors.norm(dim=1, keepdim=True)
    return [keys[i] for i in equal.int().argmax(dim=1).tolist()]  # the first that is near enough


def counted(answer: str | None, gold: Sequence[str]) -> tuple[bool, bool, int]:
    """What an answer, or none, adds to the counts: right, attempted, and an instance; any of the gold keys is right."""
    return answer in gold, answer is not None, 1


def scores(counts: np.ndarray) -> dict[str, float]:
    """Precision over the attempted instances, recall over all, and the share that is attempted, in percent.

    Of (sentences, 3) counts: right and attempted answers, and instances.
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
