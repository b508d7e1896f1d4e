"""Stories for coreference, with a small cast that most sentences are about.

Mentions are names, pronouns, descriptions (the baker) and phrases with an owner (her sister, the mayor of Tarvel), and
may be nested.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from elmo_bench.mini.language.chance import Chance
from elmo_bench.mini.language.events import Event, Events, Filler, fits
from elmo_bench.mini.language.lexicon import Frame, Lexicon
from elmo_bench.mini.language.phrases import Sentence, sentence
from elmo_bench.mini.language.sentences import STORY, Sentences
from elmo_bench.mini.language.voices import Discourse
from elmo_bench.mini.language.world import Entity, World


class Document(NamedTuple):
    """Sentences in which mentions of the same thing have the same key."""

    name: str
    sentences: list[Sentence]


class CastEvents(Events):
    """Events among a cast, which new participants may join.

    Args:
        chance, lexicon, world: as for `Events`.
    """

    def __init__(self, chance: Chance, lexicon: Lexicon, world: World):
        super().__init__(chance, lexicon, world)
        self.cast: list[Filler] = []
        for which in ("person", "person", "person", "place", "org", "vessel"):
            new = world.by_class[which].draw(chance)
            if all(isinstance(one, Entity) and one.short != new.short for one in self.cast):  # no two of one name
                self.cast.append(new)
        self.cast += [self.common(which) for which in ("vehicle", "animal") if chance.happens(0.7)]
        self._hero = self.cast[0]

    def event(self, frame: Frame | None = None, subject: Filler | None = None, plain: bool = False) -> Event:
        """An event whose subject is often the previous one, else another member of the cast."""
        if subject is None and not self.chance.happens(0.4):
            self._hero = self.chance.one_of(self.cast)
        if frame is not None and not fits(self._hero, frame.subject.classes):
            return super().event(frame, subject, plain)
        return super().event(frame, subject or self._hero, plain)

    def filler(self, classes: Sequence[str]) -> Filler:
        known = [filler for filler in self.cast if fits(filler, classes)]
        if known and self.chance.happens(0.75):
            return self.chance.one_of(known)
        filler = super().filler(classes)
        if self.chance.happens(0.3):
            self.cast.append(filler)
        return filler


class Stories:
    """Draws documents.

    Args:
        chance: the stream to draw from.
        lexicon: of a seed.
        world: of the same seed.
    """

    def __init__(self, chance: Chance, lexicon: Lexicon, world: World):
        self.chance, self.lexicon, self.world = chance, lexicon, world

    def document(self, name: str) -> Document:
        voice = Discourse(self.chance)
        sentences = Sentences(CastEvents(self.chance, self.lexicon, self.world), voice, STORY)
        told = []
        for _ in range(self.chance.between(6, 10)):
            voice.new_sentence()
            told.append(sentence(sentences.draw()))
        return Document(name, told)
