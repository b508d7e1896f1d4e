"""Stories for coreference, with a small cast that most sentences are about.

Mentions are names, pronouns, descriptions (the baker) and phrases with an owner (her sister, the mayor of Tarvel), and
may be nested.
"""

from __future__ import annotations

from collections.abc import Sequence

from elmo_bench.mini.language.lexicon import Frame
from elmo_bench.mini.language.phrases import Sentence
from elmo_bench.mini.language.sentences import SentenceWriter
from elmo_bench.mini.language.voices import Discourse
from elmo_bench.mini.language.world import Event, Participant


class Stories(SentenceWriter):
    """Draws stories of six to ten sentences, with events among a cast, which new participants may join."""

    kind = "story"

    def draw(self) -> list[Sentence]:
        """The sentences of one."""
        chance, told = self.chance, []
        voice = self.voice = Discourse(chance)
        named: dict[tuple[str, ...], Participant] = {}  # no two of one name
        for which in ("person", "person", "person", "place", "org", "vessel"):
            new = self.world.entities[which].draw(chance)
            named.setdefault(new.short, new)
        others = [self.common(which) for which in ("vehicle", "animal") if chance.happens(0.7)]
        self._cast = [*named.values(), *others]
        self._hero = self._cast[0]
        for _ in range(chance.between(6, 10)):
            voice.new_sentence()
            new = self.sentence()
            while not voice.clear:
                voice.take_back()
                new = self.sentence()
            told.append(new)
        return told

    def event(self, frame: Frame | None = None, subject: Participant | None = None, plain: bool = False) -> Event:
        """An event whose subject is often the previous one, else another member of the cast."""
        if subject is None and not self.chance.happens(0.4):
            self._hero = self.chance.one_of(self._cast)
        if frame is None or self._hero.fits(frame.subject.classes):
            subject = subject or self._hero
        return super().event(frame, subject, plain)

    def filler(self, classes: Sequence[str]) -> Participant:
        known = [filler for filler in self._cast if filler.fits(classes)]
        if known and self.chance.happens(0.75):
            return self.chance.one_of(known)
        filler = super().filler(classes)
        if self.chance.happens(0.3):
            self._cast.append(filler)
        return filler
