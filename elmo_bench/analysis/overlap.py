"""How much of the dev and test sentences of the tasks stands in a text: what a biLM trained on it has read of them.

Words are compared without regard to capitals, and without tokens that have no letter or digit, since tokenizers differ
in quotes and dashes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from hydra.utils import instantiate

from elmo_bench.analysis import settings as pages_of_studies
from elmo_bench.analysis.settings import OverlapConfig
from elmo_bench.bilm.corpus import TextSource, sources
from elmo_bench.configuration import composing, pages
from elmo_bench.configuration.schema import RunConfig
from elmo_bench.identity.missing import check_text
from elmo_bench.identity.settings import maker
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
Words = tuple[str, ...]


def counted(sentence: Iterable[str]) -> Words:
    """The words of a sentence that count, in lower case."""
    return tuple(filter(None, map(_form, sentence)))


@lru_cache(1 << 16)
def _form(word: str) -> str:
    """How a word is compared; empty if it does not count."""
    return word.lower() if any(map(str.isalnum, word)) else ""


def runs(words: Words, n: int) -> Iterator[Words]:
    """Every `n` running words of a sentence."""
    return zip(*(words[start:] for start in range(n)), strict=False)


class Overlap(NamedTuple):
    """What a text has in common with the sentences that were asked about.

    Attributes:
        whole: those that stand whole in it.
        running: their sequences of n running words that one of its sentences has.
        words: how many words it has.
    """

    whole: set[Words]
    running: set[Words]
    words: int


def common(text: Iterable[Iterable[str]], asked: Iterable[Words], n: int) -> Overlap:
    """Reads the sentences of a text once; `asked` has sentences as `counted` gives them."""
    wanted = set(asked)
    running = {run for words in wanted for run in runs(words, n)}
    found, shared, number = set[Words](), set[Words](), 0
    for words in map(counted, text):
        number += len(words)
        found |= wanted & {words}
        shared |= running.intersection(runs(words, n))
    return Overlap(found, shared, number)


def write(arguments: Sequence[str]) -> tuple[StudyRecord, str]:
    """Measures what the arguments of the command ask for, with generated data made, and writes its record.

    Returns:
        the record, and the folder of results that it is in.

    Raises:
        UserError: a wrong argument, missing or malformed data.
    """
    run, settings = pages_of_studies.read("overlap", OverlapConfig, arguments)
    overrides = [each for each in arguments if each.partition("=")[0] not in pages_of_studies.names(OverlapConfig)]
    named = pages.tasks() if settings.task == "all" else [settings.task]
    runs = [composing.run_config([*overrides, f"task={task}"]) for task in named]
    runs = [each for each in runs if run.scale.name in each.task.scales]
    for each in runs:
        check_text(each)
    if made := maker(run.scale, run):
        made.make()
    listed = [settings.text] if isinstance(settings.text, str) else settings.text
    record = _measured(runs, sources(Path(), [(text, None) for text in listed]), settings)
    return studies.write(record, runs[0].results_root, machine.circumstances("cpu")), runs[0].results_root


def _measured(runs: Sequence[RunConfig], text: Sequence[TextSource], settings: OverlapConfig) -> StudyRecord:
    """The table of some tasks, by a run of each at one scale, and a text."""
    n, memory = settings.words, Path(runs[0].cache_root) / MEMORY
    asked: dict[tuple[str, str], list[Words]] = {}
    for each in runs:
        reader: Reader = instantiate(each.task.reader)
        loaded = reader.load()
        for split in SPLITS:
            read = sentences([loaded[split]], reader.fields)  # as a biLM reads them
            asked[each.task.name, split] = list(map(counted, read))
    there = common(chain.from_iterable(source.sentences() for source in text), chain.from_iterable(asked.values()), n)
    cells = []
    for (task, split), words in asked.items():
        found = counts(words, there, n)
        cells += [StudyCell(task, quantity, count, split=split) for quantity, count in found.items()]
        if long := found[LONG]:
            cells.append(StudyCell(task, "in common, %", 100 * found[SHARED] / long, split=split, n=long))
    note = NOTE.format(text=", ".join(each.path.name for each in text), words=there.words, n=n)
    plain = {"text": [content_sha256(each.path, memory) for each in text], "task": settings.task, "words": n}
    return StudyRecord(runs[0].scale.name, "overlap", TITLE, note, cells, settings=plain)


def counts(asked: Sequence[Words], there: Overlap, n: int) -> dict[str, int]:
    """How many of some sentences a text has in common, as a whole and in part."""
    return {
        "sentences": sum(map(bool, asked)),
        "whole in the text": sum(words in there.whole for words in asked if words),
        LONG: sum(len(words) >= n for words in asked),
        SHARED: sum(not there.running.isdisjoint(runs(words, n)) for words in asked),
    }
