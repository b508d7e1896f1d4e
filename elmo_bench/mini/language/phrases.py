"""Annotated phrases: trees of words with all annotations, so that the annotations of all tasks are consistent.

A phrase may be a named entity, a mention, and an argument of one or more predicates. Because phrases are nested, spans
can neither cross one another nor leave their sentence.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from elmo_bench.mini.language.english import TAGS
from elmo_bench.mini.language.morphology import article
from elmo_bench.text.tags import Span


@dataclass(frozen=True, eq=False)
class Predicate:
    """One occurrence of a verb with a roleset of its lemma; arguments refer to it by identity."""

    lemma: str
    number: str


class Word(NamedTuple):
    """A token with its Penn Treebank tag, its sense if the form is ambiguous, and its predicate if it is one."""

    form: str
    tag: str
    sense: str = ""
    predicate: Predicate | None = None


class Phrase(NamedTuple):
    """Words and phrases with the annotations of the whole; an empty annotation means none."""

    parts: tuple[Word | Phrase, ...]
    entity: str = ""  # PER, LOC, ORG, MISC
    mention: str = ""  # the key of what it refers to
    roles: tuple[tuple[Predicate, str], ...] = ()

    def words(self) -> Iterator[Word]:
        for part in self.parts:
            yield from (part,) if isinstance(part, Word) else part.words()

    def as_role(self, predicate: Predicate, label: str) -> Phrase:
        return self._replace(roles=(*self.roles, (predicate, label)))


Part = Word | Phrase


def phrase(*parts: Part | str, entity: str = "", mention: str = "") -> Phrase:
    """Makes a phrase; a string is one or more function words, with the tags of `english.TAGS`."""
    flat: list[Part] = []
    for part in parts:
        flat.extend(_function_words(part) if isinstance(part, str) else (part,))
    return Phrase(tuple(flat), entity, mention)


@cache
def _function_words(text: str) -> tuple[Word, ...]:
    return tuple(Word(word, TAGS[word]) for word in text.split())


def role(predicate: Predicate, label: str, *parts: Part | str) -> Phrase:
    """A phrase that is an argument of the predicate."""
    return phrase(*parts).as_role(predicate, label)


class Proposition(NamedTuple):
    """A predicate at a word, with its arguments in the order of the text."""

    index: int
    lemma: str
    number: str
    arguments: tuple[Span, ...]


@dataclass(frozen=True)
class Sentence:
    """A finished sentence with all its annotations."""

    words: tuple[str, ...]
    tags: tuple[str, ...]
    senses: tuple[str, ...]
    entities: tuple[Span, ...]
    mentions: tuple[Span, ...]
    propositions: tuple[Proposition, ...]

    @property
    def text(self) -> str:
        return " ".join(self.words)


COMMA = Word(",", ",")
CLOSING = Word(",", "closing")  # a comma that ends an insertion; omitted before another punctuation mark


def sentence(*parts: Part | str, end: str = ".") -> Sentence:
    """Flattens phrases into a sentence with a capital and an end mark; chooses a or an, and places closing commas."""
    return _Flattening().sentence(phrase(*parts, end))


class _Flattening:
    def __init__(self):
        self.words: list[Word] = []
        self.entities: list[Span] = []
        self.mentions: list[Span] = []
        self.arguments: dict[Predicate, list[Span]] = {}
        self.closing = False

    def sentence(self, whole: Phrase) -> Sentence:
        self.walk(whole)
        forms = [word.form for word in self.words]
        for i, word in enumerate(self.words):
            if word.form == "a" and word.tag == "DT":
                forms[i] = article(forms[i + 1])
        forms[0] = forms[0][0].upper() + forms[0][1:]
        return Sentence(
            words=tuple(forms),
            tags=tuple(word.tag for word in self.words),
            senses=tuple(word.sense for word in self.words),
            entities=_in_order(self.entities),
            mentions=_in_order(self.mentions),
            propositions=tuple(
                Proposition(i, p.lemma, p.number, _in_order(self.arguments.get(p, [])))
                for i, word in enumerate(self.words)
                if (p := word.predicate)
            ),
        )

    def walk(self, part: Part) -> int | None:
        """Adds the words of a part; returns the index of the first one."""
        if isinstance(part, Word):
            return self._word(part)
        starts = [start for start in map(self.walk, part.parts) if start is not None]
        if not starts:
            return None
        start, end = starts[0], len(self.words)
        if part.entity:
            self.entities.append(Span(part.entity, start, end))
        if part.mention:
            self.mentions.append(Span(part.mention, start, end))
        for predicate, label in part.roles:
            self.arguments.setdefault(predicate, []).append(Span(label, start, end))
        return start

    def _word(self, word: Word) -> int | None:
        if word is CLOSING:
            self.closing = True
            return None
        if self.closing and word.form not in (",", ".", "?"):
            self.words.append(COMMA)
        self.closing = False
        self.words.append(word)
        return len(self.words) - 1


def _in_order(spans: list[Span]) -> tuple[Span, ...]:
    """By place in the text, the outer one first."""
    return tuple(sorted(spans, key=lambda span: (span.start, -span.end)))
