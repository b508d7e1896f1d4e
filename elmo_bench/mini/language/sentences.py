"""Sentences from events, by the templates of grammar.yaml, and stories of such sentences.

The type of a name follows from its verb, from a noun next to it or from a later pronoun, to its left or its right,
sometimes only after an insertion. In stories, mentions are names, pronouns, descriptions (the baker) and phrases with
an owner (her sister, the mayor of Tarvel), and may be nested.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

from elmo_bench.mini.language.clauses import (  # isort: skip
    CLOSING, MENTION, Clauses, Discourse, Phrase, Sentence, Voice, Word,
    as_subject, description, name, nominal, phrase, pronoun, sentence, verb,
)  # fmt: skip
from elmo_bench.mini.language.lexicon import BE, GRAMMAR, Chance, Frame, inflected
from elmo_bench.mini.language.world import TYPES, Event, Participant, Style, World


class SentenceWriter(Clauses):
    """Draws sentences: of the news, each of which stands alone, or of another kind of text."""

    kind = "news"  # a row of the table of constructions, whose templates say what a sentence is made of

    def __init__(self, chance: Chance, world: World):
        super().__init__(chance, world, Voice(chance, "news", definite=0.4))

    def draw(self) -> list[Sentence]:
        """An item of a data set: one sentence."""
        self._events: dict[Any, Event] = {}  # of the template, by their names
        template = self.weighted(GRAMMAR["constructions"][self.kind])
        return [sentence(self._expand(GRAMMAR["templates"][template]), events=self._events)]

    def _expand(self, step: Any) -> Phrase:
        """The words of a step of a template, see grammar.yaml."""
        if isinstance(step, list):
            return phrase(*[self._expand(each) for each in step])
        if isinstance(step, dict):
            ((key, value),) = step.items()
            if isinstance(key, float):
                return phrase(value if self.happens(key) else "")
            label, _, drawn = key.rpartition(" of ")
            if not label:
                self._events[drawn] = self._event(value)
                return phrase()
            subordinators = list(GRAMMAR["subordinators"].items())
            word, label = self.one_of(subordinators) if label == "SUBORDINATE" else ("", label)
            return phrase(word, self._expand(value)).marked(drawn, label)
        part, *names = step.split()
        if not names or part.islower():
            return self.being() if step == "BEING" else phrase(CLOSING if step == "CLOSING" else step)
        event, *others = (self._events[each] for each in names)
        if part in ("STYLE", "PASSIVE", "FRONTED"):  # adds no words; what has a time is past
            tense = "past" if event.time else self.weighted(GRAMMAR["tenses"])
            style = Style(tense, part == "PASSIVE", self.happens(0.06), part == "FRONTED")
            for each in (event, *others):
                each.style = style
            return phrase()
        if part == "INFINITIVE":
            event.style, part = Style("infinitive"), "PREDICATE"
        if part == "SUBJECT":
            return reduce(as_subject, others, self.subject(event))
        return verb(event) if part == "VERB" else getattr(self, part.lower())(event, *others)

    def _event(self, how: dict[str, Any]) -> Event:
        """Draws the event of a template; see grammar.yaml for how."""
        if "verb" in how:
            return Event(self.lexicon.verbs[how["verb"]].draw(self), {"ARG0": self.filler(("person",))})
        before, names = self._events.get(how.get("subject")), GRAMMAR["frames"].get(how.get("frames"))
        while True:
            frame = self.lexicon.frames[self.one_of(names)] if names else None
            event = self.event(frame, before and before.subject, "plain" in how)
            if not before or "another" not in how or event.verb.lemma != before.verb.lemma:
                break
        return event.having("ARGM-TMP", self.time() if how["time"] else None) if "time" in how else event

    def relative(self, inner: Event, outer: Event) -> Phrase:
        """The baker who mended the cart, as the subject of the outer event."""
        subject = inner.subject
        head = Voice(self, "head", definite=1.0).wording(subject)
        which = "who" if subject.noun.cls == "person" else "which" if subject.name else Word("that", "WDT")
        body = phrase(phrase(which).marked(inner, f"R-{inner.frame.subject.label}"), self.predicate(inner))
        whole = phrase(as_subject(head, inner), *((",", body, CLOSING) if subject.name else (body,)))
        return as_subject(whole.marked(MENTION, subject), outer)

    def own(self, event: Event) -> Phrase:
        """Tarvel sold her cart: the pronoun reveals the class of the subject; else a whole clause."""
        subject, role = event.subject, event.frame.slots[1].label
        target = event.roles[role]
        if not subject.name or target.name or target.owner:
            return self.clause(event)
        named, owner = self.subject(event), pronoun(subject, "possessive").marked(MENTION, subject)
        hers = phrase(owner, nominal(target)).marked(MENTION, target).marked(event, role)
        return phrase(named, verb(event), hers, event.time.marked(event, "ARGM-TMP") if event.time else "")

    def being(self) -> Phrase:
        """Tarvel is a village near Morven: a statement without an event."""
        entity = self.world.entities[self.one_of(list(TYPES))].draw(self)
        home = entity.home or self.world.entities["place"].draw(self)
        state = Event(BE, {"ARG1": entity})
        what = description(Participant(entity.noun, adjectives=(self.adjective(entity.noun),)))
        link = {"person": "from", "place": "near"}.get(entity.noun.cls, "in")
        subject = name(entity, full=self.happens(0.3)).marked(MENTION, entity)
        form, tag = self.one_of((("is", "VBZ"), ("was", "VBD")))
        about = phrase(what, link, name(home).marked(MENTION, home)).marked(state, "ARG2")
        return phrase(as_subject(subject, state), Word(form, tag, "", state), about)

    def general(self) -> list[Sentence]:
        """A baker is a worker. Munching is a kind of eating. Such a statement is in no task's data."""
        lexicon = self.lexicon
        if self.happens(0.3):
            verbs = lexicon.verbs[self.one_of(lexicon.actions).name]
            doing, kind = (Word(inflected(each.lemma, "VBG"), "VBG") for each in (verbs.draw(self), verbs.items[0]))
            return [sentence(doing, "is a kind of", kind)]
        noun = self.one_of(list(lexicon.hypernyms.values()))
        special = lexicon.nouns[noun.group].draw(self)
        return [sentence(description(Participant(special)), "is", description(Participant(noun)))]


