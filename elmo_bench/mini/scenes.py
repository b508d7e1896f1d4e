"""Scenes for natural language inference: pairs whose label follows from hypernyms, adjectives, numbers and negation.

The hypothesis is drawn first, from one distribution for all three labels, and only then a premise that entails it,
contradicts it or is neutral. So the hypothesis alone says nothing about the label. As in SNLI, both sentences speak of
the same scene: another kind of person, animal or thing, or another action, contradicts; another place does not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from elmo_bench.mini.language.clauses import Clauses, Style
from elmo_bench.mini.language.english import THINGS, WORDS
from elmo_bench.mini.language.events import INDEFINITE, Common, Event, Events, Filler
from elmo_bench.mini.language.lexicon import Noun, Verb
from elmo_bench.mini.language.phrases import Sentence, sentence
from elmo_bench.mini.language.voices import PLAIN, Voice

LABELS = ("entailment", "neutral", "contradiction")
Weaker = Callable[[Event], Event]  # a scene without one detail


class Pair(NamedTuple):
    """A premise (sentence1), a hypothesis (sentence2) and the label, with the scenes behind the sentences."""

    label: str
    premise: Sentence
    hypothesis: Sentence
    scenes: tuple[Event, Event]
    negated: bool  # whether the hypothesis is


class Scenes:
    """Draws pairs.

    Args:
        events: of a seed.
    """

    def __init__(self, events: Events):
        self.events, self.chance, self.lexicon = events, events.chance, events.lexicon
        self._clauses = Clauses(self.chance, Voice(self.chance, PLAIN))
        self._actions = [frame for frame in self.lexicon.frames.values() if frame.action]

    def pair(self, label: str) -> Pair:
        """A pair with this label; its sentences differ."""
        while (pair := self._pair(label)).premise.words == pair.hypothesis.words:
            pass
        return pair

    def _pair(self, label: str) -> Pair:
        hypothesis = self._hypothesis()
        negated = self.chance.happens(0.15)
        premise = self._special(hypothesis)
        if label == "neutral":
            premise = self.chance.one_of(self._details(hypothesis))(premise)
        elif negated and label == "entailment":  # sleeping, so not running
            premise = self._doing_another(premise, hypothesis)
        elif label == "contradiction" and not negated:
            premise = self._opposed(premise, hypothesis)
        passive = premise.object is not None and self.chance.happens(0.15)
        told = self._clauses.clause(premise, Style("progressive", passive))
        said = self._clauses.clause(hypothesis, Style("progressive", negated=negated))
        return Pair(label, sentence(told), sentence(said), (premise, hypothesis), negated)

    # The hypothesis, and a more detailed scene that entails it.

    def _hypothesis(self) -> Event:
        """A scene with at least one detail that a premise may leave open, whatever the label will be."""
        while not self._details(scene := self._scene()):
            pass
        return scene

    def _scene(self) -> Event:
        chance = self.chance
        frame = chance.one_of(self._actions)
        verbs = self.lexicon.verbs[frame.name]
        verb = verbs.items[0] if chance.happens(0.4) else verbs.draw(chance)
        subject = self._thing(chance.one_of(("person", "person", frame.subject.classes[-1])))
        target = self._thing(chance.one_of(frame.object.classes)) if frame.object else None
        place = replace(self._thing("place"), number="") if chance.happens(0.5) else None
        return Event(verb, subject, target, place=place)

    def _thing(self, wanted: str) -> Common:
        """A noun or its hypernym, possibly with a number and an adjective."""
        drawn = self.events.common(wanted)
        general = self.lexicon.hypernyms[drawn.noun.group]
        return replace(drawn, noun=general) if self.chance.happens(0.4) else drawn

    def _special(self, scene: Event) -> Event:
        """A scene that entails the given one: it may use hyponyms and add adjectives, a number and a place."""
        chance = self.chance
        verb, verbs = scene.verb, self.lexicon.verbs[scene.verb.frame.name]
        if verb == verbs.items[0] and chance.happens(0.7):
            verb = verbs.draw(chance)
        place = scene.place or (replace(self._thing("place"), number="") if chance.happens(0.5) else None)
        target = self._more(scene.object) if scene.object else None
        return Event(verb, self._more(scene.subject), target, place=self._more(place) if place else None)

    def _more(self, thing: Filler) -> Common:
        assert isinstance(thing, Common)  # nobody in a scene has a name
        noun, adjectives, number = thing.noun, thing.adjectives, thing.number
        if noun == self.lexicon.hypernyms[noun.group] and self.chance.happens(0.7):
            noun = self.lexicon.nouns[noun.group].draw(self.chance)
        if not adjectives and self.chance.happens(0.4):
            adjectives = (self.events.adjective(noun),)
        if number == INDEFINITE and self.chance.happens(0.5):
            number = self._number()
        return replace(thing, noun=noun, adjectives=adjectives, number=number)

    def _number(self, other: str = "") -> str:
        return self.chance.one_of([word for word in WORDS["numbers"].split() if word != other])

    # What a premise may leave open.

    def _details(self, scene: Event) -> list[Weaker]:
        general = self.lexicon.verbs[scene.verb.frame.name].items[0]
        details: list[Weaker] = []
        if scene.verb != general:
            details.append(lambda premise: replace(premise, verb=general))
        for part in ("subject", "object", "place"):
            if thing := getattr(scene, part):
                details += [self._without(part, key, value) for key, value in self._less(thing).items()]
        return details + ([lambda premise: replace(premise, place=None)] if scene.place else [])

    def _less(self, thing: Common) -> dict[str, object]:
        general = self.lexicon.hypernyms[thing.noun.group]
        less: dict[str, object] = {"noun": general} if thing.noun != general else {}
        if thing.adjectives:
            less["adjectives"] = ()
        if thing.number not in ("", INDEFINITE):
            less["number"] = INDEFINITE
        return less

    def _without(self, part: str, key: str, value: object) -> Weaker:
        return lambda premise: replace(premise, **{part: replace(getattr(premise, part), **{key: value})})

    # Contradictions of the hypothesis.

    def _opposed(self, premise: Event, hypothesis: Event) -> Event:
        """The premise with one part changed so that it contradicts the hypothesis."""
        chance = self.chance
        part = chance.one_of(["verb", "subject", "object"] if hypothesis.object else ["verb", "subject"])
        said, now = getattr(hypothesis, part), getattr(premise, part)
        if isinstance(said, Verb):
            return self._doing_another(premise, hypothesis)
        if said.number not in ("", INDEFINITE) and chance.happens(0.5):
            return replace(premise, **{part: replace(now, number=self._number(said.number))})
        if said.adjectives and chance.happens(0.6):
            return replace(premise, **{part: replace(now, adjectives=(self._opposite(*said.adjectives),))})
        return replace(premise, **{part: replace(now, noun=self._sister(said.noun))})

    def _doing_another(self, premise: Event, hypothesis: Event) -> Event:
        """The subject does something else."""
        kind = hypothesis.subject.noun.cls
        others = [f for f in self._actions if f != hypothesis.verb.frame and kind in f.subject.classes]
        frame = self.chance.one_of(others)
        target = self._thing(self.chance.one_of(frame.object.classes)) if frame.object else None
        known = {verb.lemma for verb in self.lexicon.verbs[hypothesis.verb.frame.name].items}
        while (verb := self.lexicon.verbs[frame.name].draw(self.chance)).lemma in known:
            pass
        return replace(premise, verb=verb, object=target)

    def _opposite(self, adjective: str) -> str:
        group = next(words.split() for words in WORDS["adjectives"].values() if adjective in words.split())
        return self.chance.one_of([other for other in group if other != adjective])

    def _sister(self, noun: Noun) -> Noun:
        """A noun of the same class that excludes the given one, in both of its senses."""
        general = noun == self.lexicon.hypernyms[noun.group]
        named = {noun.form} | ({one.form for one in self.lexicon.nouns[noun.group].items} if general else set())
        while True:
            cls = self.chance.one_of(THINGS) if noun.cls in THINGS and general else noun.cls
            other = self.lexicon.nouns[cls].draw(self.chance)
            if other.form not in named and not (general and other.group == noun.group):
                return other
