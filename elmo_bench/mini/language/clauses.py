"""Clauses: events in words, with the annotations of all tasks, which are therefore consistent.

A phrase may be a named entity, a mention of a participant, and an argument of one or more events. Because phrases are
nested, spans can neither cross one another nor leave their sentence. A participant is referred to by name, by noun, by
both or by pronoun. Every argument of a verb is labelled as in PropBank: a preposition is part of its argument (to
Tarvel = ARG2), and so is the `by` of a passive. Relative pronouns are labelled R-, the second part of a split argument
C-.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from elmo_bench.mini.language.lexicon import (  # isort: skip
    GRAMMAR, PREPOSITIONS, TAGS, THINGS, WORDS, Chance, Frame, Noun, Slot, capitalised, inflected, modifiers,
)  # fmt: skip
from elmo_bench.mini.language.world import GENDERS, INDEFINITE, TYPES, Event, Participant, World
from elmo_bench.text.tags import Span

ENTITY, MENTION = "entity", "mention"


class Word(NamedTuple):
    """A token with its Penn Treebank tag, its sense if the form is ambiguous, and its event if it is a main verb."""

    form: str
    tag: str
    sense: str = ""
    event: Event | None = None


class Phrase(NamedTuple):
    """Words and phrases, and (layer, label) of the whole: (ENTITY, type), (MENTION, participant) or (event, role)."""

    parts: tuple[Word | Phrase, ...]
    marks: tuple[tuple[Any, Any], ...] = ()

    def marked(self, layer: Any, label: Any) -> Phrase:
        return Phrase(self.parts, (*self.marks, (layer, label)))


Part = Word | Phrase
CLOSING = Word(",", ",")  # this very comma ends an insertion; it is omitted before another punctuation mark


def phrase(*parts: Part | str) -> Phrase:
    """Makes a phrase; a string is any number of function words, with the tags in `TAGS`."""
    words = ([Word(word, TAGS[word]) for word in part.split()] if isinstance(part, str) else [part] for part in parts)
    return Phrase(tuple(chain(*words)))


class Sentence(NamedTuple):
    """A finished sentence; `spans` has those of each layer in the order of the text, the outer one first."""

    words: tuple[Word, ...]
    spans: dict[Any, list[Span]]

    @property
    def forms(self) -> list[str]:
        return [word.form for word in self.words]

    @property
    def text(self) -> str:
        return " ".join(self.forms)


def sentence(*parts: Part | str, end: str = ".", events: Mapping[Any, Any] | None = None) -> Sentence:
    """Flattens phrases into a sentence with a capital and an end mark; chooses a or an, and places closing commas.
    A mark may have the name of one of the `events`.
    """
    words: list[Word] = []
    spans: dict[Any, list[Span]] = defaultdict(list)

    def is_closed() -> bool:
        return bool(words) and words[-1] is CLOSING

    def add(part: Part) -> None:
        if isinstance(part, Word):
            if is_closed() and part.form in (",", ".", "?"):
                words.pop()
            words.append(part)
            return
        start = len(words)
        for each in part.parts:
            add(each)
        if (end := len(words) - is_closed()) > start:
            for layer, label in part.marks:
                spans[(events or {}).get(layer, layer)].append(Span(label, start, end))

    add(phrase(*parts, end))
    for i, word in enumerate(words):
        if word.form == "a" and word.tag == "DT" and re.match("(?!uni)[aeiou]", words[i + 1].form, re.IGNORECASE):
            words[i] = word._replace(form="an")
    words[0] = words[0]._replace(form=capitalised(words[0].form))
    for found in spans.values():
        found.sort(key=lambda span: (span.start, -span.end))
    return Sentence(tuple(words), spans)


def name(entity: Participant, full: bool = True) -> Phrase:
    """The name alone, as a named entity."""
    words = [Word(word, "CC" if word == "and" else "NNP") for word in (entity.name if full else entity.short)]
    return phrase(*words).marked(ENTITY, TYPES[entity.noun.cls])


def nominal(filler: Participant) -> Phrase:
    """young baker, bakers."""
    noun, tag = filler.noun, "NNS" if filler.number else "NN"
    head = Word(inflected(noun.form, tag), tag, noun.sense)
    return phrase(*(Word(form, "JJ") for form in filler.adjectives), head)


def description(filler: Participant, determiner: str = "a") -> Phrase:
    """a young baker, the baker, three bakers, bakers."""
    if not filler.number or determiner != "a":
        return phrase(determiner, nominal(filler))
    return phrase("" if filler.number == INDEFINITE else Word(filler.number, "CD"), nominal(filler))


def pronoun(filler: Participant, case: str) -> Phrase:
    """she, them, its."""
    return phrase(Word(GRAMMAR["pronouns"][filler.pronoun][case], "PRP$" if case == "possessive" else "PRP"))


def _with_kind(entity: Participant, named: Phrase) -> Phrase:
    """the baker Tarvel, the village of Tarvel."""
    return phrase("the", nominal(entity), "of" if entity.noun.cls == "place" else "", named)


def _apposed(entity: Participant, named: Phrase) -> Phrase:
    """Tarvel , a baker from Morven ,"""
    home = phrase("from" if entity.gender else "in", name(entity.home)) if entity.home else ""
    return phrase(named, ",", description(entity), home, CLOSING)


class Voice(Chance):
    """Every sentence stands alone: `naming` is a row of the table, `definite` how often a description has "the"."""

    def __init__(self, chance: Chance, naming: str = "plain", definite: float = 0.0):
        super().__init__(chance)
        self.ways, self.definite = GRAMMAR["naming"][naming], definite

    def refer(self, filler: Participant, case: str = "object", classes: Sequence[str] = ()) -> Phrase:
        """A mention as subject, object or possessive, in a place for these classes, or for all of them."""
        return self.wording(filler, case, classes).marked(MENTION, filler)

    def wording(self, filler: Participant, case: str = "object", classes: Sequence[str] = ()) -> Phrase:
        """The words of a mention."""
        if filler.owner:
            return self._owned(filler, name(filler.owner, full=self.happens(0.3)).marked(MENTION, filler.owner))
        if not filler.name:
            return description(filler, "the" if self.happens(self.definite) else "a")
        way = self.weighted(self.ways)
        bare = name(filler, full=way == "full")
        if way == "title" and filler.gender:  # the title is not part of the entity
            return phrase(Word(self.one_of(WORDS["titles"][filler.gender]), "NNP"), bare)
        introduced = {"kind": _with_kind, "apposition": _apposed}.get(way)
        return introduced(filler, bare) if introduced else bare

    def _owned(self, filler: Participant, owner: Phrase) -> Phrase:
        """her mayor, Tarvel 's mayor, the mayor of Tarvel."""
        if getattr(owner.parts[0], "tag", "") == "PRP$":
            return phrase(owner, nominal(filler))
        if self.happens(0.5):
            return phrase(owner, "'s", nominal(filler))
        return phrase("the", nominal(filler), "of", owner)