class Stories(SentenceWriter):
    """Draws stories for coreference: with a small cast that most sentences are about, and that others may join."""

    kind = "story"

    def draw(self) -> list[Sentence]:
        """The six to ten sentences of one."""
        voice, story = Discourse(self), list[Sentence]()
        drawn = [self.world.entities[which].draw(self) for which in "person person person place org vessel".split()]
        self._cast = [new for i, new in enumerate(drawn) if new.short not in {other.short for other in drawn[:i]}]
        self._cast += [self.common(which) for which in ("vehicle", "animal") if self.happens(0.7)]
        self._hero = self._cast[0]
        number = self.one_of(range(6, 11))
        while len(story) < number:
            self.voice = following = voice.after()
            told = super().draw()
            if following.clear:
                voice = following
                story += told
        return story

    def event(self, frame: Frame | None = None, subject: Participant | None = None, plain: bool = False) -> Event:
        """An event whose subject is often the previous one, else another member of the cast."""
        if subject is None and not self.happens(0.4):
            self._hero = self.one_of(self._cast)
        if frame is None or self._hero.fits(frame.subject.classes):
            subject = subject or self._hero
        return super().event(frame, subject, plain)

    def filler(self, classes: Sequence[str]) -> Participant:
        known = [filler for filler in self._cast if filler.fits(classes)]
        if known and self.happens(0.75):
            return self.one_of(known)
        filler = super().filler(classes)
        if self.happens(0.3):
            self._cast.append(filler)
        return filler
