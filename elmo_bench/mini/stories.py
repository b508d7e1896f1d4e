"""Stories and dialogues for coreference, with a small cast that most sentences are about.

Mentions are names, pronouns, descriptions (the baker) and phrases with an owner (her sister, the mayor of Tarvel), and
may be nested. In a dialogue the speaker is I and the other person you.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from elmo_bench.mini.language.chance import Chance
from elmo_bench.mini.language.clauses import Style, finite, predicate
from elmo_bench.mini.language.events import Event, Events, Filler, fits
from elmo_bench.mini.language.lexicon import Frame, Lexicon
from elmo_bench.mini.language.noun_phrases import name
from elmo_bench.mini.language.phrases import Part, Phrase, Sentence, phrase, sentence
from elmo_bench.mini.language.sentences import STORY, Sentences
from elmo_bench.mini.language.voices import StoryVoice
from elmo_bench.mini.language.world import Entity, World


class Document(NamedTuple):
    """Sentences in which mentions of the same thing have the same key."""

    name: str
    sentences: list[Sentence]


class CastEvents(Events):
    """Events among a cast, which new participants may join.

    Args:
        chance, lexicon, world: as for `Events`.
        cast: the people and things of the story.
    """

    def __init__(self, chance: Chance, lexicon: Lexicon, world: World, cast: list[Filler]):
        super().__init__(chance, lexicon, world)
        self.cast = cast
        self._hero = cast[0]

    def event(self, frame: Frame | None = None, subject: Filler | None = None, plain: bool = False) -> Event:
        """An event whose subject is often the previous one, else another member of the cast."""
        if subject is None and not self.chance.happens(0.5):
            self._hero = self.chance.one_of([f for f in self.cast if fits(f, ("person", "person", "org", "animal"))])
        if frame is not None and not fits(self._hero, frame.subject.classes):
            return super().event(frame, subject, plain)
        return super().event(frame, subject or self._hero, plain)

    def filler(self, classes: Sequence[str]) -> Filler:
        known = [filler for filler in self.cast if fits(filler, classes)]
        if known and self.chance.happens(0.75):
            return self.chance.one_of(known)
        filler = super().filler(classes)
        if self.chance.happens(0.4):
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
        if self.chance.happens(0.35):
            return Document(name, self._dialogue(self.chance.between(7, 11)))
        return Document(name, self._story(self.chance.between(6, 10)))

    def _sentences(self, voice: StoryVoice) -> tuple[list[Filler], Sentences]:
        """The cast, and the source of sentences about it."""
        people = [self.world.by_class["person"].draw(self.chance) for _ in range(self.chance.between(2, 3))]
        cast: list[Filler] = []
        for person in people:  # no two with the same name
            if all(isinstance(f, Entity) and f.short != person.short for f in cast):
                cast.append(person)
        events = CastEvents(self.chance, self.lexicon, self.world, cast)
        cast += [self.world.by_class[which].draw(self.chance) for which in ("place", "org")]
        cast += [events.common(which) for which in ("vehicle", "animal") if self.chance.happens(0.7)]
        return cast, Sentences(events, voice, STORY)

    def _story(self, length: int) -> list[Sentence]:
        voice = StoryVoice(self.chance)
        _, sentences = self._sentences(voice)
        done = []
        for _ in range(length):
            voice.new_sentence()
            done.append(sentence(sentences.draw()))
        return done

    def _dialogue(self, length: int) -> list[Sentence]:
        voice = StoryVoice(self.chance)
        cast, sentences = self._sentences(voice)
        people = [filler for filler in cast if isinstance(filler, Entity) and filler.gender]
        if len(people) < 2:
            return self._story(length)
        done = []
        for turn in range(length):
            speaker, addressee = people[turn % 2], people[(turn + 1) % 2]
            voice.new_sentence(speaker, addressee)
            label = "_".join(speaker.name)
            call = self._call(addressee) if self.chance.happens(0.4) else phrase()
            if self.chance.happens(0.3):
                done.append(sentence(call, self._question(sentences, addressee), end="?", speaker=label))
            else:
                done.append(sentence(call, sentences.draw(), speaker=label))
        return done

    def _call(self, addressee: Entity) -> Phrase:
        called = name(addressee, full=self.chance.happens(0.3))
        return phrase(Phrase(called.parts, called.entity, addressee.key), ",")

    def _question(self, sentences: Sentences, addressee: Entity) -> Phrase:
        """Did you mend the cart ?"""
        event = sentences.events.event(subject=addressee if self.chance.happens(0.6) else None)
        p = predicate(event.verb)
        style = Style(self.chance.one_of(("past", "past", "will", "perfect", "could")))
        first, others = finite(p, event.verb, style, sentences.voice.agreement(event.subject), inverted=True)
        subject = sentences.voice.refer(event.subject, "subject").as_role(p, event.verb.frame.subject.label)
        rest: list[Part] = [part for _, part in sentences.clauses.complements(event, p, False)]
        return phrase(first, subject, *others, *rest)