class Discourse(Voice):
    """Introduces participants, and refers to known ones as she, Tarvel or the baker.

    A pronoun stands for the only participant of the sentence before that has its gender and that the verb allows in
    this place ("The firm sold a cart. It rusted."), or for the subject of that sentence; later in its own sentence, it
    stands for the only one of its gender. "The baker" stands for a named person only after "the baker Tarvel" or the
    like, and only if no other baker is there. `after` must be called before each sentence.
    """

    _known: Mapping[Participant, bool] = {}  # each, and whether the noun of a named one has been used
    _before: Sequence[tuple[Participant, str]] = ()  # participants of the sentence before, with their cases
    _spoken: Sequence[tuple[Participant, str]] = ()  # of this sentence
    clear = True  # whether a reader knows, so far in this sentence, who is meant

    def after(self) -> Discourse:
        """How the next sentence refers to participants; another call is for another next sentence."""
        following = Discourse(self)
        following._known, following._before = self._known, self._spoken or self._before
        return following

    def wording(self, filler: Participant, case: str = "object", classes: Sequence[str] = ()) -> Phrase:
        same = {other for other, _ in self._spoken if other.pronoun == filler.pronoun}
        again = filler in same
        certain = same <= {filler} and (again or self._antecedent(filler.pronoun, classes) is filler)
        self._spoken = (*self._spoken, (filler, case))
        if certain and self.happens(1.0 if again or case == "possessive" else 0.7):
            return pronoun(filler, case)
        known = filler in self._known
        self.clear &= not again and not self._is_vague(filler, known)
        self._known = {filler: False, **self._known}
        if filler.name:
            return self._called(filler, case, known)
        if filler.owner:
            return self._owned(filler, self.refer(filler.owner, "possessive"))
        return description(filler, "the" if known else "a")

    def _antecedent(self, wanted: str, classes: Sequence[str]) -> Participant | None:
        """Whom a pronoun here would stand for; None if that is not clear."""
        alike = {filler for filler, _ in self._before if filler.pronoun == wanted}
        fitting = {filler for filler in alike if not classes or filler.fits(classes)}
        for found in (fitting, {filler for filler in fitting if (filler, "subject") in self._before}):
            if len(found) == 1:
                return found.pop()
        return None

    def _is_vague(self, filler: Participant, known: bool) -> bool:
        """Whether its short name or its description fits another known participant."""
        others = self._known.keys() - {filler}
        if filler.name:
            return any(other.short == filler.short for other in others)
        if not known and not filler.owner:
            return False
        noun, told = filler.noun.form, {*filler.adjectives}
        alike = [other for other in others if other.noun.form == noun and told <= {*other.adjectives}]
        if not filler.owner and any(self._known[other] for other in alike):
            return True
        return (filler.owner, not filler.number) in {(each.owner, not each.number) for each in alike if not each.name}

    def _called(self, entity: Participant, case: str, known: bool) -> Phrase:
        """The name, perhaps introduced; later perhaps the noun that it was introduced with."""
        if known:
            alike = [other for other in self._known if other.noun.form == entity.noun.form]
            if self._known[entity] and len(alike) == 1 and self.happens(0.6):
                return description(entity, "the")
            return name(entity, full=self.happens(0.15))
        named = name(entity, full=self.happens(0.5))  # a given name tells the gender
        if case == "possessive" or self.happens(0.6):
            return named
        self._known = {**self._known, entity: True}
        return (_with_kind if self.happens(0.5) else _apposed)(entity, named)


