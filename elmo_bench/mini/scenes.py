"""Scenes for natural language inference: pairs whose label follows from hypernyms, adjectives, numbers and negation.

The hypothesis is drawn first, from one distribution for all three labels, and only then a premise that entails it,
contradicts it or is neutral. So the hypothesis alone says nothing about the label. As in SNLI, both sentences speak of
the same scene: another kind of person, animal or thing contradicts, and an action that nobody does meanwhile (the table
`excludes`); another place does not.

Words are the first of each list, so that each is in many pairs. Many nouns of premises have another sense that the verb
allows, too: an adjective tells which is meant (an angry crane is no tool).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from elmo_bench.mini.language.clauses import Clauses, Sentence, sentence
from elmo_bench.mini.language.lexicon import CLASS, WORDS, Frame, Noun, Verb, modifiers
from elmo_bench.mini.language.world import INDEFINITE, Event, Participant, Style

LABELS = ("entailment", "neutral", "contradiction")
EXCLUDED = {frozenset((one, other)) for one, others in WORDS["excludes"].items() for other in others.split()}
FIRST = 12  # words of a list that scenes have
SUBJECTS = ("person", "animal")  # the classes of whoever does something
Change = Callable[[Event], Event]


class ScenePair(NamedTuple):
    """A premise (sentence1), a hypothesis (sentence2) and the label, with the scenes behind the sentences."""

    label: str
    premise: Sentence
    hypothesis: Sentence
    scenes: tuple[Event, Event]
    negated: bool  # whether the hypothesis is


def _changed(scene: Event, role: str, **changes: Any) -> Event:
    """The scene with another noun, number or adjectives of a participant or the place."""
    return scene.having(role, replace(scene.roles[role], **changes))


def _allowed(frame: Frame) -> dict[str, Sequence[str]]:
    """The classes that each role of a scene allows."""
    return {"ARG1": frame.object.classes if frame.object else (), "ARG0": SUBJECTS, "ARGM-LOC": ("place",)}


class Scenes(Clauses):
    """Draws pairs."""

    def draw(self, label: int | None = None) -> ScenePair:
        """A pair of different sentences, with this label if one is given."""
        number = self.below(3) if label is None else label
        wanted = LABELS[number]
        hypothesis = self._hypothesis()
        negated = bool(self._others(hypothesis)) and self.happens(0.15)
        premise = self._special(hypothesis)
        if wanted == "neutral":
            premise = self.one_of(self._details(hypothesis))(premise)
        elif negated and wanted == "entailment":  # sleeping, so not running
            premise = self._doing_another(premise, hypothesis)
        elif wanted == "contradiction" and not negated:
            premise = self._opposed(premise, hypothesis)
        passive = premise.frame.object is not None and self.happens(0.15)
        premise.style, hypothesis.style = Style("progressive", passive), Style("progressive", negated=negated)
        texts = sentence(self.clause(premise)), sentence(self.clause(hypothesis))
        if texts[0].text == texts[1].text:
            return self.draw(number)
        return ScenePair(wanted, *texts, (premise, hypothesis), negated)

    # The hypothesis, and a more detailed scene that entails it.

    def _verb(self, frame: Frame) -> Verb:
        return self.one_of(self.lexicon.verbs[frame.name].items[:FIRST])

    def _nouns(self, group: str) -> list[Noun]:
        """Those of a group, or of all groups of a class."""
        groups = [each for each, cls in CLASS.items() if group in (each, cls)]
        return [noun for each in groups for noun in self.lexicon.nouns[each].items[:FIRST]]

    def _hypothesis(self) -> Event:
        """A scene with at least one detail that a premise may leave open, whatever the label will be."""
        frame = self.one_of(self.lexicon.actions)
        verb = self.lexicon.verbs[frame.name].items[0] if self.happens(0.4) else self._verb(frame)
        subject = self._thing(SUBJECTS, self.one_of(("person", "person", frame.subject.classes[-1])))
        scene = Event(verb, {"ARG0": subject, "ARG1": self._object(frame), "ARGM-LOC": self._place()})
        return scene if self._details(scene) else self._hypothesis()

    def _thing(self, allowed: Sequence[str], wanted: str) -> Participant:
        """A noun that has one sense here or, more often, its hypernym; possibly with a number and an adjective."""
        drawn = self.common(wanted)
        noun = self.one_of([noun for noun in self._nouns(wanted) if self.lexicon.is_decided(noun, allowed)])
        noun, adjectives = (
            self._general(noun) if self.happens(0.7) else noun,
            drawn.adjectives and (self.adjective(noun),),
        )
        return replace(drawn, noun=noun, adjectives=adjectives, gender=noun.gender or drawn.gender)

    def _object(self, frame: Frame) -> Participant | None:
        classes = _allowed(frame)["ARG1"]
        return self._thing(classes, self.one_of(classes)) if classes else None

    def _place(self) -> Participant | None:
        return self._thing(("place",), "place") if self.happens(0.5) else None

    def _special(self, scene: Event) -> Event:
        """A scene that entails the given one: it may use hyponyms and add adjectives, a number and a place."""
        general = scene.verb == self.lexicon.verbs[scene.frame.name].items[0]
        verb = self._verb(scene.frame) if general and self.happens(0.7) else scene.verb
        known = scene if "ARGM-LOC" in scene.roles else scene.having("ARGM-LOC", self._place())
        allowed = {role: classes for role, classes in _allowed(scene.frame).items() if role in known.roles}
        return Event(verb, {role: self._more(known.roles[role], classes) for role, classes in allowed.items()})

    def _more(self, thing: Participant, allowed: Sequence[str]) -> Participant:
        noun, adjectives, number = thing.noun, thing.adjectives, thing.number
        if noun == self._general(noun) and self.happens(0.8):
            nouns = self._nouns(noun.group)
            twofold = [] if adjectives else [each for each in nouns if self.telling(each, allowed)]
            if twofold and self.happens(0.9):
                noun = self.one_of(twofold)
                adjectives = (self.one_of(self.telling(noun, allowed)),)
            else:
                noun = self.one_of([each for each in nouns if self.lexicon.is_decided(each, allowed)])
        if not adjectives and self.happens(0.4):
            adjectives = (self.adjective(noun),)
        if number == INDEFINITE and self.happens(0.5):
            number = self.one_of(WORDS["numbers"])
        return replace(thing, noun=noun, adjectives=adjectives, number=number)

    def telling(self, noun: Noun, allowed: Sequence[str]) -> list[str]:
        """The adjectives that tell this sense of a noun from those that it has among the other classes."""
        senses = {cls for cls in allowed if cls != noun.cls and self.lexicon.is_decided(noun, (cls,))}
        others = {group for cls in senses for group in modifiers(cls)}
        told = senses and self.lexicon.is_decided(noun, (noun.cls,))
        groups = [group for group in modifiers(noun.cls) if told and group not in others]
        return [adjective for group in groups for adjective in WORDS["adjectives"][group].split()]

    def _general(self, noun: Noun) -> Noun:
        return self.lexicon.hypernyms[noun.group]

    def _details(self, scene: Event) -> list[Change]:
        """The changes of a premise that leave one of the scene's details open."""
        general = self.lexicon.verbs[scene.frame.name].items[0]
        details: list[Change] = [lambda premise: Event(general, premise.roles)] if scene.verb != general else []
        for role, thing in scene.roles.items():
            plain = {"noun": self._general(thing.noun), "adjectives": (), "number": thing.number and INDEFINITE}
            more = (name for name, value in plain.items() if getattr(thing, name) != value)
            details += [partial(_changed, role=role, **{name: plain[name]}) for name in more]
        return details + [lambda premise: premise.having("ARGM-LOC", None)] * ("ARGM-LOC" in scene.roles)

    # Contradictions of the hypothesis.

    def _opposed(self, premise: Event, hypothesis: Event) -> Event:
        """The premise with one part changed so that it contradicts the hypothesis."""
        frame = hypothesis.frame
        role = self.one_of([""] * bool(self._others(hypothesis)) + [slot.label for slot in frame.slots] * 2)
        if not role:
            return self._doing_another(premise, hypothesis)
        thing, allowed = hypothesis.roles[role], _allowed(frame)[role]
        if thing.number not in ("", INDEFINITE) and self.happens(0.5):
            return _changed(premise, role, number=self._another(WORDS["numbers"], thing.number))
        if thing.adjectives and self.happens(0.5):
            (adjective,) = thing.adjectives
            group = next(words for words in WORDS["adjectives"].values() if adjective in words.split())
            return _changed(premise, role, adjectives=(self._another(group, adjective),))
        general = thing.noun == self._general(thing.noun)
        named = {thing.noun.form, *(noun.form for noun in self.lexicon.nouns[thing.noun.group].items if general)}
        nouns = [noun for cls in (allowed if general else (thing.noun.cls,)) for noun in self._nouns(cls)]
        twofold = [
            noun for noun in nouns if noun.form in named and noun.cls != thing.noun.cls and self.telling(noun, allowed)
        ]
        if general and twofold and self.happens(0.9):  # an angry crane, but a tool is asked for
            noun = self.one_of(twofold)
            return _changed(premise, role, noun=noun, adjectives=(self.one_of(self.telling(noun, allowed)),))
        others = [noun for noun in nouns if noun.form not in named]  # in none of their senses
        if not others:
            return self._opposed(premise, hypothesis)
        noun = self.one_of(others)
        fits = {word for group in modifiers(noun.cls) for word in WORDS["adjectives"][group].split()}
        told = premise.roles[role].adjectives
        return _changed(premise, role, noun=noun, adjectives=tuple(word for word in told if word in fits))

    def _another(self, words: str, excluded: str) -> str:
        return self.one_of([word for word in words.split() if word != excluded])

    def _doing_another(self, premise: Event, hypothesis: Event) -> Event:
        """The subject does something else."""
        frame = self.one_of(self._others(hypothesis))
        target = self._object(frame)
        known = {verb.lemma for verb in self.lexicon.verbs[hypothesis.frame.name].items}
        while (verb := self._verb(frame)).lemma in known:
            pass
        return Event(verb, {**premise.roles, "ARG1": target})

    def _others(self, scene: Event) -> list[Frame]:
        """The actions that exclude the scene's."""
        name, kind = scene.frame.name, scene.subject.noun.cls
        return [f for f in self.lexicon.actions if {name, f.name} in EXCLUDED and kind in f.subject.classes]
