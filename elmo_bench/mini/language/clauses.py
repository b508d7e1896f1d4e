"""Clauses: puts events into words, and refers to participants by name, by noun, by both or by pronoun.

Every argument of a verb is labelled as in PropBank. A preposition is part of its argument (to Tarvel = ARG2), and so is
the `by` of a passive. Relative pronouns are labelled R-, the second part of a split argument C-.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

from elmo_bench.mini.language.chance import Chance
from elmo_bench.mini.language.lexicon import Slot
from elmo_bench.mini.language.phrases import CLOSING, ENTITY, MENTION, Phrase, Word, phrase
from elmo_bench.mini.language.words import GRAMMAR, WORDS, inflected
from elmo_bench.mini.language.world import INDEFINITE, TYPES, Event, Events, Participant, World


def name(entity: Participant, full: bool = True) -> Phrase:
    """The name alone, as a named entity."""
    words = [Word(word, "CC" if word == "and" else "NNP") for word in (entity.name if full else entity.short)]
    return phrase(*words).marked(ENTITY, TYPES[entity.noun.cls])


def _nominal(filler: Participant) -> Phrase:
    """young baker, bakers."""
    noun, tag = filler.noun, "NNS" if filler.number else "NN"
    head = Word(inflected(noun.form, tag), tag, noun.sense)
    return phrase(*(Word(form, "JJ") for form in filler.adjectives), head)


def description(filler: Participant, determiner: str = "a") -> Phrase:
    """a young baker, the baker, three bakers, bakers."""
    if not filler.number or determiner != "a":
        return phrase(determiner, _nominal(filler))
    return phrase("" if filler.number == INDEFINITE else Word(filler.number, "CD"), _nominal(filler))


def possessive(owner: Phrase, filler: Participant) -> Phrase:
    """Tarvel 's cart; her cart, if the owner is a pronoun."""
    return phrase(phrase(owner, "" if _is_pronoun(owner) else "'s"), _nominal(filler))


def _is_pronoun(owner: Phrase) -> bool:
    return getattr(owner.parts[0], "tag", "") == "PRP$"


def pronoun(filler: Participant, case: str) -> Phrase:
    """she, them, its."""
    return phrase(Word(GRAMMAR["pronouns"][filler.pronoun][case], "PRP$" if case == "possessive" else "PRP"))


def _with_kind(entity: Participant, named: Phrase) -> Phrase:
    """the baker Tarvel, the village of Tarvel."""
    return phrase("the", _nominal(entity), "of" if entity.noun.cls == "place" else "", named)


def _apposed(entity: Participant, named: Phrase) -> Phrase:
    """Tarvel , a baker from Morven ,"""
    home = phrase("from" if entity.gender else "in", name(entity.home)) if entity.home else ""
    return phrase(named, ",", description(entity), home, CLOSING)


class Voice(Chance):
    """Every sentence stands alone.

    Args:
        chance: the stream to draw from.
        naming: how often an entity is named in which way: a row of the table.
        definite: how often a description begins with "the".
    """

    def __init__(self, chance: Chance, naming: str = "plain", definite: float = 0.0):
        super().__init__(chance)
        self.ways, self.definite = GRAMMAR["naming"][naming], definite

    def refer(self, filler: Participant, case: str = "object", classes: Sequence[str] = ()) -> Phrase:
        """A mention of the filler.

        Args:
            filler: the participant.
            case: subject, object or possessive.
            classes: what its place in the sentence is for; empty if anything goes.
        """
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
        told = {"kind": _with_kind, "apposition": _apposed}.get(way)
        return told(filler, bare) if told else bare

    def _owned(self, filler: Participant, owner: Phrase) -> Phrase:
        """Tarvel 's mayor, the mayor of Tarvel."""
        if _is_pronoun(owner) or self.happens(0.5):
            return possessive(owner, filler)
        return phrase("the", _nominal(filler), "of", owner)