def as_subject(named: Phrase, event: Event) -> Phrase:
    """A phrase as the subject of an active verb."""
    return named.marked(event, event.frame.subject.label)


def verb(event: Event, inverted: bool = False, asked: bool = False) -> Phrase:
    """The first auxiliary, which may be empty, and the rest of the verb. A question may put the auxiliary before the
    subject (inverted), so that there must be one, or ask for the subject (asked), which is singular.
    """
    tense, passive, negated, _ = event.style
    table = GRAMMAR["verbs"].get(tense, GRAMMAR["verbs"]["modal"])
    kind = "passive" if passive else "negated" if negated or inverted else "active"
    plural = not asked and bool(event.grammatical[1].number)
    first, *rest = (words.split("|")[-1 if plural else 0] for words in table.get(kind, table["active"]).split())
    parts = [phrase(tense).marked(event, "ARGM-MOD") if first == "MD" else phrase(first.strip("-"))]
    if negated:
        parts.append(phrase("not").marked(event, "ARGM-NEG"))
    lemma = event.verb.lemma
    for tag in rest:
        form = inflected(lemma, tag) if tag.startswith("VB") else ""
        sense = event.verb.sense if form in (lemma, inflected(lemma, "VBZ")) else ""
        parts.append(phrase(Word(form, tag, sense, event) if form else tag))
    return phrase(*parts)


