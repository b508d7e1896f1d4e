"""General statements about hypernyms (a baker is a worker), which occur in plain text only, not in labelled data."""

from __future__ import annotations

from elmo_bench.mini.language.chance import Chance
from elmo_bench.mini.language.events import Common
from elmo_bench.mini.language.lexicon import Lexicon
from elmo_bench.mini.language.morphology import gerund
from elmo_bench.mini.language.noun_phrases import description, noun
from elmo_bench.mini.language.phrases import Sentence, Word, phrase, sentence


class Almanac:
    """Draws statements about nouns and verbs and their hypernyms.

    Args:
        chance: the stream to draw from.
        lexicon: of a seed.
    """

    def __init__(self, chance: Chance, lexicon: Lexicon):
        self.chance, self.lexicon = chance, lexicon
        self._actions = [frame for frame in lexicon.frames.values() if frame.action]

    def sentence(self) -> Sentence:
        return self.chance.one_of((self._kind, self._kinds, self._others, self._doing))()

    def _kind(self) -> Sentence:
        """A baker is a worker."""
        which = self._one(self.chance.one_of(list(self.lexicon.hypernyms)))
        general = self.lexicon.hypernyms[which.noun.group]
        return sentence(description(which), "is", description(Common("", general)))

    def _kinds(self) -> Sentence:
        """Bakers and smiths are workers."""
        group = self.chance.one_of(list(self.lexicon.hypernyms))
        first, second = (noun(self._one(group).noun, plural=True) for _ in range(2))
        return sentence(first, "and", second, "are", noun(self.lexicon.hypernyms[group], plural=True))

    def _others(self) -> Sentence:
        """Smiths , like other workers , often march."""
        general = self.lexicon.hypernyms[self.chance.one_of(list(self.lexicon.hypernyms))]
        which = noun(self._one(general.group).noun, plural=True)
        subject = phrase(which, ", like", Word("other", "JJ"), noun(general, plural=True), ",")
        frames = [f for f in self.lexicon.frames.values() if general.cls in f.subject.classes and not f.object]
        if not frames:
            return sentence(subject, "are", Word(self.lexicon.adjectives["size"].draw(self.chance), "JJ"))
        verb = self.lexicon.verbs[self.chance.one_of(frames).name].draw(self.chance)
        return sentence(subject, "often", Word(verb.lemma, "VBP", verb.sense))

    def _doing(self) -> Sentence:
        """Munching is a kind of eating."""
        verbs = self.lexicon.verbs[self.chance.one_of(self._actions).name]
        special, general = verbs.draw(self.chance), verbs.items[0]
        return sentence(Word(gerund(special.lemma), "VBG"), "is a kind of", Word(gerund(general.lemma), "VBG"))

    def _one(self, group: str) -> Common:
        return Common("", self.lexicon.nouns[group].draw(self.chance))
