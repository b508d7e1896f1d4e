"""How much of the dev and test sentences of the tasks stands in a text: what a biLM trained on it has read of them.

Words are compared without regard to capitals, and without tokens that have no letter or digit, since tokenizers differ
in quotes and dashes. Sequences of words are compared by hashes of 64 bits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from hydra.utils import instantiate

from elmo_bench.analysis import settings as pages_of_studies
from elmo_bench.analysis.settings import OverlapConfig
from elmo_bench.bilm.corpus import TextSource, numbered, sources
from elmo_bench.configuration import pages, schema
from elmo_bench.configuration.schema import RunConfig
from elmo_bench.identity.makers import maker
from elmo_bench.identity.missing import check_text
from elmo_bench.records import studies
from elmo_bench.records.studies import LONG, SHARED, StudyCell, StudyRecord
from elmo_bench.system import machine
from elmo_bench.system.storage.hashing import MEMORY, content_sha256
from elmo_bench.task import Reader
from elmo_bench.text.tokens import sentences

SPLITS = ("dev", "test")
TITLE = "What the biLM has read of dev and test"
NOTE = (
    "Distinct sentences of dev and test, and {words:,} words of text ({text}): how many sentences stand whole in the "
    "text, and how many of those with at least {n} words have {n} running words in common with it. Capitals, and "
    "tokens without a letter or digit, do not count."
)
BASE = np.uint64(0x9E3779B97F4A7C15)  # odd, of the golden ratio: its powers mix the 64 bits well


@dataclass
class Hashed:
    """Sentences as hashes of their words.

    Attributes:
        words: (N,) uint64, a hash of each word that has a letter or digit, of all sentences one after another.
        ends: (S,) int64, where each sentence ends.
    """

    words: np.ndarray
    ends: np.ndarray

    @classmethod
    def of(cls, types: Sequence[str], tokens: np.ndarray, ends: np.ndarray) -> Hashed:
        """From the distinct words, their number at each place of the text, and the ends of sentences."""
        hashes = np.array([_hash(word) for word in types], dtype=np.uint64)
        counted = np.array([any(map(str.isalnum, word)) for word in types], dtype=bool)[tokens]
        return cls(hashes[tokens][counted], np.concatenate([[0], np.cumsum(counted)])[ends])

    @property
    def lengths(self) -> np.ndarray:
        """(S,) how many words each sentence has."""
        return np.diff(self.ends, prepend=0)

    def whole(self) -> np.ndarray:
        """(S,) a hash of each sentence; 0 for one without words."""
        lengths = self.lengths
        places = np.arange(len(self.words)) - np.repeat(self.ends - lengths, lengths)
        terms = np.append(self.words * _powers(int(lengths.max(initial=1)))[places], np.uint64(0))
        sums = np.add.reduceat(terms, self.ends - lengths) if len(lengths) else terms[:0]
        return np.where(lengths > 0, sums, np.uint64(0))

    def runs(self, n: int) -> tuple[np.ndarray, np.ndarray]:
        """(M,) a hash of every `n` running words of one sentence, and (M,) the number of that sentence."""
        number = np.repeat(np.arange(len(self.ends)), self.lengths)
        if len(self.words) < n:
            return self.words[:0], number[:0]
        count, powers = len(self.words) - n + 1, _powers(n)
        sums = np.zeros(count, dtype=np.uint64)
        for offset in range(n):
            sums += self.words[offset : offset + count] * powers[offset]
        inside = number[:count] == number[n - 1 :]
        return sums[inside], number[:count][inside]


def _hash(word: str) -> int:
    return int.from_bytes(blake2b(word.lower().encode(), digest_size=8).digest(), "little") | 1


def _powers(length: int) -> np.ndarray:
    return np.cumprod(np.full(length, BASE))


def of_sentences(listed: Iterable[Sequence[str]]) -> Hashed:
    """Distinct sentences, given as lists of words."""
    types: dict[str, int] = {}
    kept = list(dict.fromkeys(map(tuple, listed)))
    tokens = np.array([types.setdefault(word, len(types)) for words in kept for word in words], dtype=np.int64)
    return Hashed.of(list(types), tokens, np.cumsum([len(words) for words in kept], dtype=np.int64))


@dataclass
class OverlapRequest:
    """Which tasks and which text are compared.

    Attributes:
        runs: one for each task, of one scale.
        text: the files.
        settings: of the study.
    """

    runs: list[RunConfig]
    text: list[TextSource]
    settings: OverlapConfig

    @classmethod
    def of(cls, arguments: Sequence[str]) -> OverlapRequest:
        """From the arguments of the command, with generated data made.

        Raises:
            UserError: a wrong argument, or missing files.
        """
        run, settings = pages_of_studies.read("overlap", OverlapConfig, arguments)
        overrides = [each for each in arguments if each.partition("=")[0] not in pages_of_studies.names(OverlapConfig)]
        named = pages.tasks() if settings.task == "all" else [settings.task]
        runs = [schema.typed(pages.compose([*overrides, f"task={task}"])) for task in named]
        runs = [each for each in runs if run.scale.name in each.task.scales]
        for each in runs:
            check_text(each)
        if made := maker(run.scale, run.places):
            made.make()
        listed = [settings.text] if isinstance(settings.text, str) else settings.text
        return cls(runs, sources(Path(), [(text, None) for text in listed]), settings)

    @cached_property
    def plain(self) -> dict[str, Any]:
        """All that the result depends on."""
        memory = Path(self.runs[0].cache_root) / MEMORY
        digests = [content_sha256(each.path, memory) for each in self.text]
        return {"text": digests, "task": self.settings.task, "words": self.settings.words}


def measure(request: OverlapRequest) -> StudyRecord:
    """The table.

    Raises:
        UserError: missing or malformed data.
    """
    n, run = request.settings.words, request.runs[0]
    of = {(each.task.name, split): hashed for each in request.runs for split, hashed in _splits(each).items()}
    wanted = [
        np.unique(np.concatenate(parts))
        for parts in zip(*((hashed.whole(), hashed.runs(n)[0]) for hashed in of.values()), strict=True)
    ]
    whole, running, words = np.array([], dtype=np.uint64), np.array([], dtype=np.uint64), 0
    for source in request.text:
        corpus = numbered(source)
        there = Hashed.of(corpus.types, corpus.tokens, corpus.ends)
        words += len(there.words)
        whole = np.union1d(whole, np.intersect1d(wanted[0], there.whole()))
        running = np.union1d(running, np.intersect1d(wanted[1], there.runs(n)[0]))
    cells = [cell for key, hashed in of.items() for cell in _cells(*key, _counts(hashed, whole, running, n))]
    note = NOTE.format(text=", ".join(each.path.name for each in request.text), words=words, n=n)
    return StudyRecord(run.scale.name, "overlap", TITLE, note, cells, settings=request.plain)


def _splits(run: RunConfig) -> dict[str, Hashed]:
    """The dev and test sentences of a task, as a biLM reads them."""
    reader: Reader = instantiate(run.task.reader)
    loaded = reader.load()
    return {split: of_sentences(sentences([loaded[split]], reader.fields)) for split in SPLITS}


def _counts(hashed: Hashed, whole: np.ndarray, running: np.ndarray, n: int) -> dict[str, int]:
    hashes, number = hashed.runs(n)
    return {
        "sentences": int((hashed.lengths > 0).sum()),
        "whole in the text": int((np.isin(hashed.whole(), whole) & (hashed.lengths > 0)).sum()),
        LONG: int((hashed.lengths >= n).sum()),
        SHARED: len(np.unique(number[np.isin(hashes, running)])),
    }


def _cells(task: str, split: str, counts: Mapping[str, int]) -> list[StudyCell]:
    cells = [StudyCell(task, quantity, count, split=split) for quantity, count in counts.items()]
    if counts[LONG]:
        cells.append(StudyCell(task, "in common, %", 100 * counts[SHARED] / counts[LONG], split=split, n=counts[LONG]))
    return cells


def write(record: StudyRecord, request: OverlapRequest) -> StudyRecord:
    """Writes and returns the record of what was measured."""
    return studies.write(record, request.runs[0].results_root, machine.circumstances("cpu"))
