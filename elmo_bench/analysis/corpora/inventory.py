"""The inventory of senses: which sense of a word comes first, and which sense keys there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from elmo_bench.analysis.corpora.senses import SenseSentence, check_key
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage.files import open_text

TYPES = {"1": "n", "2": "v", "3": "a", "4": "r", "5": "a"}  # of a sense key; 5 is a satellite adjective

Word = tuple[str, str]  # lemma and part of speech


def first_senses(sentences: Sequence[SenseSentence]) -> dict[Word, str]:
    """The first sense of the words of a corpus, by its sense numbers; where it has none, the most frequent sense.

    A word whose sense 1 does not occur has none.
    """
    instances = [instance for sentence in sentences for instance in sentence.instances]
    numbered = {each.word for each in instances if each.numbers}
    pairs = [(each.word, pair) for each in instances for pair in zip(each.keys, each.numbers, strict=False)]
    first = {word: key for word, (key, number) in pairs if number == "1"}
    counts = frequencies(sentences)
    return first | {word: keys.most_common(1)[0][0] for word, keys in counts.items() if word not in numbered}


def frequencies(sentences: Iterable[SenseSentence]) -> dict[Word, Counter[str]]:
    """How often each word has each of its senses."""
    counts: dict[Word, Counter[str]] = {}
    for sentence in sentences:
        for instance in sentence.instances:
            counts.setdefault(instance.word, Counter()).update(instance.keys)
    return counts


def read_index(path: Path) -> dict[str, int]:
    """The number of each sense key in WordNet's index.sense (key, offset, sense number, count).

    Raises:
        UserError: a malformed line.
    """
    numbers: dict[str, int] = {}
    with open_text(path) as lines:
        for line, text in enumerate(lines, start=1):
            fields = text.split()
            if len(fields) != 4 or not fields[2].isdecimal() or len(fields[2]) > 9:
                raise UserError("expected a sense key, an offset, a sense number and a count", path, line)
            check_key(fields[0], path, line)
            numbers[fields[0]] = int(fields[2])
    return numbers


def first_of_index(numbers: dict[str, int]) -> dict[Word, str]:
    """The first sense of every word of an inventory."""
    return {_word(key): key for key, number in numbers.items() if number == 1}


def _word(key: str) -> Word:
    lemma, _, sense = key.partition("%")
    return lemma, TYPES.get(sense[:1], sense[:1])


def check_keys(sentences: Sequence[SenseSentence], numbers: dict[str, int], inventory: Path, gold: Path) -> None:
    """Raises `UserError` naming the first sense key of a corpus that the inventory lacks."""
    for sentence in sentences:
        for instance in sentence.instances:
            for key in instance.keys:
                if key not in numbers:
                    raise UserError(f"the sense key {key} is not in {inventory.name}; use the inventory of "
                                    "the same WordNet", gold, instance.line)  # fmt: skip
