"""Sentences from events, in the constructions of news and stories.

The type of a name follows from its verb, from a noun next to it or from a later pronoun, to its left or its right,
sometimes only after an insertion.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from elmo_bench.mini.language.clauses import PAST, Clauses, Style, finite, number, predicate
from elmo_bench.mini.language.events import Common, Event, Events, cls, gender
from elmo_bench.mini.language.phrases import CLOSING, Phrase, Predicate, Word, phrase, role
from elmo_bench.mini.language.voices import Voice, description, mentioned, name, possessive, pronoun
from elmo_bench.mini.language.world import TYPES, Entity

NEWS = {
    "simple": 34, "fronted": 10, "passive": 10, "said": 9, "said_last": 4, "said_amid": 4, "wants": 6, "relative": 8,
    "coordinated": 8, "purpose": 3, "subordinate": 7, "own": 7, "being": 6,
}  # fmt: skip
STORY = {"simple": 14, "fronted": 3, "passive": 2, "said": 2, "wants": 3, "coordinated": 4, "subordinate": 2}
TENSES = {"past": 62, "present": 14, "perfect": 7, "will": 7, "may": 3, "must": 2, "could": 2}


class Sentences:
    """Draws sentences, without the final punctuation mark.

    Args:
        events: draws the events.
        voice: decides how to refer to participants.
        kinds: the constructions (names of the methods below), with weights.
    """

    def __init__(self, events: Events, voice: Voice, kinds: Mapping[str, int]):
        self.events, self.voice, self.kinds = events, voice, dict(kinds)
        self.chance, self.lexicon, self.world = events.chance, events.lexicon, events.world
        self.clauses = Clauses(self.chance, voice)

    def draw(self) -> Phrase:
        return getattr(self, self.chance.weighted(self.kinds))()

    def style(self, event: Event, passive: bool = False) -> Style:
        """Any tense, but the past if the event has a time."""
        tense = "past" if event.time else self.chance.weighted(TENSES)
        return Style(tense, passive, self.chance.happens(0.06))

    # One event.

    def simple(self) -> Phrase:
        event = self.events.event()
        return self.clauses.clause(event, self.style(event))

    def fronted(self) -> Phrase:
        """In 1902 , Tarvel mended the cart."""
        event = replace(self.events.event(), time=self.events.time())
        return self.clauses.clause(event, self.style(event), fronted=True)

    def passive(self) -> Phrase:
        """The cart was mended by Tarvel."""
        event = self._transitive()
        return self.clauses.clause(event, self.style(event, passive=True))

    def _transitive(self) -> Event:
        frames = [f for f in self.lexicon.frames.values() if f.object and f.name not in ("fear", "border")]
        return self.events.event(self.chance.one_of(frames))

    def own(self) -> Phrase:
        """Tarvel sold her cart: a later pronoun reveals the class of the subject."""
        event = self._transitive()
        subject, target = event.subject, event.object
        if not isinstance(subject, Entity) or not isinstance(target, Common) or target.owner:
            return self.clauses.clause(event, self.style(event))
        p = predicate(event.verb)
        (agent, _), (patient, _) = event.filled()[:2]
        named = self.voice.refer(subject, "subject", agent.classes).as_role(p, agent.label)
        owner = mentioned(pronoun(gender(subject), "possessive"), subject)
        mine = mentioned(possessive(owner, target), target).as_role(p, patient.label)
        later = [event.time.as_role(p, "ARGM-TMP")] if event.time else []
        return phrase(named, *finite(p, event.verb, PAST, number(subject))[1], mine, *later)

    # Reported speech: the report before, after and inside what is said.

    def _report(self) -> tuple[Predicate, Phrase]:
        """Tarvel said."""
        verb = self.lexicon.said.draw(self.chance)
        p = predicate(verb)
        who = self.events.filler(("person",))
        named = self.voice.refer(who, "subject", ("person",)).as_role(p, "ARG0")
        return p, phrase(named, *finite(p, verb, PAST, number(who))[1])

    def said(self) -> Phrase:
        p, report = self._report()
        that = "that" if self.chance.happens(0.6) else ""
        return phrase(report, role(p, "ARG1", phrase(Word(that, "IN")) if that else "", self.simple()))

    def said_last(self) -> Phrase:
        content = self.simple()
        p, report = self._report()
        return phrase(content.as_role(p, "ARG1"), ",", report)

    def said_amid(self) -> Phrase:
        """The cart , Tarvel said , was mended: ARG1 and C-ARG1."""
        event = self.events.event()
        inner = predicate(event.verb)
        slot, subject = event.filled()[0]
        first = self.voice.refer(subject, "subject", slot.classes).as_role(inner, slot.label)
        p, report = self._report()
        rest = self.clauses.verb_phrase(event, inner, self.style(event))
        return phrase(first.as_role(p, "ARG1"), ",", report, CLOSING, role(p, "C-ARG1", rest))

    # Two events, of the same participant or of different ones.

    def wants(self) -> Phrase:
        """Tarvel wanted to mend the cart: Tarvel is the subject of both verbs."""
        verb = self.lexicon.wanted.draw(self.chance)
        outer = predicate(verb)
        event = self.events.event(subject=self.events.filler(("person",)))
        inner = predicate(event.verb)
        subject = self.voice.refer(event.subject, "subject", ("person",)).as_role(outer, "ARG0")
        first, others = finite(outer, verb, self.style(event), number(event.subject))
        aim = self.clauses.verb_phrase(event, inner, Style("infinitive"))
        named = subject.as_role(inner, event.verb.frame.subject.label)
        return phrase(named, first, *others, role(outer, "ARG1", aim))

    def purpose(self) -> Phrase:
        """Tarvel went to Morven to mend the cart: ARGM-PRP."""
        frame = self.lexicon.frames[self.chance.one_of(("go", "visit", "buy"))]
        event = replace(self.events.event(frame), time=None)
        p = predicate(event.verb)
        second = self.events.event(subject=event.subject, plain=True)
        inner = predicate(second.verb)
        named = self.voice.refer(event.subject, "subject", frame.subject.classes).as_role(p, frame.subject.label)
        rest = self.clauses.verb_phrase(event, p, PAST)
        aim = role(p, "ARGM-PRP", self.clauses.verb_phrase(second, inner, Style("infinitive")))
        return phrase(named.as_role(inner, second.verb.frame.subject.label), rest, aim)

    def relative(self) -> Phrase:
        """The baker who mended the cart left."""
        first = self.events.event(plain=True)
        second = self.events.event(subject=first.subject)
        named = isinstance(first.subject, Entity)
        head = Voice(self.chance, {"short": 2, "full": 1}, definite=1.0).refer(first.subject, "subject")
        whole = self.clauses.relative(head._replace(mention=""), first, comma=named)
        return self.clauses.told(mentioned(whole, first.subject), second, self.style(second))

    def coordinated(self) -> Phrase:
        """Tarvel mended the cart and sold it."""
        first = self.events.event(plain=True)
        second = first
        while second.verb.lemma == first.verb.lemma:
            second = self.events.event(subject=first.subject)
        p, q = predicate(first.verb), predicate(second.verb)
        slot = first.verb.frame.subject
        subject = self.voice.refer(first.subject, "subject", slot.classes).as_role(p, slot.label)
        style = self.style(second)
        one, two = self.clauses.verb_phrase(first, p, style), self.clauses.verb_phrase(second, q, style)
        return phrase(subject.as_role(q, second.verb.frame.subject.label), one, "and", two)

    def subordinate(self) -> Phrase:
        """Because the cart broke , Tarvel left: ARGM-CAU, ARGM-TMP, ARGM-ADV."""
        causes = ("because", "ARGM-CAU"), ("when", "ARGM-TMP"), ("after", "ARGM-TMP"), ("although", "ARGM-ADV")
        word, label = self.chance.one_of(causes)
        link = phrase(Word(word, "WRB" if word == "when" else "IN"))
        first = self.chance.happens(0.5)
        side = self.clauses.clause(self.events.event(plain=True)) if first else phrase()
        main = replace(self.events.event(), time=None)
        p, slot = predicate(main.verb), main.verb.frame.subject
        named = self.voice.refer(main.subject, "subject", slot.classes).as_role(p, slot.label)
        told = phrase(named, self.clauses.verb_phrase(main, p, PAST))
        if first:
            return phrase(role(p, label, link, side), ",", told)
        return phrase(told, role(p, label, link, self.clauses.clause(self.events.event(plain=True))))

    # A statement without an event.

    def being(self) -> Phrase:
        """Tarvel is a village near Morven."""
        entity = self.world.by_class[self.chance.one_of(list(TYPES))].draw(self.chance)
        home = entity.home or self.world.by_class["place"].draw(self.chance)
        p = Predicate("be", "01")
        what = description(Common("", entity.noun, (self.events.adjective(entity.noun),)))
        link = {"person": "from", "place": "near"}.get(cls(entity), "in")
        about = phrase(what, link, mentioned(name(home), home))
        subject = mentioned(name(entity, full=self.chance.happens(0.3)), entity).as_role(p, "ARG1")
        verb = self.chance.one_of((("is", "VBZ"), ("was", "VBD")))
        return phrase(subject, Word(*verb, "", p), about.as_role(p, "ARG2"))
