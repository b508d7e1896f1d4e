"""Paragraphs with questions, for SQuAD: two events of one frame, so that each distracts from the other.

A question may use the hypernym of the verb (what did Tarvel clean? for a verb that is a kind of cleaning), and it fits
one event of the paragraph only.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from elmo_bench.mini.language.clauses import Clauses, Style, verb
from elmo_bench.mini.language.lexicon import Frame
from elmo_bench.mini.language.phrases import ENTITY, Sentence, Word, phrase, sentence
from elmo_bench.mini.language.voices import Discourse, Voice
from elmo_bench.mini.language.words import GRAMMAR
from elmo_bench.mini.language.world import Event, Participant

ASKED = {"ARGM-LOC": "where", "ARGM-TMP": "when"}


class Passage(NamedTuple):
    """A paragraph as plain text, questions about it, and the sentences of both.

    A question has its answers beside it, as in SQuAD's files, the shortest complete one first.
    """

    title: str
    context: str
    questions: list[tuple[Sentence, list[dict[str, Any]]]]
    told: list[Sentence]


class Passages(Clauses):
    """Draws passages."""

    def draw(self) -> Passage:
        chance = self.chance
        topic = self.world.entities[chance.weighted(GRAMMAR["topics"])].draw(chance)
        voice = self.voice = Discourse(chance)
        frames = [self.lexicon.frames[name] for name in GRAMMAR["frames"]["asked"].split()]
        frame = chance.one_of([frame for frame in frames if topic.noun.cls in frame.subject.classes])
        first = self._happening(frame, topic)  # and another one, often of the topic too
        events = chance.shuffled([first, self._happening(frame, topic if chance.happens(0.5) else None)])
        sentences = []
        for event in events:
            voice.new_sentence()
            style = Style(passive=event.frame.object is not None and chance.happens(0.2))
            sentences.append(sentence(self.clause(event, style, fronted=chance.happens(0.3))))
        context, offsets = detokenized(sentences)
        self.voice, questions = Voice(chance, definite=1.0), []
        for event, told, starts in zip(events, sentences, offsets, strict=True):
            if asked := self._askable(event, events, told):
                questions.append((self._question(event, asked, events), _answers(event, asked, told, starts, context)))
        return Passage("_".join(topic.name), context, questions, [*sentences, *(question for question, _ in questions)])

    def _happening(self, frame: Frame, subject: Participant | None) -> Event:
        """An event with a time and often a place."""
        event = self.event(frame, subject).having("ARGM-TMP", self.time())
        if "ARGM-LOC" not in event.roles and not frame.placed and self.chance.happens(0.4):
            event = event.having("ARGM-LOC", self.world.entities["place"].draw(self.chance))
        return event

    def _askable(self, event: Event, events: list[Event], told: Sentence) -> str:
        """A role that is given without a pronoun and whose question has one answer; empty if there is none."""
        facts = _facts(event)
        spans = {span.type: told.words[span.start : span.end] for span in told.spans[event]}
        clear = [label for label, words in spans.items() if label in facts and "PRP" not in {w.tag for w in words}]
        unique = (label for label in self.chance.shuffled(clear) if _unique(event, {label}, events))
        return next(unique, "") if len(facts) > 1 else ""

    def _question(self, event: Event, asked: str, events: list[Event]) -> Sentence:
        """Who mended the cart ? What was mended by Tarvel ? Who did Tarvel give the cart to ? Where ... ? When ... ?

        Circumstances that are not needed may be left out.
        """
        chance, dropped = self.chance, {asked}
        for label in ASKED:
            if chance.happens(0.6) and _unique(event, dropped | {label}, events):
                dropped.add(label)
        if event.frame in self.lexicon.actions and chance.happens(0.5):
            event = Event(self.lexicon.verbs[event.frame.name].items[0], event.roles)
        turned = event.frame.object is not None and chance.happens(0.5 if asked == "ARG1" else 0.2)
        style = Style(passive=turned and asked != event.frame.subject.label)
        rest = [(role, part) for role, part in self.complements(event, style.passive) if role not in dropped]
        preposition = next((slot.preposition for slot in event.frame.slots if slot.label == asked), "")
        parts = [part for role, part in rest if not role.startswith("ARGM")]
        circumstances = [part for role, part in rest if role.startswith("ARGM")]
        early = [*circumstances, ","] if preposition and circumstances else []  # not: rent from in 1906
        parts += [phrase(preposition)] if preposition else circumstances
        word = phrase(ASKED.get(asked) or "what")
        if asked not in ASKED:
            noun = event.roles[asked].noun
            if noun.cls == "person":
                word = phrase("who")
            elif noun.group != "relation" and chance.happens(0.6):
                word = phrase("which", Word(noun.group, "NN"))
        if asked == event.frame.slots[style.passive].label:
            return sentence(word, *verb(event, style, asked=True), *parts, end="?")
        first, *others = verb(event, style, inverted=True)
        return sentence(*early, word, first, self.subject(event, style.passive), *others, *parts, end="?")


def _facts(event: Event) -> dict[str, Any]:
    """What a question can mention or ask for, by role, in words that identify it."""
    return {role: filler.parts for role, filler in event.roles.items()}


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
