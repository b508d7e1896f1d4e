"""The number of dev and test sentences of the tasks that occur in a text, such as a biLM's training text.

The comparison ignores case and tokens without a letter or digit, since tokenizers differ in quotes and dashes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from hydra.utils import instantiate

from elmo_bench.analysis.settings import OverlapConfig, read
from elmo_bench.bilm.corpus import sources
from elmo_bench.configuration import composing, pages
from elmo_bench.configuration.keys import fields
from elmo_bench.records import studies
from elmo_bench.records.missing import check_files
from elmo_bench.records.settings import maker
from elmo_bench.records.studies import LONG, SHARED, StudyCell, StudyRecord
from elmo_bench.system import machine
from elmo_bench.system.storage.hashing import MEMORY, content_sha256, fingerprint
from elmo_bench.task import Reader
from elmo_bench.text.tokens import sentences

SPLITS = ("dev", "test")
TITLE = "What the biLM has read of dev and test"
NOTE = (
    "Distinct sentences of dev and test, and {words:,} words of text ({text}): how many sentences stand whole in the "
    "text, and how many of those with at least {n} words have {n} running words in common with it. Capitals, and "
    "tokens without a letter or digit, do not count."
)
Words = tuple[str, ...]


def normalized(sentence: Iterable[str]) -> Words:
    """The compared words of a sentence, in lower case."""
    return tuple(filter(None, map(_form, sentence)))


@lru_cache(1 << 16)
def _form(word: str) -> str:
    """The compared form of a word; empty if it is left out."""
    return word.lower() if any(map(str.isalnum, word)) else ""


def ngrams(words: Words, n: int) -> Iterator[Words]:
    """Every `n` consecutive words of a sentence."""
    return zip(*(words[start:] for start in range(n)), strict=False)


class Overlap(NamedTuple):
    """The overlap of a text with given sentences.

    Attributes:
        sentences: the given sentences that occur in it as a whole.
        ngrams: the n-grams of given sentences that occur in one of its sentences.
        words: the number of its words.
    """

    sentences: set[Words]
    ngrams: set[Words]
    words: int


def common(text: Iterable[Iterable[str]], given: Iterable[Words], n: int) -> Overlap:
    """Reads the sentences of a text once; the given ones are `normalized`."""
    wanted = set(given)
    known = {each for words in wanted for each in ngrams(words, n)}
    found, shared, number = set[Words](), set[Words](), 0
    for words in map(normalized, text):
        number += len(words)
        found |= wanted & {words}
        shared |= known.intersection(ngrams(words, n))
    return Overlap(found, shared, number)


def counts(given: Sequence[Words], text: Overlap, n: int) -> dict[str, int]:
    """The numbers of given sentences that a text contains, as a whole and in part."""
    return {
        "sentences": sum(map(bool, given)),
        "whole in the text": sum(words in text.sentences for words in given if words),
        LONG: sum(len(words) >= n for words in given),
        SHARED: sum(not text.ngrams.isdisjoint(ngrams(words, n)) for words in given),
    }


def write(arguments: Sequence[str]) -> tuple[StudyRecord, str]:
    """Measures the overlap for the arguments of the command, and writes its record; missing generated data are made.

    Returns:
        the record, and its folder of results.
    """
    run, settings = read("overlap", OverlapConfig, arguments)
    overrides = [each for each in arguments if each.partition("=")[0] not in fields(OverlapConfig)]
    named = pages.tasks() if settings.task == "all" else [settings.task]
    runs = [composing.run_config([*overrides, f"task={task}"]) for task in named]
    runs = [each for each in runs if run.scale.name in each.task.scales]
    for each in runs:
        check_files(each, text_alone=True)
    if generator := maker(run.scale, run):
        generator.make()
    listed = [settings.text] if isinstance(settings.text, str) else settings.text
    text, n, memory = sources(Path(), [(each, None) for each in listed]), settings.words, Path(run.cache_root) / MEMORY
    given: dict[tuple[str, str], list[Words]] = {}
    for task in (each.task for each in runs):
        reader: Reader = instantiate(task.reader)
        splits = reader.load()
        for split in SPLITS:
            given[task.name, split] = [*map(normalized, sentences([splits[split]], reader.fields))]  # as a biLM reads
    found = common(chain.from_iterable(each.sentences() for each in text), chain.from_iterable(given.values()), n)
    cells = []
    for (task, split), words in given.items():
        numbers = counts(words, found, n)
        cells += [StudyCell(task, quantity, number, split=split) for quantity, number in numbers.items()]
        if long := numbers[LONG]:
            cells.append(StudyCell(task, "in common, %", 100 * numbers[SHARED] / long, split=split, n=long))
    note = NOTE.format(text=", ".join(each.path.name for each in text), words=found.words, n=n)
    texts = [content_sha256(each.path, memory) for each in text]
    identity = {"text": texts, "task": settings.task, "sentences": fingerprint([*given.items()]), "words": n}
    record = StudyRecord(run.scale.name, "overlap", TITLE, note, cells, settings=identity)
    return studies.write(record, run.results_root, machine.circumstances("cpu")), run.results_root
