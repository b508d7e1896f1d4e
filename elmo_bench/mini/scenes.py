"""Scenes for natural language inference: pairs whose label follows from hypernyms, adjectives and places.

The hypothesis is drawn first, from one distribution for all three labels, and only then a premise that entails it,
contradicts it or is neutral. So the hypothesis alone says nothing about the label.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from elmo_bench.mini.language import english
from elmo_bench.mini.language.chance import Chance
from elmo_bench.mini.language.clauses import Clauses, Style
from elmo_bench.mini.language.events import Common, Event, preposition
from elmo_bench.mini.language.lexicon import Lexicon, Noun, Verb
from elmo_bench.mini.language.phrases import Sentence, sentence
from elmo_bench.mini.language.voices import SceneVoice

LABELS = ("entailment", "neutral", "contradiction")


@dataclass(frozen=True)
class Thing:
    """A noun, possibly with an adjective."""

    noun: Noun
    adjective: str = ""


@dataclass(frozen=True)
class Scene:
    """Who does what, to what, and where."""

    verb: Verb
    subject: Thing
    object: Thing | None = None
    place: Thing | None = None


@dataclass(frozen=True)
class Pair:
    """A premise (sentence1), a hypothesis (sentence2) and the label, with the scenes behind the sentences."""

    label: str
    premise: Sentence
    hypothesis: Sentence
    scenes: tuple[Scene, Scene]


class Scenes:
    """Draws pairs.

    Args:
        chance: the stream to draw from.
        lexicon: of a seed.
    """

    def __init__(self, chance: Chance, lexicon: Lexicon):
        self.chance, self.lexicon = chance, lexicon
        self._clauses = Clauses(chance, SceneVoice())
        self._actions = [frame for frame in lexicon.frames.values() if frame.action]

    def pair(self, label: str) -> Pair:
        hypothesis = self.hypothesis()
        premise = self._special(hypothesis)
        if label == "neutral":
            premise = self._weakened(premise, *self.chance.one_of(self._details(hypothesis)))
        elif label == "contradiction":
            premise = self._opposed(premise, hypothesis)
        passive = premise.object is not None and self.chance.happens(0.15)
        return Pair(label, self._told(premise, passive), self._told(hypothesis), (premise, hypothesis))

    # The hypothesis, and a more detailed scene that entails it.

    def hypothesis(self) -> Scene:
        """A scene with at least one detail that a premise may leave open, whatever the label will be."""
        while not self._details(scene := self._scene()):
            pass
        return scene

    def _scene(self) -> Scene:
        chance = self.chance
        frame = chance.one_of(self._actions)
        verbs = self.lexicon.verbs[frame.name]
        verb = verbs.items[0] if chance.happens(0.4) else verbs.draw(chance)
        subject = self._thing(chance.one_of(("person", "person", frame.subject.classes[-1])))
        target = self._thing(chance.one_of(frame.object.classes)) if frame.object else None
        return Scene(verb, subject, target, self._thing("place") if chance.happens(0.6) else None)

    def _thing(self, wanted: str) -> Thing:
        chance = self.chance
        noun = self.lexicon.nouns[wanted].draw(chance)
        if chance.happens(0.4):
            noun = self.lexicon.hypernyms[noun.group]
        return Thing(noun, self._adjective(noun.cls) if chance.happens(0.4) else "")

    def _adjective(self, cls: str) -> str:
        """An adjective that fits nouns of the class."""
        kinds = english.MODIFIERS["thing" if cls in english.THING else cls]
        return self.lexicon.adjectives[self.chance.one_of(kinds)].draw(self.chance)

    def _special(self, scene: Scene) -> Scene:
        """A scene that entails the given one: it may use hyponyms and add adjectives and a place."""
        chance = self.chance
        verbs = self.lexicon.verbs[scene.verb.frame.name]
        verb = verbs.draw(chance) if scene.verb == self._general(scene.verb) and chance.happens(0.7) else scene.verb
        place = self._more(scene.place) if scene.place else self._thing("place") if chance.happens(0.6) else None
        return Scene(verb, self._more(scene.subject), self._more(scene.object) if scene.object else None, place)

    def _more(self, thing: Thing) -> Thing:
        noun = thing.noun
        if noun == self.lexicon.hypernyms[noun.group] and self.chance.happens(0.7):
            noun = self.lexicon.nouns[noun.group].draw(self.chance)
        more = thing.adjective or (self._adjective(noun.cls) if self.chance.happens(0.4) else "")
        return Thing(noun, more)

    # What a premise may leave open.

    def _details(self, scene: Scene) -> list[tuple[str, str]]:
        """The (part, what) that a premise can leave out: a hyponym, an adjective, the place."""
        details = [("verb", "hyponym")] if scene.verb != self._general(scene.verb) else []
        for part in ("subject", "object", "place"):
            if thing := getattr(scene, part):
                details += [(part, "hyponym")] if thing.noun != self.lexicon.hypernyms[thing.noun.group] else []
                details += [(part, "adjective")] if thing.adjective else []
        return details + ([("place", "all")] if scene.place else [])

    def _general(self, verb: Verb) -> Verb:
        return self.lexicon.verbs[verb.frame.name].items[0]

    def _weakened(self, premise: Scene, part: str, what: str) -> Scene:
        """The premise without one detail that the hypothesis has."""
        if part == "verb":
            return replace(premise, verb=self._general(premise.verb))
        thing: Thing = getattr(premise, part)
        less = None if what == "all" else Thing(thing.noun)
        if what == "hyponym":
            less = Thing(self.lexicon.hypernyms[thing.noun.group], thing.adjective)
        return replace(premise, **{part: less})

    # Contradictions of the hypothesis.

    def _opposed(self, premise: Scene, hypothesis: Scene) -> Scene:
        """The premise with one part changed so that it contradicts the hypothesis."""
        chance = self.chance
        part = chance.one_of(["verb", "subject", *(part for part in ("object", "place") if getattr(hypothesis, part))])
        said = getattr(hypothesis, part)
        if isinstance(said, Verb):
            others = [f for f in self._actions if f != said.frame and hypothesis.subject.noun.cls in f.subject.classes]
            frame = chance.one_of(others)
            target = self._thing(chance.one_of(frame.object.classes)) if frame.object else None
            return replace(premise, verb=self.lexicon.verbs[frame.name].draw(chance), object=target)
        now: Thing = getattr(premise, part)
        if said.adjective and chance.happens(0.6):
            return replace(premise, **{part: Thing(now.noun, self._opposite(said.adjective))})
        return replace(premise, **{part: Thing(self._sister(said.noun), now.adjective)})

    def _opposite(self, adjective: str) -> str:
        group = next(words.split() for words in english.ADJECTIVES.values() if adjective in words.split())
        return self.chance.one_of([other for other in group if other != adjective])

    def _sister(self, noun: Noun) -> Noun:
        """A noun of the same class that excludes the given one."""
        general = noun == self.lexicon.hypernyms[noun.group]
        while True:
            cls = self.chance.one_of(english.THING) if noun.cls in english.THING and general else noun.cls
            other = self.lexicon.nouns[cls].draw(self.chance)
            if other.form != noun.form and not (general and other.group == noun.group):
                return other

    # Wording.

    def _told(self, scene: Scene, passive: bool = False) -> Sentence:
        fillers = [
            Common(key, thing.noun, (thing.adjective,) if thing.adjective else ()) if thing else None
            for key, thing in (("subject", scene.subject), ("object", scene.object), ("place", scene.place))
        ]
        subject, target, place = fillers
        assert subject is not None
        event = Event(scene.verb, subject, target, place=place, at=preposition(place) if place else "")
        return sentence(self._clauses.clause(event, Style("progressive", passive)))
