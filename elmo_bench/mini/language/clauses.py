"""Clauses: puts events into words, with every argument of a predicate labelled as in PropBank.

A preposition is part of its argument (to Tarvel = ARG2), and so is the `by` of a passive. Relative pronouns are
labelled R-, the second part of a split argument C-.
"""

from __future__ import annotations

from typing import NamedTuple

from elmo_bench.mini.language.chance import Chance
from elmo_bench.mini.language.events import Event, Filler, cls, preposition
from elmo_bench.mini.language.lexicon import Verb
from elmo_bench.mini.language.morphology import gerund, participle, past, third
from elmo_bench.mini.language.phrases import CLOSING, Part, Phrase, Predicate, Word, phrase, role
from elmo_bench.mini.language.voices import Voice, gender

AUXILIARIES = {  # number -> be (present, past), do, have
    "singular": ("is", "was", "does", "has"),
    "plural": ("are", "were", "do", "have"),
}


class Style(NamedTuple):
    """The form of a clause. Tenses: past, present, perfect, progressive, infinitive, or a modal verb."""

    tense: str = "past"
    passive: bool = False
    negated: bool = False


PAST = Style()


def predicate(verb: Verb) -> Predicate:
    """A new occurrence of the verb."""
    return Predicate(verb.lemma, verb.number)


def number(filler: Filler) -> str:
    """How a verb agrees with its subject."""
    return "plural" if gender(filler) == "plural" else "singular"


def finite(p: Predicate, verb: Verb, style: Style, number: str, inverted: bool = False) -> tuple[Phrase, list[Part]]:
    """The first auxiliary, which a question puts before the subject, and the rest of the verb.

    The auxiliary is empty if the form has none; `inverted` chooses a form that has one.
    """
    be, was, do, have = AUXILIARIES[number]
    no = [role(p, "ARGM-NEG", "not")] if style.negated else []

    def main(form: str, tag: str) -> Word:
        return Word(form, tag, verb.sense if form in (verb.lemma, third(verb.lemma)) else "", p)

    base = main(verb.lemma, "VB")
    done = main(participle(verb.lemma), "VBN")
    tense = style.tense
    if tense == "infinitive":
        return phrase(), [*no, phrase("to be"), done] if style.passive else [*no, phrase("to"), base]
    if tense == "perfect":
        return phrase(have), [*no, phrase("been"), done] if style.passive else [*no, done]
    if tense == "progressive":
        doing = main(gerund(verb.lemma), "VBG")
        return phrase(be), [*no, phrase("being"), done] if style.passive else [*no, doing]
    if tense not in ("past", "present"):
        return role(p, "ARGM-MOD", tense), [*no, phrase("be"), done] if style.passive else [*no, base]
    if style.passive:
        return phrase(was if tense == "past" else be), [*no, done]
    if style.negated or inverted:
        return phrase("did" if tense == "past" else do), [*no, base]
    if tense == "past":
        return phrase(), [main(past(verb.lemma), "VBD")]
    return phrase(), [main(third(verb.lemma), "VBZ") if number == "singular" else main(verb.lemma, "VBP")]


class Clauses:
    """Makes clauses; the voice decides how to refer to participants."""

    def __init__(self, chance: Chance, voice: Voice):
        self.chance, self.voice = chance, voice

    def subject(self, event: Event, passive: bool) -> tuple[str, Filler]:
        """The role and the filler of the grammatical subject."""
        slot, filler = event.filled()[1 if passive and event.object else 0]
        return slot.label, filler

    def clause(self, event: Event, style: Style = PAST, fronted: bool = False) -> Phrase:
        """A full clause; its time may be at the front."""
        p = predicate(event.verb)
        label, subject = self.subject(event, style.passive)
        time = [event.time.as_role(p, "ARGM-TMP"), phrase(",")] if fronted and event.time else []
        slots = [slot for slot, filler in event.filled() if filler is subject]
        named = self.voice.refer(subject, "subject", slots[0].classes).as_role(p, label)
        return phrase(*time, named, self.verb_phrase(event, p, style, skip="ARGM-TMP" if time else ""))

    def told(self, subject: Phrase, event: Event, style: Style = PAST) -> Phrase:
        """The event, with the given phrase as its subject."""
        p = predicate(event.verb)
        return phrase(subject.as_role(p, event.verb.frame.subject.label), self.verb_phrase(event, p, style))

    def verb_phrase(self, event: Event, p: Predicate, style: Style, skip: str = "") -> Phrase:
        """Everything after the subject, except the role to skip."""
        first, others = finite(p, event.verb, style, number(self.subject(event, style.passive)[1]))
        rest = [part for label, part in self.complements(event, p, style.passive) if label != skip]
        return phrase(first, *others, *rest)

    def complements(self, event: Event, p: Predicate, passive: bool) -> list[tuple[str, Phrase]]:
        """(role, phrase) of everything after the verb, in order; a passive names its agent."""
        (agent, subject), *others = event.filled()
        parts: list[tuple[str, Phrase]] = []
        dative = event.verb.frame.dative and not passive and len(others) == 2 and self.chance.happens(0.5)
        for slot, filler in reversed(others) if dative else others:  # gave him the cart
            if not (passive and filler is event.object):
                link = "" if dative else slot.preposition
                named = phrase(link, self.voice.refer(filler, "object", slot.classes))
                parts.append((slot.label, named.as_role(p, slot.label)))
        if passive and event.object:
            named = self.voice.refer(subject, "object", agent.classes)
            parts.append((agent.label, role(p, agent.label, "by", named)))
        circumstances: list[tuple[str, Phrase]] = []
        if event.place:
            where = phrase(preposition(event.place), self.voice.refer(event.place, "object", ("place",)))
            circumstances.append(("ARGM-LOC", where.as_role(p, "ARGM-LOC")))
        if event.time:
            circumstances.append(("ARGM-TMP", event.time.as_role(p, "ARGM-TMP")))
        return parts + (circumstances[::-1] if self.chance.happens(0.3) else circumstances)

    def relative(self, head: Phrase, event: Event, comma: bool) -> Phrase:
        """The head with a subject relative clause: the baker who mended the cart."""
        p = predicate(event.verb)
        label = event.verb.frame.subject.label
        person = cls(event.subject) == "person"
        word = phrase("who" if person else "which") if comma or person else phrase(Word("that", "WDT"))
        body = phrase(word.as_role(p, f"R-{label}"), self.verb_phrase(event, p, PAST))
        marked = head.as_role(p, label)
        return phrase(marked, ",", body, CLOSING) if comma else phrase(marked, body)
