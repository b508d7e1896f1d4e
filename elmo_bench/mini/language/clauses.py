"""Clauses: puts events into words, with every argument of a verb labelled as in PropBank.

A preposition is part of its argument (to Tarvel = ARG2), and so is the `by` of a passive. Relative pronouns are
labelled R-, the second part of a split argument C-.
"""

from __future__ import annotations

from typing import NamedTuple

from elmo_bench.mini.language.chance import Chance
from elmo_bench.mini.language.lexicon import Slot
from elmo_bench.mini.language.phrases import Part, Phrase, Word, phrase
from elmo_bench.mini.language.voices import Voice
from elmo_bench.mini.language.words import GRAMMAR, inflected
from elmo_bench.mini.language.world import Event, Events, World


class Style(NamedTuple):
    """The form of a clause. Tenses: past, present, perfect, progressive, infinitive, or a modal verb."""

    tense: str = "past"
    passive: bool = False
    negated: bool = False


PAST, INFINITIVE = Style(), Style("infinitive")


def role(event: Event, label: str, *parts: Part | str) -> Phrase:
    """A phrase that is an argument of the event's verb."""
    return phrase(*parts).marked(event, label)


def as_subject(named: Phrase, event: Event) -> Phrase:
    """A phrase as the subject of an active verb."""
    return named.marked(event, event.frame.subject.label)


def verb(event: Event, style: Style, inverted: bool = False, asked: bool = False) -> list[Part]:
    """The first auxiliary, which may be empty, and the rest of the verb.

    Args:
        event: what is told.
        style: the form.
        inverted: for a question that puts the auxiliary before the subject, so that there must be one.
        asked: for a question for the subject, which is singular.
    """
    tense, passive, negated = style
    table = GRAMMAR["verbs"].get(tense, GRAMMAR["verbs"]["modal"])
    kind = "passive" if passive else "negated" if negated or inverted else "active"
    plural = not asked and bool(event.grammatical(passive)[1].number)
    first, *rest = (words.split("|")[-1 if plural else 0] for words in table.get(kind, table["active"]).split())
    parts: list[Part] = [role(event, "ARGM-MOD", tense) if first == "MD" else phrase(first.strip("-"))]
    if negated:
        parts.append(role(event, "ARGM-NEG", "not"))
    lemma = event.verb.lemma
    for word in rest:
        if word.startswith("VB"):
            form = inflected(lemma, word)
            parts.append(Word(form, word, event.verb.sense if form in (lemma, inflected(lemma, "VBZ")) else "", event))
        else:
            parts.append(phrase(word))
    return parts


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

    def clause(self, event: Event, style: Style = PAST, fronted: bool = False) -> Phrase:
        """A full clause; its time may be at the front."""
        early = phrase(event.time.marked(event, "ARGM-TMP"), ",") if fronted and event.time else phrase()
        skipped = "ARGM-TMP" if fronted else ""
        return phrase(early, self.subject(event, style.passive), self.predicate(event, style, skipped))

    def subject(self, event: Event, passive: bool = False) -> Phrase:
        """The grammatical subject."""
        slot, filler = event.grammatical(passive)
        return self.voice.refer(filler, "subject", slot.classes).marked(event, slot.label)

    def predicate(self, event: Event, style: Style = PAST, skipped: str = "") -> Phrase:
        """Everything after the subject, except the role to skip."""
        later = [part for label, part in self.complements(event, style.passive) if label != skipped]
        return phrase(*verb(event, style), *later)

    def complements(self, event: Event, passive: bool) -> list[tuple[str, Phrase]]:
        """(role, phrase) of everything after the verb, in order; a passive names its agent."""
        agent, *slots = (slot for slot in event.frame.slots if slot.label in event.roles)
        if "~" in event.frame.marks and not passive and len(slots) == 2 and self.chance.happens(0.5):
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
        if self.chance.happens(0.3) and place and event.time:
            parts[-2:] = parts[-1], parts[-2]
        return parts
