"""Scenes for natural language inference: pairs whose label follows from hypernyms, adjectives, numbers and negation.

The hypothesis is drawn first, from one distribution for all labels, so that it alone says nothing about the label. Both
sentences speak of one scene, as in SNLI: another kind of person, animal or thing contradicts, and an action that nobody
does meanwhile (the table `excludes`). Many nouns have two senses, which a verb or an adjective decides: whoever watches
a wooden crane watches a tool, and whoever watches a tame one a bird.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any, NamedTuple

from elmo_bench.mini.language.clauses import Clauses, Sentence, sentence
from elmo_bench.mini.language.lexicon import CLASS, TANGIBLE, WORDS, Chance, Frame, Noun, Slot, modifiers
from elmo_bench.mini.language.world import INDEFINITE, Event, Participant, Style, World

LABELS = ("entailment", "neutral", "contradiction")
FOLLOWS, OPEN, EXCLUDED = range(3)  # what is said, after what was told, as the labels
EXCLUDES = [{one, other} for one, others in WORDS["excludes"].items() for other in others.split()]
GROUP = {word: group for group, words in WORDS["adjectives"].items() for word in words.split()}
TELLING = {*WORDS["telling"].split()}
CLASSES, PLACE = [*WORDS["nouns"]], Slot("ARGM-LOC", ("place",))
NUMBERS, FIRST = WORDS["numbers"].split()[:4], 8  # only the first words of a list are used, and all with two senses


class ScenePair(NamedTuple):
    """A premise (sentence1), a hypothesis (sentence2) and the label, with the scenes behind the sentences."""

    label: str
    premise: Sentence
    hypothesis: Sentence
    scenes: tuple[Event, Event]


def relation(told: str, said: str, general: str) -> int:
    """The general word leaves the others open, which exclude one another."""
    return FOLLOWS if said in (told, general) else OPEN if told == general else EXCLUDED


def compared(told: Participant | None, said: Participant) -> int:
    """The relation of all that is said of someone or something."""
    if told is None or told.noun.group != said.noun.group:
        return EXCLUDED if told else OPEN
    adjective = "".join(said.adjectives)  # one at most
    known = [word for word in told.adjectives if GROUP[word] == GROUP.get(adjective)] or [""]
    noun = relation(told.noun.form, said.noun.form, said.noun.group)
    return max(noun, relation(known[0], adjective, ""), relation(told.number, said.number, INDEFINITE))


class Scenes(Clauses):
    """Draws pairs."""

    def __init__(self, chance: Chance, world: World):
        super().__init__(chance, world)
        self._nouns, self._senses = defaultdict[Any, list[Noun]](list), defaultdict[str, list[Noun]](list)
        for noun in (noun for group in CLASS for noun in self.lexicon.nouns[group].items):
            decided = (self.lexicon.is_decided(noun, classes) for classes in (CLASSES, [*{noun.cls, *TANGIBLE}]))
            self._nouns[noun.group, *decided].append(noun)
            self._senses[noun.form].append(noun)

    def draw(self, label: int | None = None) -> ScenePair:
        """A pair of different sentences, with this label if one is given."""
        number = self.below(3) if label is None else label
        wide = [frame for frame in self.lexicon.actions if "?" in frame.marks]
        hypothesis = self._scene(self.one_of(wide if self.happens(0.6) else self.lexicon.actions))
        hypothesis.style = Style("progressive", negated=bool(self._others(hypothesis)) and self.happens(0.15))
        said = sentence(self.clause(hypothesis))
        while True:
            premise = self._premise(hypothesis)
            premise.style = Style("progressive", passive=premise.frame.object is not None and self.happens(0.15))
            told = sentence(self.clause(premise))
            if told.text != said.text and self._label(premise, hypothesis) == number:
                return ScenePair(LABELS[number], told, said, (premise, hypothesis))

    def _label(self, premise: Event, hypothesis: Event) -> int | None:
        """The number of the label; None if it is not certain."""
        same, negated = premise.frame == hypothesis.frame, hypothesis.style.negated
        roles = hypothesis.roles if same else ("ARG0",)
        found = max(compared(premise.roles.get(role), hypothesis.roles[role]) for role in roles)
        verb = relation(premise.verb.lemma, hypothesis.verb.lemma, premise.frame.name) if same else EXCLUDED
        if negated:
            return None if found > OPEN * same else EXCLUDED - max(found, verb)
        return max(found, verb)

    def _scene(self, frame: Frame) -> Event:
        """It has a place or a special verb, which a premise can leave open, whatever the label will be."""
        placed, verbs = self.happens(0.5), self.lexicon.verbs[frame.name].items[:FIRST]
        verb = verbs[0] if placed and self.happens(0.6) else self.one_of(verbs[1:])
        return Event(verb, {slot.label: self._thing(slot) for slot in (*frame.slots, *[PLACE] * placed)})

    def _thing(self, slot: Slot) -> Participant:
        """A place, or a hypernym or noun of one sense that may have a number."""
        noun = self._noun(slot, general=0.7 * (slot != PLACE))
        number = self.one_of([INDEFINITE, *NUMBERS]) if slot != PLACE and self.happens(0.25) else ""
        return Participant(noun, adjectives=(self.adjective(noun),) if self.happens(0.3) else (), number=number)

    def _noun(self, slot: Slot, group: str = "", general: float = 0.2, homograph: float = 0.0) -> Noun:
        """How often it is a hypernym, or else has two senses."""
        group = group or self.one_of([*WORDS["nouns"][self.one_of(slot.classes)]])
        if self.happens(general):
            return self.lexicon.hypernyms[group]
        doubtful, plain = self._nouns[group, False, False], self._nouns[group, True, True][:FIRST]
        return self.one_of(doubtful if doubtful and self.happens(homograph) else plain)

    def adjective(self, noun: Noun) -> str:
        """One that fits the noun, often one that tells its sense."""
        groups = modifiers(noun.cls)
        telling = [group for group in groups if group in TELLING and self.happens(0.5)]
        return self.one_of(WORDS["adjectives"][self.one_of(telling or groups)])

    def _premise(self, said: Event) -> Event:
        """A scene that tells more or less of some details of the hypothesis, or something else."""
        others, verb = self._others(said), said.verb
        drawn = self._scene(self.one_of(others) if others and self.happens(0.2) else said.frame)
        same = drawn.frame == said.frame
        if not same or verb.lemma == said.frame.name:
            verb = drawn.verb
        elif self.happens(0.15):
            verb = self.lexicon.verbs[said.frame.name].items[0]
        roles = drawn.roles | {role: thing for role, thing in said.roles.items() if same or role != "ARG1"}
        if self.happens(0.15):
            roles.pop(PLACE.label, None)
        told = {slot.label: self._told(roles[slot.label], slot, verb.frame) for slot in verb.frame.slots}
        return Event(verb, roles | told)

    def _told(self, said: Participant, slot: Slot, frame: Frame) -> Participant:
        """Who or what fills the slot in the premise. Its verb and its adjectives decide the sense of its noun."""
        noun, number, adjectives = said.noun, said.number, said.adjectives
        if noun.form in CLASS or self.happens(0.2):
            noun = self._noun(slot, noun.group if self.happens(0.94) else "", homograph=0.8)
            noun = self.one_of(self._senses[noun.form]) if noun.form not in CLASS and self.happens(0.6) else noun
        if number and self.happens(0.5 if number == INDEFINITE else 0.15):
            number = self.one_of([INDEFINITE, *NUMBERS])
        adjectives *= noun.cls == said.noun.cls and self.happens(0.85)
        if self.happens(0.6) and GROUP[added := self.adjective(noun)] not in {GROUP[word] for word in adjectives}:
            adjectives = tuple(sorted((*adjectives, added), key=[*GROUP].index))  # in their English order
        telling = {GROUP[word] for word in adjectives} & TELLING
        classes = CLASSES if "?" in frame.marks and slot == frame.slots[-1] else slot.classes
        left = [cls for cls in classes if telling <= {*modifiers(cls)}]
        if noun.cls not in slot.classes or not (noun.form in CLASS or self.lexicon.is_decided(noun, left)):
            return self._told(said, slot, frame)
        return Participant(noun, adjectives=adjectives, number=number)

    def _others(self, scene: Event) -> list[Frame]:
        """The actions that exclude the scene's."""
        name, kind = scene.frame.name, scene.subject.noun.cls
        return [f for f in self.lexicon.actions if {name, f.name} in EXCLUDES and kind in f.subject.classes]
