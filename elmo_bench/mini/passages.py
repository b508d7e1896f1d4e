"""Paragraphs with questions, for SQuAD: three or four events, some of them alike, about somebody and about others.

A question has other words than the sentence that answers it: another verb of the frame, and the hypernyms of nouns.
Or it asks for the only name of a kind, which not the name shows but what is said of it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

from elmo_bench.mini.language.clauses import (  # isort: skip
    ENTITY, Clauses, Discourse, Sentence, Voice, Word, name, phrase, sentence, verb,
)  # fmt: skip
from elmo_bench.mini.language.lexicon import GRAMMAR, Chance, Frame
from elmo_bench.mini.language.world import TYPES, Event, Participant, Style, World

# A question, and its answers as in SQuAD's files, the shortest complete one first.
Asked = tuple[Sentence, list[dict[str, Any]]]


class Passage(NamedTuple):
    """A paragraph as plain text, questions about it, and the sentences of both."""

    title: str
    context: str
    questions: list[Asked]
    sentences: list[Sentence]


class Passages(Clauses):
    """Draws passages."""

    def __init__(self, chance: Chance, world: World):
        super().__init__(chance, world)
        verbs = self.lexicon.verbs
        uses = Counter(verb.lemma for listed in verbs.values() for verb in listed.items)
        self._frames = [self.lexicon.frames[name] for name in GRAMMAR["frames"]["asked"].split()]
        self._asking = {name: [v for v in listed.items if uses[v.lemma] == 1][:12] for name, listed in verbs.items()}

    def draw(self) -> Passage:
        topic = self.world.entities[self.weighted(GRAMMAR["topics"])].draw(self)
        events: list[Event] = []
        number = self.one_of((3, 4))
        while len(events) < number:
            frame = self.one_of(events).frame if events and self.happens(0.3) else self.one_of(self._frames)
            mine = topic.fits(frame.subject.classes) and self.happens(0.7)
            event = self._happening(frame, topic if mine else None)
            if all(event.frame != known.frame or event.subject.parts != known.subject.parts for known in events):
                events.append(event)
        voice, told = Discourse(self), []
        for event in events:
            self.voice = voice = voice.after()
            event.style = Style(passive=event.frame.object is not None and self.happens(0.2), fronted=self.happens(0.3))
            told.append(sentence(self.clause(event)))
        self.voice, questions = Voice(self, definite=1.0), self._kinds(topic, told)
        for i, event in enumerate(events):
            if asked := self._askable(event, told[i], events):
                spans = {span.type: (span.start, span.end) for span in told[i].spans[event]}
                questions.append((self._question(event, asked), _answers(*spans[asked], told, i)))
        context = spaced(form for each in told for form in each.forms)
        return Passage("_".join(topic.name), context, questions, told + [question for question, _ in questions])

    def _happening(self, frame: Frame, subject: Participant | None) -> Event:
        """An event with a time and often a place."""
        event = self.event(frame, subject).having("ARGM-TMP", self.time())
        if "ARGM-LOC" not in event.roles and not frame.placed and self.happens(0.4):
            event = event.having("ARGM-LOC", self.world.entities["place"].draw(self))
        return event

    def _kinds(self, topic: Participant, told: list[Sentence]) -> list[Asked]:
        """Which organisation is mentioned with Tarvel ?, if it is the only one."""
        found: dict[str, dict[str, tuple[int, int, int]]] = {kind: {} for kind in TYPES.values()}
        for i, each in enumerate(told):
            for span in each.spans[ENTITY]:
                found[span.type].setdefault(each.forms[span.end - 1], (span.start, span.end, i))
        asked = [
            kind for kind, names in found.items() if len({*names} - {topic.short[-1]}) == 1 and kind in GRAMMAR["kinds"]
        ]
        mentioned = [form for names in found.values() for form in names]
        if not asked or topic.short[-1] not in mentioned or len(mentioned) < 3 or self.happens(0.3):
            return []
        kind = self.one_of(asked)
        ((start, end, i),) = (place for known, place in found[kind].items() if known != topic.short[-1])
        which = ["which", Word(GRAMMAR["kinds"][kind], "NN"), "is", Word("mentioned", "VBN"), "with"]
        return [(sentence(*which, name(topic, full=False), end="?"), _answers(start, end, told, i))]

    def _askable(self, event: Event, answering: Sentence, events: list[Event]) -> str:
        """A role that is given without a pronoun and whose question has one answer; empty if there is none."""
        spans = {span.type: answering.words[span.start : span.end] for span in answering.spans[event]}
        clear = [each for each in spans if each in event.roles and "PRP" not in {word.tag for word in spans[each]}]
        alike = [other.roles for other in events if other is not event and other.frame == event.frame]

        def single(asked: str) -> bool:
            said = [slot.label for slot in event.frame.slots if slot.label in event.roles and slot.label != asked]
            return all(any(_differ(event.roles[role], other.get(role)) for role in said) for other in alike)

        return next(filter(single, self.shuffled(clear)), "")

    def _question(self, event: Event, asked: str) -> Sentence:
        """Who mended the tool ? What was mended by Tarvel ? Who did Tarvel give the tool to ? Where ... ? When ... ?"""
        verbs = [verb for verb in self._asking[event.frame.name] if verb.lemma != event.verb.lemma]
        left = {asked} | {label for label in GRAMMAR["asked"] if self.happens(0.7)}
        roles = {role: self._vaguer(part) for role, part in event.roles.items() if role == asked or role not in left}
        event = Event(self.one_of(verbs), roles)
        turned = event.frame.object is not None and self.happens(0.5 if asked == "ARG1" else 0.2)
        event.style = Style(passive=turned and asked != event.frame.subject.label)
        kept = [(role, part) for role, part in self.complements(event) if role not in left]
        preposition = next((slot.preposition for slot in event.frame.slots if slot.label == asked), "")
        parts = [part for role, part in kept if not role.startswith("ARGM")]
        circumstances = [part for role, part in kept if role.startswith("ARGM")]
        early = [*circumstances, ","] if preposition and circumstances else []  # not: rent from in 1906
        parts += [phrase(preposition)] if preposition else circumstances
        word = phrase(GRAMMAR["asked"].get(asked) or ("who" if event.roles[asked].noun.cls == "person" else "what"))
        if asked == event.grammatical[0].label:
            return sentence(word, verb(event, asked=True), *parts, end="?")
        first, *others = verb(event, inverted=True).parts
        return sentence(*early, word, first, self.subject(event), *others, *parts, end="?")

    def _vaguer(self, part: Any) -> Any:
        """A garment in place of a red coat; names and times stay."""
        if not isinstance(part, Participant) or part.name or part.noun.group not in self.lexicon.hypernyms:
            return part
        return replace(part, noun=self.lexicon.hypernyms[part.noun.group], adjectives=())


def _differ(one: Participant, other: Participant | None) -> bool:
    """Whether a question that mentions one of them, by name or by hypernym, cannot mean the other."""
    if other is None or one.noun.cls != other.noun.cls:
        return other is not None
    if one.names or other.names:  # somebody with a name may be a worker
        return () not in (one.names, other.names) and one.parts != other.parts
    return one.noun.group != other.noun.group


def _answers(start: int, end: int, told: list[Sentence], i: int) -> list[dict[str, Any]]:
    """Answers that annotators might give: the name alone, the whole phrase (words start to end of sentence i), or the
    phrase without its article."""
    answering = told[i]
    start += answering.words[start].tag in ("IN", "TO")
    inside = answering.words[start:end]
    bare = not any(word.tag in ("JJ", "POS") or word.form == "of" for word in inside)
    names = [span for span in answering.spans[ENTITY] if bare and start <= span.start < span.end <= end]
    article = inside[0].form.lower() in ("a", "an", "the")
    before = [form for each in told[:i] for form in each.forms]
    answers = []
    for first, last in dict.fromkeys(
        [*((span.start, span.end) for span in names[:1]), (start, end), (start + article, end)]
    ):
        upto = spaced([*before, *answering.forms[: first + 1]])
        text = spaced(answering.forms[first:last])
        answers.append({"answer_start": len(upto) - len(answering.forms[first]), "text": text})
    return answers


def spaced(forms: Iterable[str]) -> str:
    """Words with ordinary spacing."""
    return re.sub(r" (?=[,.?]|'s\b)", "", " ".join(forms))
