"""Sentences from events, in the constructions of news and stories.

The type of a name follows from its verb, from a noun next to it or from a later pronoun, to its left or its right,
sometimes only after an insertion; some contexts (criticise, trust) reveal nothing, so that one has to know the name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from elmo_bench.mini.language import english
from elmo_bench.mini.language.clauses import Clauses, Style, finite, predicate
from elmo_bench.mini.language.events import Common, Event, Events, Filler, cls
from elmo_bench.mini.language.noun_phrases import Voice, description, mentioned, name, possessive, pronoun
from elmo_bench.mini.language.phrases import CLOSING, Phrase, Predicate, Word, phrase, role
from elmo_bench.mini.language.world import Entity

NEWS = {
    "simple": 34, "fronted": 8, "inserted": 8, "passive": 9, "said": 9, "said_last": 4, "said_amid": 4, "wants": 6,
    "relative": 6, "object_relative": 3, "where": 3, "coordinated": 8, "two": 6, "purpose": 3, "subordinate": 7,
    "own": 7, "being": 7, "price": 2, "list": 5,
}  # fmt: skip
STORY = {"simple": 12, "fronted": 3, "passive": 2, "said": 2, "wants": 3, "coordinated": 4, "two": 3, "subordinate": 2}
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

    def _told_alone(self, event: Event, **how: bool) -> Phrase:
        return self.clauses.clause(event, self.style(event), **how)

    # One event.

    def simple(self) -> Phrase:
        return self._told_alone(self.events.event())

    def passive(self) -> Phrase:
        event = self.transitive()
        return self.clauses.clause(event, self.style(event, passive=True))

    def transitive(self) -> Event:
        """An event with an object that may become the subject."""
        frames = [f for f in self.lexicon.frames.values() if f.object and f.name not in ("fear", "border")]
        return self.events.event(self.chance.one_of(frames))

    def fronted(self) -> Phrase:
        """In 1902 , Tarvel mended the cart."""
        return self._told_alone(self._timed(), fronted=True)

    def inserted(self) -> Phrase:
        """Tarvel , in 1902 , mended the cart."""
        return self._told_alone(self._timed(), inserted=True)

    def _timed(self) -> Event:
        return replace(self.events.event(), time=self.events.time())

    def own(self) -> Phrase:
        """Tarvel sold her cart: a later pronoun reveals the class of the subject."""
        event = self.transitive()
        subject, target, frame = event.subject, event.object, event.verb.frame
        if not isinstance(subject, Entity) or not isinstance(target, Common) or target.owner or not frame.object:
            return self._told_alone(event)
        p = predicate(event.verb)
        named = self.voice.refer(subject, "subject").as_role(p, frame.subject.label)
        owner = mentioned(pronoun(subject.gender, "possessive"), subject)
        mine = mentioned(possessive(owner, target), target).as_role(p, frame.object.label)
        later = [event.time.as_role(p, "ARGM-TMP")] if event.time else []
        return phrase(named, *finite(p, event.verb, Style(), "singular")[1], mine, *later)

    # Reported speech: the report before, after and inside what is said.

    def _reporter(self, p: Predicate) -> Phrase:
        return self.voice.refer(self.events.filler(("person", "person", "org")), "subject").as_role(p, "ARG0")

    def said(self) -> Phrase:
        verb = self.lexicon.speech.draw(self.chance)
        p = predicate(verb)
        reporter = self._reporter(p)
        that = "that" if self.chance.happens(0.6) else ""
        content = role(p, "ARG1", that, self._told_alone(self.events.event()))
        return phrase(reporter, *finite(p, verb, Style(), "singular")[1], content)

    def said_last(self) -> Phrase:
        verb = self.lexicon.speech.draw(self.chance)
        p = predicate(verb)
        content = role(p, "ARG1", self._told_alone(self.events.event()))
        return phrase(content, ",", self._reporter(p), *finite(p, verb, Style(), "singular")[1])

    def said_amid(self) -> Phrase:
        """The cart , Tarvel said , was mended: ARG1 and C-ARG1."""
        verb = self.lexicon.speech.draw(self.chance)
        p = predicate(verb)
        event = self.events.event()
        style = self.style(event)
        inner = predicate(event.verb)
        label, subject = self.clauses.subject(event, style.passive)
        first = role(p, "ARG1", self.voice.refer(subject, "subject").as_role(inner, label))
        report = phrase(",", self._reporter(p), *finite(p, verb, Style(), "singular")[1], CLOSING)
        rest = self.clauses.verb_phrase(event, inner, style, self.voice.agreement(subject))
        return phrase(first, report, role(p, "C-ARG1", rest))

    # Two events, of the same participant or of different ones.

    def wants(self) -> Phrase:
        """Tarvel wanted to mend the cart: Tarvel is the subject of both verbs."""
        verb = self.lexicon.control.draw(self.chance)
        outer = predicate(verb)
        event = self.events.event(subject=self.events.filler(("person", "org")))
        inner = predicate(event.verb)
        subject = self.voice.refer(event.subject, "subject").as_role(outer, "ARG0")
        subject = subject.as_role(inner, event.verb.frame.subject.label)
        first, others = finite(outer, verb, self.style(event), self.voice.agreement(event.subject))
        aim = self.clauses.verb_phrase(event, inner, Style("infinitive"), "singular")
        return phrase(subject, first, *others, role(outer, "ARG1", aim))

    def purpose(self) -> Phrase:
        """Tarvel went to Morven to mend the cart: ARGM-PRP."""
        frame = self.lexicon.frames[self.chance.one_of(("go", "visit", "buy"))]
        event = replace(self.events.event(frame), time=None)
        p = predicate(event.verb)
        second = self.events.event(subject=event.subject, plain=True)
        inner = predicate(second.verb)
        subject = self.voice.refer(event.subject, "subject").as_role(p, frame.subject.label)
        rest = self.clauses.verb_phrase(event, p, Style(), self.voice.agreement(event.subject))
        aim = self.clauses.verb_phrase(second, inner, Style("infinitive"), "singular")
        return phrase(subject.as_role(inner, second.verb.frame.subject.label), rest, role(p, "ARGM-PRP", aim))

    def relative(self) -> Phrase:
        """The baker who mended the cart left."""
        first = self.events.event(plain=True)
        second = self.events.event(subject=first.subject)
        head = self._bare(first.subject)
        whole = self.clauses.relative(head, first, comma=isinstance(first.subject, Entity))
        return self._told(mentioned(whole, first.subject), second)

    def object_relative(self) -> Phrase:
        """The cart that Tarvel mended broke."""
        first = replace(self.transitive(), time=None, place=None)
        if not isinstance(first.object, Common):
            return self._told_alone(first)
        second = self.events.event(subject=first.object)
        whole = self.clauses.object_relative(self._bare(first.object), first)
        return self._told(mentioned(whole, first.object), second)

    def where(self) -> Phrase:
        """The town where Tarvel mended the cart flooded: R-ARGM-LOC."""
        place = self.events.common("place")
        inner = self.events.event(self.chance.one_of([f for f in self.lexicon.frames.values() if f.action]), plain=True)
        p = predicate(inner.verb)
        head = description(place, "the").as_role(p, "ARGM-LOC")
        clause = self._told(self.voice.refer(inner.subject, "subject"), inner, p)
        whole = mentioned(phrase(head, phrase("where").as_role(p, "R-ARGM-LOC"), clause), place)
        return self._told(whole, self.events.event(subject=place))

    def _told(self, subject: Phrase, event: Event, p: Predicate | None = None) -> Phrase:
        """The event, with the given phrase as its subject."""
        p = p or predicate(event.verb)
        rest = self.clauses.verb_phrase(event, p, self.style(event), self.voice.agreement(event.subject))
        return phrase(subject.as_role(p, event.verb.frame.subject.label), rest)

    def _bare(self, filler: Filler) -> Phrase:
        if isinstance(filler, Entity):
            return name(filler, full=self.chance.happens(0.3))
        if filler.owner:
            return possessive(mentioned(name(filler.owner, full=False), filler.owner), filler)
        return description(filler, "the")

    def coordinated(self) -> Phrase:
        """Tarvel mended the cart and sold it."""
        first = self.events.event(plain=True)
        second = self.events.event(subject=first.subject)
        p, q = predicate(first.verb), predicate(second.verb)
        subject = self.voice.refer(first.subject, "subject").as_role(p, first.verb.frame.subject.label)
        agreement, style = self.voice.agreement(first.subject), self.style(second)
        one = self.clauses.verb_phrase(first, p, style, agreement)
        two = self.clauses.verb_phrase(second, q, style, agreement)
        return phrase(subject.as_role(q, second.verb.frame.subject.label), one, "and", two)

    def two(self) -> Phrase:
        event = self.events.event(plain=True)
        style = self.style(event)
        first = self.clauses.clause(event, style)
        joint = phrase(",", self.chance.one_of(("and", "but")))
        return phrase(first, joint, self.clauses.clause(self.events.event(plain=True), style))

    def subordinate(self) -> Phrase:
        """Because the cart broke , Tarvel left: ARGM-CAU, ARGM-TMP, ARGM-ADV."""
        causes = ("because", "ARGM-CAU"), ("when", "ARGM-TMP"), ("after", "ARGM-TMP"), ("although", "ARGM-ADV")
        word, label = self.chance.one_of(causes)
        main = replace(self.events.event(), time=None)
        p = predicate(main.verb)

        def side() -> Phrase:
            return role(p, label, word, self.clauses.clause(self.events.event(plain=True)))

        def told() -> Phrase:
            subject = self.voice.refer(main.subject, "subject").as_role(p, main.verb.frame.subject.label)
            return phrase(subject, self.clauses.verb_phrase(main, p, Style(), self.voice.agreement(main.subject)))

        return phrase(side(), ",", told()) if self.chance.happens(0.5) else phrase(told(), side())

    # Statements without an event.

    def being(self) -> Phrase:
        """Tarvel is a village near Morven."""
        entity = self.world.by_class[self.chance.one_of(("person", "place", "org", "work"))].draw(self.chance)
        home = entity.home or self.world.places.draw(self.chance)
        p = Predicate("be", "01")
        kind = self.events.common(cls(entity))
        what = description(Common("", entity.noun, kind.adjectives))
        link = {"person": "from", "place": "near"}.get(cls(entity), "in")
        about = phrase(what, link, mentioned(name(home), home))
        subject = mentioned(self._bare(entity), entity).as_role(p, "ARG1")
        return phrase(
            subject, Word(*self.chance.one_of((("is", "VBZ"), ("was", "VBD"))), "", p), about.as_role(p, "ARG2")
        )

    def price(self) -> Phrase:
        """The price of plums rose from 3 to 7 crowns in March: ARG3, ARG4."""
        verb = self.lexicon.price.draw(self.chance)
        p = predicate(verb)
        thing = self.lexicon.nouns[self.chance.one_of(english.THING)].draw(self.chance)
        start, end = (Word(str(self.chance.between(2, 90)), "CD") for _ in range(2))
        crowns = Word("crowns", "NNS")
        price = role(p, "ARG1", "the", Word("price", "NN"), "of", Word(thing.plural, "NNS", thing.sense))
        moves = [role(p, "ARG3", "from", start), role(p, "ARG4", "to", end, crowns)]
        if self.chance.happens(0.3):
            moves = [role(p, "ARG2", "by", start, crowns)]
        return phrase(
            price, *finite(p, verb, Style(), "singular")[1], *moves, self.events.time().as_role(p, "ARGM-TMP")
        )

    def list(self) -> Phrase:
        """Tarvel , Morven and Skanedo are villages: the class is revealed last."""
        which = self.chance.one_of(("person", "place", "org", "work"))
        ranked = self.world.by_class[which]
        first, second, third = (ranked.draw(self.chance) for _ in range(3))
        p = Predicate("be", "01")
        names = [mentioned(name(e, full=self.chance.happens(0.2)), e) for e in (first, second, third)]
        noun = self.lexicon.nouns[which].draw(self.chance)
        subject = role(p, "ARG1", names[0], ",", names[1], "and", names[2])
        return phrase(subject, Word("are", "VBP", "", p), role(p, "ARG2", Word(noun.plural, "NNS", noun.sense)))
