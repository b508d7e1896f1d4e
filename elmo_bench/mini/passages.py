"""Paragraphs with questions, for SQuAD: two events of one frame, so that each distracts from the other.

A question may use the hypernym of the verb (what did Tarvel clean? for a verb that is a kind of cleaning), and it fits
one event of the paragraph only.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

from elmo_bench.mini.language.chance import Chance
from elmo_bench.mini.language.clauses import Clauses, Style, verb
from elmo_bench.mini.language.english import GRAMMAR
from elmo_bench.mini.language.events import Event, Events, Filler
from elmo_bench.mini.language.lexicon import Frame
from elmo_bench.mini.language.phrases import ENTITY, Phrase, Sentence, Word, phrase, sentence
from elmo_bench.mini.language.voices import Discourse, Voice
from elmo_bench.mini.language.world import Entity, World, WorldSampler

ASKED = {"ARGM-LOC": "where", "ARGM-TMP": "when"}


class Passage(NamedTuple):
    """A paragraph as plain text, questions about it, and the sentences of both.

    A question has its answers beside it, as in SQuAD's files, the shortest complete one first.
    """

    title: str
    context: str
    questions: list[tuple[Sentence, list[dict[str, Any]]]]
    told: list[Sentence]


class Passages(WorldSampler):
    """Draws passages."""

    def __init__(self, chance: Chance, world: World):
        super().__init__(chance, world)
        self._events, self._asking = Events(chance, world), Clauses(chance, Voice(chance, definite=1.0))
        self._frames = [world.lexicon.frames[name] for name in GRAMMAR["passages"]["frames"].split()]

    def draw(self) -> Passage:
        chance = self.chance
        topic = self.world.entities[chance.weighted(GRAMMAR["passages"]["topics"])].draw(chance)
        voice = Discourse(chance)
        clauses = Clauses(chance, voice)
        events, sentences = self._happenings(topic), []
        for event in events:
            voice.new_sentence()
            style = Style(passive=event.object is not None and chance.happens(0.2))
            sentences.append(sentence(clauses.clause(event, style, fronted=chance.happens(0.3))))
        context, offsets = detokenized(sentences)
        questions = []
        for event, told, starts in zip(events, sentences, offsets, strict=True):
            if asked := self._askable(event, events, told):
                question = self._question(event, asked, self._dropped(event, asked, events))
                questions.append((question, _answers(event, asked, told, starts, context)))
        return Passage("_".join(topic.name), context, questions, [*sentences, *(question for question, _ in questions)])

    def _happenings(self, topic: Entity) -> list[Event]:
        """An event of the topic and another one of its frame, often of the topic too; in random order."""
        frame = self.chance.one_of([frame for frame in self._frames if topic.noun.cls in frame.subject.classes])
        first = self._event(frame, topic)
        return self.chance.shuffled([first, self._event(frame, topic if self.chance.happens(0.5) else None)])

    def _event(self, frame: Frame, subject: Entity | None) -> Event:
        """An event with a time and often a place."""
        event = replace(self._events.event(frame, subject), time=self._events.time())
        if event.place is None and not frame.placed and self.chance.happens(0.4):
            event = replace(event, place=self.world.entities["place"].draw(self.chance))
        return event

    # Questions.

    def _askable(self, event: Event, events: list[Event], told: Sentence) -> str:
        """A role that is given without a pronoun and whose question has one answer; empty if there is none."""
        facts = _facts(event)
        spans = {span.type: told.words[span.start : span.end] for span in told.spans[event]}
        clear = [label for label, words in spans.items() if label in facts and "PRP" not in {w.tag for w in words}]
        unique = (label for label in self.chance.shuffled(clear) if _unique(event, {label}, events))
        return next(unique, "") if len(facts) > 1 else ""

    def _dropped(self, event: Event, asked: str, events: list[Event]) -> set[str]:
        """The roles that the question leaves out: the one it asks for, and circumstances that are not needed."""
        dropped = {asked}
        for label in ASKED:
            if self.chance.happens(0.6) and _unique(event, dropped | {label}, events):
                dropped.add(label)
        return dropped

    def _question(self, event: Event, asked: str, dropped: set[str]) -> Sentence:
        """Who mended the cart ? What was mended by Tarvel ? Who did Tarvel give the cart to ? Where ... ? When ... ?"""
        if event.frame.action and self.chance.happens(0.5):
            event = replace(event, verb=self.lexicon.verbs[event.frame.name].items[0])
        turned = event.object is not None and self.chance.happens(0.5 if asked == "ARG1" else 0.2)
        style = Style(passive=turned and asked != event.frame.subject.label)
        slot, subject = event.filled()[style.passive]
        rest = [(role, part) for role, part in self._asking.complements(event, style.passive) if role not in dropped]
        preposition = next((slot.preposition for slot in event.frame.obliques if slot.label == asked), "")
        parts = [part for role, part in rest if not role.startswith("ARGM")]
        circumstances = [part for role, part in rest if role.startswith("ARGM")]
        early = [*circumstances, ","] if preposition and circumstances else []  # not: rent from in 1906
        parts += [phrase(preposition)] if preposition else circumstances
        if asked == slot.label:
            return sentence(self._word(subject), *verb(event, style, asked=True), *parts, end="?")
        word = phrase(ASKED[asked]) if asked in ASKED else self._word(_fillers(event)[asked])
        first, *others = verb(event, style, inverted=True)
        return sentence(*early, word, first, self._asking.subject(event, style.passive), *others, *parts, end="?")

    def _word(self, asked: Filler) -> Phrase:
        """The question word: who, what, or which with a hypernym."""
        if asked.noun.cls == "person":
            return phrase("who")
        group = asked.noun.group
        named = group != "relation" and self.chance.happens(0.6)
        return phrase("which", Word(group, "NN")) if named else phrase("what")


def _fillers(event: Event) -> dict[str, Filler]:
    """The participants and the place, by role."""
    fillers = {slot.label: filler for slot, filler in event.filled()}
    return fillers | ({"ARGM-LOC": event.place} if event.place else {})


def _facts(event: Event) -> dict[str, Any]:
    """What a question can mention or ask for, by role, in words that identify it."""
    facts: dict[str, Any] = {label: _wording(filler) for label, filler in _fillers(event).items()}
    return facts | ({"ARGM-TMP": event.time.parts} if event.time else {})


def _wording(filler: Filler) -> tuple[str, ...]:
    if isinstance(filler, Entity):
        return filler.short
    return (*filler.adjectives, filler.noun.form, *(filler.owner.short if filler.owner else ()))


def _unique(event: Event, dropped: set[str], events: list[Event]) -> bool:
    """Whether the event is the only one with all the facts that are not dropped."""
    known = {(label, value) for label, value in _facts(event).items() if label not in dropped}
    return bool(known) and sum(known <= _facts(other).items() for other in events) == 1


def _answers(event: Event, label: str, told: Sentence, offsets: list[int], context: str) -> list[dict[str, Any]]:
    """The answers that annotators might give: the name alone, the whole phrase, the phrase without its article."""
    start, end = next((span.start, span.end) for span in told.spans[event] if span.type == label)
    words = told.words
    if words[start].tag in ("IN", "TO"):
        start += 1
    bare = not any(word.tag in ("JJ", "POS") or word.form == "of" for word in words[start:end])
    names = [(name.start, name.end) for name in told.spans[ENTITY] if bare and start <= name.start < name.end <= end]
    spans = [*names[:1], (start, end)]
    if words[start].form.lower() in ("a", "an", "the"):
        spans.append((start + 1, end))
    answers = []
    for first, last in dict.fromkeys(spans):
        begin, stop = offsets[first], offsets[last - 1] + len(words[last - 1].form)
        answers.append({"answer_start": begin, "text": context[begin:stop]})
    return answers


def detokenized(sentences: list[Sentence]) -> tuple[str, list[list[int]]]:
    """The text with ordinary spacing, and the start of each word of each sentence in it."""
    text, offsets = "", []
    for told in sentences:
        starts = []
        for word in told.forms:
            if text and word not in (",", ".", "?", "'s"):
                text += " "
            starts.append(len(text))
            text += word
        offsets.append(starts)
    return text, offsets