class Discourse(Voice):
    """Introduces participants, and refers to known ones as she, Tarvel or the baker.

    A pronoun stands for the only participant of the sentence before that has its gender and that the verb allows in
    this place ("The firm sold a cart. It rusted."), or for the subject of that sentence; later in its own sentence, it
    stands for the only one of its gender. "The baker" stands for a named person only after "the baker Tarvel" or the
    like, and only if no other baker is there. `after` must be called before each sentence.

    Args:
        chance: the stream to draw from.

    Attributes:
        clear: whether a reader knows, so far in this sentence, who is meant.
    """

    def __init__(self, chance: Chance):
        super().__init__(chance)
        self._known: dict[Participant, bool] = {}  # those so far, and whether the noun of a name was said
        self._before: list[tuple[Participant, str]] = []  # participants of the sentence before, with their cases
        self._spoken: list[tuple[Participant, str]] = []  # of this sentence

    def after(self) -> Discourse:
        """How the next sentence refers to participants; another call is for another next sentence."""
        following = copy(self)
        following._known, following._before, following._spoken = dict(self._known), self._spoken or self._before, []
        following.clear = True
        return following

    def wording(self, filler: Participant, case: str = "object", classes: Sequence[str] = ()) -> Phrase:
        same = {other for other, _ in self._spoken if other.pronoun == filler.pronoun}
        again = filler in same
        certain = same <= {filler} and (again or self._antecedent(filler.pronoun, classes) is filler)
        self._spoken.append((filler, case))
        if certain and self.happens(1.0 if again or case == "possessive" else 0.7):
            return pronoun(filler, case)
        known = filler in self._known
        self.clear &= not again and not self._is_vague(filler, known)
        self._known.setdefault(filler, False)
        if filler.name:
            return self._called(filler, case, known)
        if filler.owner is not None:
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
        return any(
            self._known[other] and not filler.adjectives and not filler.owner
            if other.name
            else (other.owner, not other.number) == (filler.owner, not filler.number)
            and {*filler.adjectives} <= {*other.adjectives}
            for other in others
            if other.noun.form == filler.noun.form
        )

    def _called(self, entity: Participant, case: str, known: bool) -> Phrase:
        """The name, perhaps introduced; later perhaps the noun that was said of it."""
        if known:
            alike = [other for other in self._known if other.noun.form == entity.noun.form]
            if self._known[entity] and len(alike) == 1 and self.happens(0.6):
                return description(entity, "the")
            return name(entity, full=self.happens(0.15))
        if case == "possessive" or self.happens(0.5):
            return name(entity)
        self._known[entity] = True
        return (_with_kind if self.happens(0.5) else _apposed)(entity, name(entity))


def as_subject(named: Phrase, event: Event) -> Phrase:
    """A phrase as the subject of an active verb."""
    return named.marked(event, event.frame.subject.label)


def verb(event: Event, inverted: bool = False, asked: bool = False) -> Phrase:
    """The first auxiliary, which may be empty, and the rest of the verb.

    Args:
        event: what is told, in its style.
        inverted: for a question that puts the auxiliary before the subject, so that there must be one.
        asked: for a question for the subject, which is singular.
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


class Clauses(Events):
    """Draws events and puts them into clauses.

    Args:
        chance: the stream of draws.
        world: of the seed.
        voice: decides how to refer to participants; by default, every sentence stands alone.
    """

    def __init__(self, chance: Chance, world: World, voice: Voice | None = None):
        super().__init__(chance, world)
        self.voice = voice or Voice(chance)

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
        if "~" in event.frame.marks and not passive and len(slots) == 2 and self.happens(0.5):
            slots = [slot._replace(preposition="") for slot in reversed(slots)]  # gave him the cart
        if passive:
            slots = [*slots[1:], agent._replace(preposition="by")]
        if place := event.roles.get("ARGM-LOC"):
            slots.append(Slot("ARGM-LOC", ("place",), "near" if place.noun.group == "waterway" else "in"))
        parts = []
        for label, classes, preposition in slots:
            named = self.voice.refer(event.roles[label], "object", classes)
            parts.append((label, phrase(preposition, named).marked(event, label)))
        if event.time:
            parts.append(("ARGM-TMP", event.time.marked(event, "ARGM-TMP")))
        if self.happens(0.3) and place and event.time:
            parts[-2:] = parts[-1], parts[-2]
        return parts
