"""Scenes for natural language inference: pairs whose label follows from hypernyms, adjectives, numbers and negation.

The hypothesis is drawn first, from one distribution for all three labels, and only then a premise that entails it,
contradicts it or is neutral. So the hypothesis alone says nothing about the label. As in SNLI, both sentences speak of
the same scene: another kind of person, animal or thing contradicts, and an action that nobody does meanwhile (the table
`excludes`); another place does not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from elmo_bench.mini.language.chance import Chance, Ranked
from elmo_bench.mini.language.clauses import Clauses, Style
from elmo_bench.mini.language.lexicon import Frame, Noun
from elmo_bench.mini.language.phrases import Sentence, sentence
from elmo_bench.mini.language.voices import Voice
from elmo_bench.mini.language.words import WORDS
from elmo_bench.mini.language.world import INDEFINITE, Event, Events, Participant, World

LABELS = ("entailment", "neutral", "contradiction")
EXCLUDED = {frozenset((one, other)) for one, others in WORDS["excludes"].items() for other in others.split()}
SUBJECTS = ("person", "animal")  # the classes of whoever does something
Change = Callable[[Event], Event]


class ScenePair(NamedTuple):
    """A premise (sentence1), a hypothesis (sentence2) and the label, with the scenes behind the sentences."""

    label: str
    premise: Sentence
    hypothesis: Sentence
    scenes: tuple[Event, Event]
    negated: bool  # whether the hypothesis is


def _changed(scene: Event, part: str, **changes: Any) -> Event:
    """The scene with another noun, number or adjectives of its subject, object or place."""
    return replace(scene, **{part: replace(getattr(scene, part), **changes)})


class Scenes(Events):
    """Draws pairs."""

    def __init__(self, chance: Chance, world: World):
        super().__init__(chance, world)
        self._clauses = Clauses(chance, Voice(chance))
        self._actions = [frame for frame in self.lexicon.frames.values() if frame.action]
        nouns = [noun for group in self.lexicon.hypernyms for noun in self.lexicon.nouns[group].items]
        self._uses = Counter((noun.form, noun.cls) for noun in nouns)

    def draw(self, label: int | None = None) -> ScenePair:
        """A pair of different sentences, with this label if one is given."""
        name = LABELS[self.chance.below(3) if label is None else label]
        while (pair := self._pair(name)).premise.text == pair.hypothesis.text:
            pass
        return pair

    def _pair(self, label: str) -> ScenePair:
        hypothesis = self._hypothesis()
        negated = bool(self._others(hypothesis)) and self.chance.happens(0.15)
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
        return ScenePair(label, sentence(told), sentence(said), (premise, hypothesis), negated)

    # The hypothesis, and a more detailed scene that entails it.

    def _hypothesis(self) -> Event:
        """A scene with at least one detail that a premise may leave open, whatever the label will be."""
        chance = self.chance
        frame = chance.one_of(self._actions)
        verbs = self.lexicon.verbs[frame.name]
        verb = verbs.items[0] if chance.happens(0.4) else verbs.draw(chance)
        subject = self._thing(SUBJECTS, chance.one_of(("person", "person", frame.subject.classes[-1])))
        scene = Event(verb, subject, self._object(frame), place=self._place())
        return scene if self._details(scene) else self._hypothesis()

    def _thing(self, allowed: Sequence[str], wanted: str) -> Participant:
        """A noun or its hypernym, possibly with a number and an adjective."""
        while not self._is_decided((drawn := self.common(wanted)).noun, allowed):
            pass
        return replace(drawn, noun=self._general(drawn.noun)) if self.chance.happens(0.4) else drawn

    def _object(self, frame: Frame) -> Participant | None:
        classes = frame.object.classes if frame.object else ()
        return self._thing(classes, self.chance.one_of(classes)) if classes else None

    def _place(self) -> Participant | None:
        return self._thing(("place",), "place") if self.chance.happens(0.5) else None

    def _special(self, scene: Event) -> Event:
        """A scene that entails the given one: it may use hyponyms and add adjectives, a number and a place."""
        verb, verbs = scene.verb, self.lexicon.verbs[scene.frame.name]
        if verb == verbs.items[0] and self.chance.happens(0.7):
            verb = verbs.draw(self.chance)
        place = scene.place or self._place()
        target = self._more(scene.object, scene.frame.object.classes) if scene.frame.object else None
        subject = self._more(scene.subject, SUBJECTS)
        return Event(verb, subject, target, place=self._more(place, ("place",)) if place else None)

    def _more(self, thing: Any, allowed: Sequence[str]) -> Participant:
        noun, adjectives, number = thing.noun, thing.adjectives, thing.number
        if noun == self._general(noun) and self.chance.happens(0.7):
            while not self._is_decided(noun := self.lexicon.nouns[thing.noun.group].draw(self.chance), allowed):
                pass
        if not adjectives and self.chance.happens(0.4):
            adjectives = (self.adjective(noun),)
        if number == INDEFINITE and self.chance.happens(0.5):
            number = self.chance.one_of(WORDS["numbers"].split())
        return replace(thing, noun=noun, adjectives=adjectives, number=number)

    def _general(self, noun: Noun) -> Noun:
        return self.lexicon.hypernyms[noun.group]

    def _is_decided(self, noun: Noun, allowed: Sequence[str]) -> bool:
        """Whether the form has one sense only among the classes that its place in the sentence allows."""
        return sum(self._uses[noun.form, cls] for cls in allowed) == 1

    def _details(self, scene: Event) -> list[Change]:
        """The changes of a premise that leave one of the scene's details open."""
        general = self.lexicon.verbs[scene.frame.name].items[0]
        details: list[Change] = [partial(replace, verb=general)] if scene.verb != general else []
        for part in ("subject", "object", "place"):
            if thing := getattr(scene, part):
                plain = {"noun": self._general(thing.noun), "adjectives": (), "number": thing.number and INDEFINITE}
                less = {name: value for name, value in plain.items() if getattr(thing, name) != value}
                details += [partial(_changed, part=part, **{name: value}) for name, value in less.items()]
        return details + ([partial(replace, place=None)] if scene.place else [])

    # Contradictions of the hypothesis.

    def _opposed(self, premise: Event, hypothesis: Event) -> Event:
        """The premise with one part changed so that it contradicts the hypothesis."""
        chance, classes = self.chance, hypothesis.frame.object.classes if hypothesis.frame.object else ()
        parts = ["verb"] * bool(self._others(hypothesis)) + ["subject"] + ["object"] * bool(classes)
        part = chance.one_of(parts)
        if part == "verb":
            return self._doing_another(premise, hypothesis)
        said = getattr(hypothesis, part)
        if said.number not in ("", INDEFINITE) and chance.happens(0.5):
            return _changed(premise, part, number=self._another(WORDS["numbers"], said.number))
        if said.adjectives and chance.happens(0.6):
            (adjective,) = said.adjectives
            group = next(words for words in WORDS["adjectives"].values() if adjective in words.split())
            return _changed(premise, part, adjectives=(self._another(group, adjective),))
        sister = self._sister(said.noun, classes if part == "object" else ())
        return _changed(premise, part, noun=sister) if sister else self._opposed(premise, hypothesis)

    def _another(self, words: str, said: str) -> str:
        return self.chance.one_of([word for word in words.split() if word != said])

    def _doing_another(self, premise: Event, hypothesis: Event) -> Event:
        """The subject does something else."""
        frame = self.chance.one_of(self._others(hypothesis))
        target = self._object(frame)
        known = {verb.lemma for verb in self.lexicon.verbs[hypothesis.frame.name].items}
        while (verb := self.lexicon.verbs[frame.name].draw(self.chance)).lemma in known:
            pass
        return replace(premise, verb=verb, object=target)

    def _others(self, scene: Event) -> list[Frame]:
        """The actions that exclude the scene's."""
        name, kind = scene.frame.name, scene.subject.noun.cls
        return [f for f in self._actions if {name, f.name} in EXCLUDED and kind in f.subject.classes]

    def _sister(self, noun: Noun, allowed: Sequence[str]) -> Noun | None:
        """A noun of the same class, or of one that is allowed, that excludes the given one, in both of its senses."""
        general = noun == self._general(noun)
        named = {noun.form, *(one.form for one in self.lexicon.nouns[noun.group].items if general)}
        pools = []
        for cls in (general and allowed) or (noun.cls,):
            if others := [other for other in self.lexicon.nouns[cls].items if other.form not in named]:
                pools.append(others)
        return Ranked(self.chance.one_of(pools), flat=12).draw(self.chance) if pools else None
