"""Clauses: puts events into words, with every argument of a predicate labelled as in PropBank.

A preposition is part of its argument (to Tarvel = ARG2), and so is the `by` of a passive. Relative pronouns are
labelled R-, the second part of a split argument C-.
"""

from __future__ import annotations

from typing import NamedTuple

from elmo_bench.mini.language.chance import Chance
from elmo_bench.mini.language.events import Event, Filler, cls
from elmo_bench.mini.language.lexicon import Verb
from elmo_bench.mini.language.morphology import adverb, gerund, participle, past, third
from elmo_bench.mini.language.noun_phrases import Voice
from elmo_bench.mini.language.phrases import CLOSING, Part, Phrase, Predicate, Word, phrase, role

AUXILIARIES = {  # agreement -> be (present, past), do, have
    "singular": ("is", "was", "does", "has"),
    "plural": ("are", "were", "do", "have"),
    "I": ("am", "was", "do", "have"),
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


def finite(p: Predicate, verb: Verb, style: Style, agreement: str, inverted: bool = False) -> tuple[Phrase, list[Part]]:
    """The first auxiliary, which a question puts before the subject, and the rest of the verb.

    The auxiliary is empty if the form has none; `inverted` chooses a form that has one.
    """
    be, was, do, have = AUXILIARIES[agreement]
    no = [role(p, "ARGM-NEG", "not")] if style.negated else []

    def main(form: str, tag: str) -> Word:
        return Word(form, tag, verb.sense if form in (verb.lemma, third(verb.lemma)) else "", p)

    base = main(verb.lemma, "VB")
    done = main(participle(verb.lemma), "VBN")
    doing = main(gerund(verb.lemma), "VBG")
    tense = style.tense
    if tense == "infinitive":
        return phrase(), [*no, phrase("to be"), done] if style.passive else [*no, phrase("to"), base]
    if tense == "perfect":
        return phrase(have), [*no, phrase("been"), done] if style.passive else [*no, done]
    if tense == "progressive":
        return phrase(be), [*no, phrase("being"), done] if style.passive else [*no, doing]
    if tense in ("past", "present"):
        if style.passive:
            return phrase(was if tense == "past" else be), [*no, done]
        if style.negated or inverted:
            return phrase("did" if tense == "past" else do), [*no, base]
        if tense == "past":
            return phrase(), [main(past(verb.lemma), "VBD")]
        singular = agreement == "singular"
        return phrase(), [main(third(verb.lemma), "VBZ") if singular else main(verb.lemma, "VBP")]
    return role(p, "ARGM-MOD", tense), [*no, phrase("be"), done] if style.passive else [*no, base]


class Clauses:
    """Makes clauses; the voice decides how to refer to participants."""

    def __init__(self, chance: Chance, voice: Voice):
        self.chance, self.voice = chance, voice

    def subject(self, event: Event, passive: bool) -> tuple[str, Filler]:
        """The role and the filler of the grammatical subject."""
        frame = event.verb.frame
        if passive and frame.object and event.object:
            return frame.object.label, event.object
        return frame.subject.label, event.subject

    def clause(self, event: Event, style: Style = PAST, fronted: bool = False, inserted: bool = False) -> Phrase:
        """A full clause; its time may be at the front, or between subject and verb."""
        p = predicate(event.verb)
        label, subject = self.subject(event, style.passive)
        named = self.voice.refer(subject, "subject").as_role(p, label)
        moved = event.time is not None and (fronted or inserted)
        rest = self.verb_phrase(event, p, style, self.voice.agreement(subject), skip="ARGM-TMP" if moved else "")
        if not moved or event.time is None:
            return phrase(named, rest)
        time = event.time.as_role(p, "ARGM-TMP")
        return phrase(time, ",", named, rest) if fronted else phrase(named, ",", time, CLOSING, rest)

    def verb_phrase(self, event: Event, p: Predicate, style: Style, agreement: str, skip: str = "") -> Phrase:
        """Everything after the subject, except the role to skip."""
        first, others = finite(p, event.verb, style, agreement)
        manner: list[Part] = []
        if event.manner and style.tense not in ("infinitive",) and self.chance.happens(0.4):
            manner = [role(p, "ARGM-MNR", Word(adverb(event.manner), "RB"))]
        rest = [part for label, part in self.complements(event, p, style.passive) if label != skip]
        if manner:
            rest = [part for part in rest if (p, "ARGM-MNR") not in part.roles]
        return phrase(first, *others[:-1], *manner, others[-1], *rest)

    def complements(self, event: Event, p: Predicate, passive: bool, agent: float = 0.8) -> list[tuple[str, Phrase]]:
        """(role, phrase) of everything after the verb, in order; `agent`: probability of `by` in a passive."""
        frame, refer = event.verb.frame, self.voice.refer
        parts: list[tuple[str, Phrase]] = []
        obliques = event.obliques
        if event.object and frame.object and not passive:
            if frame.dative and obliques and self.chance.happens(0.5):  # gave him the cart
                slot, receiver = obliques[0]
                parts.append((slot.label, refer(receiver).as_role(p, slot.label)))
                obliques = ()
            parts.append((frame.object.label, refer(event.object).as_role(p, frame.object.label)))
        for slot, filler in obliques:
            parts.append((slot.label, role(p, slot.label, slot.preposition, refer(filler))))
        if passive and self.chance.happens(agent):
            parts.append((frame.subject.label, role(p, frame.subject.label, "by", refer(event.subject))))
        if event.manner:
            parts.append(("ARGM-MNR", role(p, "ARGM-MNR", Word(adverb(event.manner), "RB"))))
        circumstances: list[tuple[str, Phrase]] = []
        if event.place:
            circumstances.append(("ARGM-LOC", role(p, "ARGM-LOC", event.at, refer(event.place))))
        if event.time:
            circumstances.append(("ARGM-TMP", event.time.as_role(p, "ARGM-TMP")))
        return parts + (circumstances[::-1] if self.chance.happens(0.3) else circumstances)

    def relative(self, head: Phrase, event: Event, style: Style = PAST, comma: bool = False) -> Phrase:
        """The head with a subject relative clause: the baker who mended the cart."""
        p = predicate(event.verb)
        label, subject = self.subject(event, style.passive)
        person = cls(subject) == "person"
        word = phrase("who" if person else "which") if comma or person else phrase(Word("that", "WDT"))
        body = phrase(word.as_role(p, f"R-{label}"), self.verb_phrase(event, p, style, self.voice.agreement(subject)))
        marked = head.as_role(p, label)
        return phrase(marked, ",", body, CLOSING) if comma else phrase(marked, body)

    def object_relative(self, head: Phrase, event: Event) -> Phrase:
        """The head with an object relative clause: the cart that Tarvel mended."""
        p = predicate(event.verb)
        frame = event.verb.frame
        assert frame.object is not None
        subject = self.voice.refer(event.subject, "subject").as_role(p, frame.subject.label)
        rest = self.verb_phrase(event, p, Style(), self.voice.agreement(event.subject), skip=frame.object.label)
        link = phrase(Word("that", "WDT")).as_role(p, f"R-{frame.object.label}")
        return phrase(head.as_role(p, frame.object.label), link, subject, rest)
