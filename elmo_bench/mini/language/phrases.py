"""Annotated phrases: trees of words with the annotations of all tasks, so that these are consistent.

A phrase may be a named entity, a mention of a participant, and an argument of one or more events. Because phrases are
nested, spans can neither cross one another nor leave their sentence.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from itertools import chain
from typing import Any, NamedTuple

from elmo_bench.mini.language.words import TAGS, article, capitalised
from elmo_bench.text.tags import Span

ENTITY, MENTION = "entity", "mention"


class Word(NamedTuple):
    """A token with its Penn Treebank tag, its sense if the form is ambiguous, and its event if it is a main verb."""

    form: str
    tag: str
    sense: str = ""
    event: Any = None  # of world.py, which imports this file


class Phrase(NamedTuple):
    """Words and phrases.

    Attributes:
        parts: in order.
        marks: (layer, label) of the whole: (ENTITY, type), (MENTION, participant) or (event, role).
    """

    parts: tuple[Word | Phrase, ...]
    marks: tuple[tuple[Any, Any], ...] = ()

    def marked(self, layer: Any, label: Any) -> Phrase:
        return Phrase(self.parts, (*self.marks, (layer, label)))


Part = Word | Phrase
COMMA = Word(",", ",")
CLOSING = Word(",", "closing")  # a comma that ends an insertion; omitted before another punctuation mark


def phrase(*parts: Part | str) -> Phrase:
    """Makes a phrase; a string is any number of function words, with the tags of `words.TAGS`."""
    return Phrase(tuple(chain(*(_function_words(part) if isinstance(part, str) else (part,) for part in parts))))


@cache
def _function_words(text: str) -> tuple[Word, ...]:
    return tuple(Word(word, TAGS[word]) for word in text.split())


class Sentence(NamedTuple):
    """A finished sentence; `spans` has those of each layer in the order of the text, the outer one first."""

    words: tuple[Word, ...]
    spans: dict[Any, list[Span]]

    @property
    def forms(self) -> list[str]:
        return [word.form for word in self.words]

    @property
    def text(self) -> str:
        return " ".join(self.forms)


def sentence(*parts: Part | str, end: str = ".", events: Mapping[Any, Any] | None = None) -> Sentence:
    """Flattens phrases into a sentence with a capital and an end mark; chooses a or an, and places closing commas.

    A mark may have the name of one of the `events`.
    """
    words: list[Word] = []
    spans: dict[Any, list[Span]] = defaultdict(list)
    closing = False

    def add(part: Part) -> int | None:
        """Adds the words of a part; returns the place of the first one."""
        nonlocal closing
        if part is CLOSING:
            closing = True
            return None
        if isinstance(part, Word):
            if closing and part.form not in (",", ".", "?"):
                words.append(COMMA)
            closing = False
            words.append(part)
            return len(words) - 1
        starts = [start for start in map(add, part.parts) if start is not None]
        if not starts:
            return None
        for layer, label in part.marks:
            spans[(events or {}).get(layer, layer)].append(Span(label, starts[0], len(words)))
        return starts[0]

    add(phrase(*parts, end))
    for i, word in enumerate(words):
        if word.form == "a" and word.tag == "DT":
            words[i] = word._replace(form=article(words[i + 1].form))
    words[0] = words[0]._replace(form=capitalised(words[0].form))
    for found in spans.values():
        found.sort(key=lambda span: (span.start, -span.end))
    return Sentence(tuple(words), spans)