class Clauses(Chance):
    """Draws events, in which every slot has a participant of a class that the verb allows, and puts them into clauses.
    The voice decides how to refer to participants; by default, every sentence stands alone.
    """

    def __init__(self, chance: Chance, world: World, voice: Voice | None = None):
        super().__init__(chance)
        self.world, self.lexicon, self.voice = world, world.lexicon, voice or Voice(chance)

    def event(self, frame: Frame | None = None, subject: Participant | None = None, plain: bool = False) -> Event:
        """An event, with the given frame and subject if any; `plain` leaves out time and place."""
        if frame is None:  # everyday actions are rarer
            fitting = [f for f in self.lexicon.frames.values() if not subject or subject.fits(f.subject.classes)]
            frame = self.weighted({f: 1 if "*" in f.marks else 3 for f in fitting})
        verb = self.lexicon.verbs[frame.name].draw(self)
        if verb.shared and subject is None:  # a name beside it could be anything
            subject = self.common(self.one_of(frame.subject.classes))
        roles: dict[str, Any] = {frame.subject.label: subject or self.filler(frame.subject.classes)}
        often = 0.6 if sum(bool(slot.preposition) for slot in frame.slots) == 1 else 0.45
        for slot in frame.slots[1:]:
            if not slot.preposition or self.happens(often):
                roles[slot.label] = self._other(slot.classes, roles)
        if not plain:
            placed = not frame.placed and roles[frame.subject.label].noun.cls != "place" and self.happens(0.3)
            roles["ARGM-LOC"] = self._other(("place",), roles) if placed else None
            roles["ARGM-TMP"] = self.time() if self.happens(0.4) else None
        return Event(verb, roles)

    def filler(self, classes: Sequence[str]) -> Participant:
        """Someone or something of one of the classes (or groups)."""
        wanted = self.one_of(classes)
        if self.happens(GRAMMAR["named"].get(wanted, 0.0)):
            return self.world.entities[wanted].draw(self)
        general = "thing" if {*THINGS} <= {*classes} else wanted
        if general not in ("person", "thing") or not self.happens(0.3):
            return self.common(wanted)
        owner = self.one_of(list(WORDS["relations"]))  # the mayor of a place, someone's grave
        noun = self.lexicon.relations[owner, general].draw(self)
        gender = noun.gender or self.one_of(GENDERS)
        return Participant(noun, gender=gender, owner=self.world.entities[owner].draw(self))

    def _other(self, classes: Sequence[str], roles: Mapping[str, Participant]) -> Participant:
        """A filler that is not among those of the roles and shares no name with them."""
        names = {each.names for each in roles.values()} - {()}
        while (filler := self.filler(classes)) in roles.values() or filler.names in names:
            pass
        return filler

    def common(self, wanted: str) -> Participant:
        """Someone or something of a class or group, without a name."""
        noun = self.lexicon.nouns[wanted].draw(self)
        adjectives = (self.adjective(noun),) if self.happens(0.3) else ()
        number = ""
        if noun.cls != "place" and self.happens(0.18):
            number = INDEFINITE if self.happens(0.5) else self.one_of(WORDS["numbers"])
        return Participant(noun, gender=noun.gender or self.one_of(GENDERS), adjectives=adjectives, number=number)

    def adjective(self, noun: Noun) -> str:
        """An adjective that fits the noun."""
        return self.lexicon.adjectives[self.one_of(modifiers(noun.cls))].draw(self)

    def time(self) -> Phrase:
        """in 1902, on Monday, in March, on 3 May, four years ago."""
        parts: list[Word | str] = []
        for part in reversed(self.weighted(GRAMMAR["times"]).split()):  # the month before its day
            tag, *drawn = GRAMMAR["dates"].get(part, [""])
            if drawn:
                part = str(self.one_of(range(*drawn) if len(drawn) == 2 else WORDS[drawn[0]]))
            parts.insert(0, Word(part, tag) if tag else part)
        return phrase(*parts)

    def clause(self, event: Event) -> Phrase:
        """A full clause."""
        early = phrase(event.time.marked(event, "ARGM-TMP"), ",") if event.style.fronted and event.time else phrase()
        return phrase(early, self.subject(event), self.predicate(event))

    def subject(self, event: Event) -> Phrase:
        """The grammatical subject."""
        slot, filler = event.grammatical
        return self.voice.refer(filler, "subject", slot.classes).marked(event, slot.label)

    def predicate(self, event: Event) -> Phrase:
        """Everything after the subject."""
        fronted = "ARGM-TMP" if event.style.fronted else ""
        return phrase(verb(event), *(part for role, part in self.complements(event) if role != fronted))

    def complements(self, event: Event) -> list[tuple[str, Phrase]]:
        """(role, phrase) of everything after the verb, in order; a passive names its agent."""
        passive = event.style.passive
        agent, *slots = (slot for slot in event.frame.slots if slot.label in event.roles)
        turning = "~" in event.frame.marks and not isinstance(self.voice, Discourse)  # not: gave him it
        if turning and not passive and len(slots) == 2 and self.happens(0.5):
            slots = [slot._replace(preposition="") for slot in reversed(slots)]  # gave him the cart
        if passive:
            slots = [*slots[1:], agent._replace(preposition="by")]
        if place := event.roles.get("ARGM-LOC"):
            group = PREPOSITIONS.get(place.noun.group, "in")  # of an invented noun
            slots.append(Slot("ARGM-LOC", ("place",), PREPOSITIONS.get(place.noun.form, group)))
        parts = []
        for label, classes, preposition in slots:
            named = self.voice.refer(event.roles[label], "object", classes)
            parts.append((label, phrase(preposition, named).marked(event, label)))
        if event.time:
            parts.append(("ARGM-TMP", event.time.marked(event, "ARGM-TMP")))
        if self.happens(0.3) and place and event.time:
            parts[-2:] = parts[-1], parts[-2]
        return parts
