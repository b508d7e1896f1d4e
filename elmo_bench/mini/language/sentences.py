"""Sentences from events, in the constructions of news and stories.

The type of a name follows from its verb, from a noun next to it or from a later pronoun, to its left or its right,
sometimes only after an insertion.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

from elmo_bench.mini.language.chance import Chance
from elmo_bench.mini.language.clauses import INFINITIVE, PAST, Clauses, Style, as_subject, role, verb
from elmo_bench.mini.language.lexicon import BE
from elmo_bench.mini.language.phrases import CLOSING, MENTION, Phrase, Sentence, Word, phrase, sentence
from elmo_bench.mini.language.voices import Voice, description, name, possessive, pronoun
from elmo_bench.mini.language.words import GRAMMAR, inflected
from elmo_bench.mini.language.world import TYPES, Event, Participant, World

# What a step of a template says, of an event in its style.
PARTS: dict[str, Callable[[Clauses, Event, Style], Any]] = {
    "SUBJECT": lambda clauses, event, style: clauses.subject(event, style.passive),
    "VERB": lambda clauses, event, style: phrase(*verb(event, style)),
    "PREDICATE": lambda clauses, event, style: clauses.predicate(event, style),
    "REST": lambda clauses, event, style: clauses.predicate(event, style, "ARGM-TMP"),
    "INFINITIVE": lambda clauses, event, style: clauses.predicate(event, INFINITIVE),
    "TIME": lambda clauses, event, style: event.time,
}


class SentenceWriter(Clauses):
    """Draws sentences: of the news, each of which stands alone, or of another kind of text.

    Attributes:
        kind: of text, a row of the table of constructions, which are templates or the methods below.
    """

    kind = "news"

    def __init__(self, chance: Chance, world: World):
        super().__init__(chance, world, Voice(chance, "news", definite=0.4))

    def draw(self) -> list[Sentence]:
        """An item of a data set: one sentence."""
        return [self.sentence()]

    def sentence(self) -> Sentence:
        chosen = self.chance.weighted(GRAMMAR["constructions"][self.kind])
        if chosen not in GRAMMAR["templates"]:
            return sentence(getattr(self, chosen)())
        events: dict[Any, Event] = {}
        return sentence(self._told(GRAMMAR["templates"][chosen], events, {}), events=events)

    def style(self, event: Event, passive: bool = False) -> Style:
        """Any tense, but the past if the event has a time."""
        tense = "past" if event.time else self.chance.weighted(GRAMMAR["tenses"])
        return Style(tense, passive, self.chance.happens(0.06))

    # Templates.

    def _told(self, step: Any, events: dict[Any, Event], styles: dict[str, Style]) -> Phrase:
        """What a step of a template says, see grammar.yaml; its events and styles are added to the known ones."""
        if isinstance(step, list):
            return phrase(*[self._told(each, events, styles) for each in step])
        if isinstance(step, dict):
            ((key, value),) = step.items()
            if isinstance(key, float):
                return phrase(value if self.chance.happens(key) else "")
            label, _, drawn = key.rpartition(" of ")
            if label:
                return self._told(value, events, styles).marked(drawn, label)
            events[drawn] = self._event(events, **value)
            return phrase()
        part, *names = step.split()
        if part in ("STYLE", "PASSIVE"):
            styles |= dict.fromkeys(names, self.style(events[names[0]], part == "PASSIVE"))
            return phrase()
        if part not in PARTS:
            return phrase(CLOSING if part == "CLOSING" else step)
        first, *others = (events[each] for each in names)
        return reduce(as_subject, others, PARTS[part](self, first, styles.get(names[0], PAST)))

    def _event(
        self,
        known: dict[Any, Event],
        frames: str = "",
        subject: str = "",
        verb: str = "",
        another: bool = False,
        time: bool | None = None,
        plain: bool = False,
    ) -> Event:
        """Draws the event of a template; see grammar.yaml for the arguments."""
        if verb:
            return Event(self.lexicon.verbs[verb].draw(self.chance), {"ARG0": self.filler(("person",))})
        names = GRAMMAR["frames"].get(frames, "").split()
        before = known.get(subject)
        while True:
            frame = self.lexicon.frames[self.chance.one_of(names)] if names else None
            event = self.event(frame, before and before.subject, plain)
            if not another or not before or event.verb.lemma != before.verb.lemma:
                break
        return event if time is None else event.having("ARGM-TMP", self.time() if time else None)

    # Constructions with a condition.

    def own(self) -> Phrase:
        """Tarvel sold her cart: a later pronoun reveals the class of the subject."""
        event = self._event({}, frames="transitive")
        slot, target = event.grammatical(passive=True)
        subject = event.subject
        if not subject.name or target.name or target.owner:
            return self.clause(event, self.style(event))
        named = self.subject(event)
        owner = pronoun(subject, "possessive").marked(MENTION, subject)
        hers = role(event, slot.label, possessive(owner, target).marked(MENTION, target))
        later = role(event, "ARGM-TMP", event.time) if event.time else phrase()
        return phrase(named, *verb(event, PAST), hers, later)

    def relative(self) -> Phrase:
        """The baker who mended the cart left."""
        first = self.event(plain=True)
        second = self.event(subject=first.subject)
        named = bool(first.subject.name)
        head = Voice(self.chance, "head", definite=1.0).wording(first.subject)
        person = first.subject.noun.cls == "person"
        which = phrase("who" if person else "which") if named or person else phrase(Word("that", "WDT"))
        body = phrase(which.marked(first, f"R-{first.frame.subject.label}"), self.predicate(first))
        whole = phrase(as_subject(head, first), *((",", body, CLOSING) if named else (body,)))
        style = self.style(second)
        return phrase(as_subject(whole.marked(MENTION, first.subject), second), self.predicate(second, style))

    def subordinate(self) -> Phrase:
        """Because the cart broke , Tarvel left: ARGM-CAU, ARGM-TMP, ARGM-ADV."""
        word, label = self.chance.one_of(list(GRAMMAR["subordinators"].items()))
        first = self.chance.happens(0.5)
        side = self.clause(self.event(plain=True)) if first else phrase()
        main = self.event().having("ARGM-TMP", None)
        told = self.clause(main)
        if first:
            return phrase(role(main, label, word, side), ",", told)
        return phrase(told, role(main, label, word, self.clause(self.event(plain=True))))

    def being(self) -> Phrase:
        """Tarvel is a village near Morven: a statement without an event."""
        entity = self.world.entities[self.chance.one_of(list(TYPES))].draw(self.chance)
        home = entity.home or self.world.entities["place"].draw(self.chance)
        state = Event(BE, {"ARG1": entity})
        what = description(Participant(entity.noun, adjectives=(self.adjective(entity.noun),)))
        link = {"person": "from", "place": "near"}.get(entity.noun.cls, "in")
        subject = name(entity, full=self.chance.happens(0.3)).marked(MENTION, entity)
        form, tag = self.chance.one_of((("is", "VBZ"), ("was", "VBD")))
        about = role(state, "ARG2", what, link, name(home).marked(MENTION, home))
        return phrase(as_subject(subject, state), Word(form, tag, "", state), about)

    # A statement that no task has.

    def general(self) -> Sentence:
        """A baker is a worker. Munching is a kind of eating."""
        lexicon = self.lexicon
        if self.chance.happens(0.3):
            verbs = lexicon.verbs[self.chance.one_of(lexicon.actions).name]
            drawn = verbs.draw(self.chance), verbs.items[0]
            doing, kind = (Word(inflected(each.lemma, "VBG"), "VBG") for each in drawn)
            return sentence(doing, "is a kind of", kind)
        noun = self.chance.one_of(list(lexicon.hypernyms.values()))
        special = lexicon.nouns[noun.group].draw(self.chance)
        return sentence(description(Participant(special)), "is", description(Participant(noun)))
