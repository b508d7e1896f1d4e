"""Sentences from events, in the constructions of news and stories.

The type of a name follows from its verb, from a noun next to it or from a later pronoun, to its left or its right,
sometimes only after an insertion.
"""

from __future__ import annotations

from dataclasses import replace

from elmo_bench.mini.language.chance import Chance
from elmo_bench.mini.language.clauses import INFINITIVE, PAST, Clauses, Style, as_subject, role, verb
from elmo_bench.mini.language.english import GRAMMAR
from elmo_bench.mini.language.events import Common, Event, Events, gender
from elmo_bench.mini.language.lexicon import BE
from elmo_bench.mini.language.phrases import CLOSING, MENTION, Phrase, Sentence, Word, phrase, sentence
from elmo_bench.mini.language.voices import Voice, description, name, possessive, pronoun
from elmo_bench.mini.language.world import TYPES, Entity, World


class SentenceWriter(Clauses):
    """Draws sentences.

    Args:
        events: draws the events.
        voice: decides how to refer to participants.
        kind: of text, a row of the table of constructions, which are the methods below.
    """

    def __init__(self, events: Events, voice: Voice, kind: str):
        super().__init__(events.chance, voice)
        self.events, self.world, self.lexicon = events, events.world, events.lexicon
        self.constructions = GRAMMAR["constructions"][kind]

    def draw(self) -> Sentence:
        return sentence(getattr(self, self.chance.weighted(self.constructions))())

    def style(self, event: Event, passive: bool = False) -> Style:
        """Any tense, but the past if the event has a time."""
        tense = "past" if event.time else self.chance.weighted(GRAMMAR["tenses"])
        return Style(tense, passive, self.chance.happens(0.06))

    # One event.

    def simple(self) -> Phrase:
        event = self.events.event()
        return self.clause(event, self.style(event))

    def fronted(self) -> Phrase:
        """In 1902 , Tarvel mended the cart."""
        event = replace(self.events.event(), time=self.events.time())
        return self.clause(event, self.style(event), fronted=True)

    def passive(self) -> Phrase:
        """The cart was mended by Tarvel."""
        event = self._transitive()
        return self.clause(event, self.style(event, passive=True))

    def _transitive(self) -> Event:
        frames = [f for f in self.lexicon.frames.values() if f.object and f.name not in ("fear", "border")]
        return self.events.event(self.chance.one_of(frames))

    def own(self) -> Phrase:
        """Tarvel sold her cart: a later pronoun reveals the class of the subject."""
        event = self._transitive()
        (_, subject), (slot, target), *_ = event.filled()
        if not isinstance(subject, Entity) or not isinstance(target, Common) or target.owner:
            return self.clause(event, self.style(event))
        named = self.subject(event)
        owner = pronoun(gender(subject), "possessive").marked(MENTION, subject)
        hers = role(event, slot.label, possessive(owner, target).marked(MENTION, target))
        later = role(event, "ARGM-TMP", event.time) if event.time else phrase()
        return phrase(named, *verb(event, PAST), hers, later)

    # Reported speech: the report before, after and inside what is said.

    def _report(self) -> tuple[Event, Phrase]:
        """Tarvel said."""
        said = Event(self.lexicon.verbs["said"].draw(self.chance), self.events.filler(("person",)))
        return said, phrase(self.subject(said), *verb(said, PAST))

    def said(self) -> Phrase:
        said, report = self._report()
        that = phrase(Word("that", "IN")) if self.chance.happens(0.6) else phrase()
        return phrase(report, role(said, "ARG1", that, self.simple()))

    def said_last(self) -> Phrase:
        content = self.simple()
        said, report = self._report()
        return phrase(content.marked(said, "ARG1"), ",", report)

    def said_amid(self) -> Phrase:
        """The cart , Tarvel said , was mended: ARG1 and C-ARG1."""
        event = self.events.event()
        first = self.subject(event)
        said, report = self._report()
        rest = self.predicate(event, self.style(event))
        return phrase(first.marked(said, "ARG1"), ",", report, CLOSING, rest.marked(said, "C-ARG1"))

    # Two events, of the same participant or of different ones.

    def wants(self) -> Phrase:
        """Tarvel wanted to mend the cart: Tarvel is the subject of both verbs."""
        wanted = self.lexicon.verbs["wanted"].draw(self.chance)
        event = self.events.event(subject=self.events.filler(("person",)))
        wish = Event(wanted, event.subject)
        named = as_subject(self.subject(wish), event)
        style = self.style(event)
        return phrase(named, *verb(wish, style), role(wish, "ARG1", self.predicate(event, INFINITIVE)))

    def purpose(self) -> Phrase:
        """Tarvel went to Morven to mend the cart: ARGM-PRP."""
        frame = self.lexicon.frames[self.chance.one_of(("go", "visit", "buy"))]
        event = replace(self.events.event(frame), time=None)
        aim = self.events.event(subject=event.subject, plain=True)
        named = as_subject(self.subject(event), aim)
        return phrase(named, self.predicate(event), role(event, "ARGM-PRP", self.predicate(aim, INFINITIVE)))

    def relative(self) -> Phrase:
        """The baker who mended the cart left."""
        first = self.events.event(plain=True)
        second = self.events.event(subject=first.subject)
        named = isinstance(first.subject, Entity)
        head = Voice(self.chance, "head", definite=1.0).wording(first.subject)
        person = first.subject.noun.cls == "person"
        which = phrase("who" if person else "which") if named or person else phrase(Word("that", "WDT"))
        body = phrase(which.marked(first, f"R-{first.frame.subject.label}"), self.predicate(first))
        whole = phrase(as_subject(head, first), *((",", body, CLOSING) if named else (body,)))
        style = self.style(second)
        return phrase(as_subject(whole.marked(MENTION, first.subject), second), self.predicate(second, style))

    def coordinated(self) -> Phrase:
        """Tarvel mended the cart and sold it."""
        first = second = self.events.event(plain=True)
        while second.verb.lemma == first.verb.lemma:
            second = self.events.event(subject=first.subject)
        named = as_subject(self.subject(first), second)
        style = self.style(second)
        return phrase(named, self.predicate(first, style), "and", self.predicate(second, style))

    def subordinate(self) -> Phrase:
        """Because the cart broke , Tarvel left: ARGM-CAU, ARGM-TMP, ARGM-ADV."""
        word, label = self.chance.one_of(list(GRAMMAR["subordinators"].items()))
        first = self.chance.happens(0.5)
        side = self.clause(self.events.event(plain=True)) if first else phrase()
        main = replace(self.events.event(), time=None)
        told = self.clause(main)
        if first:
            return phrase(role(main, label, word, side), ",", told)
        return phrase(told, role(main, label, word, self.clause(self.events.event(plain=True))))

    # A statement without an event.

    def being(self) -> Phrase:
        """Tarvel is a village near Morven."""
        entity = self.world.entities[self.chance.one_of(list(TYPES))].draw(self.chance)
        home = entity.home or self.world.entities["place"].draw(self.chance)
        state = Event(BE, entity)
        what = description(Common(entity.noun, (self.events.adjective(entity.noun),)))
        link = {"person": "from", "place": "near"}.get(entity.noun.cls, "in")
        subject = name(entity, full=self.chance.happens(0.3)).marked(MENTION, entity)
        form, tag = self.chance.one_of((("is", "VBZ"), ("was", "VBD")))
        about = role(state, "ARG2", what, link, name(home).marked(MENTION, home))
        return phrase(as_subject(subject, state), Word(form, tag, "", state), about)


def news(chance: Chance, world: World) -> SentenceWriter:
    """Sentences of the news, each of which stands alone."""
    return SentenceWriter(Events(chance, world), Voice(chance, "news", definite=0.4), "news")
