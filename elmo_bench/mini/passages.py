"""Paragraphs with questions, for SQuAD: two events of one frame, so that each distracts from the other.

A question may use the hypernym of the verb (what did Tarvel clean? for a verb that is a kind of cleaning), and it fits
one event of the paragraph only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from elmo_bench.mini.language.clauses import ENTITY, Clauses, Discourse, Sentence, Voice, Word, phrase, sentence, verb
from elmo_bench.mini.language.lexicon import GRAMMAR, Frame
from elmo_bench.mini.language.world import Event, Participant, Style

ASKED = {"ARGM-LOC": "where", "ARGM-TMP": "when"}


class Passage(NamedTuple):
    """A paragraph as plain text, questions about it, and the sentences of both.

    A question has its answers beside it, as in SQuAD's files, the shortest complete one first.
    """

    title: str
    context: str
    questions: list[tuple[Sentence, list[dict[str, Any]]]]
    sentences: list[Sentence]


class Passages(Clauses):
    """Draws passages."""

    def draw(self) -> Passage:
        topic = self.world.entities[self.weighted(GRAMMAR["topics"])].draw(self)
        voice = Discourse(self)
        frames = [self.lexicon.frames[name] for name in GRAMMAR["frames"]["asked"].split()]
        frame = self.one_of([frame for frame in frames if topic.noun.cls in frame.subject.classes])
        first = self._happening(frame, topic)  # and another one, often of the topic too
        events = self.shuffled([first, self._happening(frame, topic if self.happens(0.5) else None)])
        sentences = []
        for event in events:
            self.voice = voice = voice.after()
            passive = event.frame.object is not None and self.happens(0.2)
            event.style = Style(passive=passive, fronted=self.happens(0.3))
            sentences.append(sentence(self.clause(event)))
        self.voice, questions, words = Voice(self, definite=1.0), [], []
        for event, answering in zip(events, sentences, strict=True):
            if asked := self._askable(event, events, answering):
                questions.append((self._question(event, asked, events), _answers(event, asked, answering, words)))
            words += answering.forms
        sentences += [question for question, _ in questions]
        return Passage("_".join(topic.name), spaced(words), questions, sentences)

    def _happening(self, frame: Frame, subject: Participant | None) -> Event:
        """An event with a time and often a place."""
        event = self.event(frame, subject).having("ARGM-TMP", self.time())
        if "ARGM-LOC" not in event.roles and not frame.placed and self.happens(0.4):
            event = event.having("ARGM-LOC", self.world.entities["place"].draw(self))
        return event

    def _askable(self, event: Event, events: list[Event], answering: Sentence) -> str:
        """A role that is given without a pronoun and whose question has one answer; empty if there is none."""
        facts = event.facts
        spans = {span.type: answering.words[span.start : span.end] for span in answering.spans[event]}
        clear = [label for label, words in spans.items() if label in facts and "PRP" not in {w.tag for w in words}]
        unique = (label for label in self.shuffled(clear) if _unique(event, {label}, events))
        return next(unique, "") if len(facts) > 1 else ""

    def _question(self, event: Event, asked: str, events: list[Event]) -> Sentence:
        """Who mended the cart ? What was mended by Tarvel ? Who did Tarvel give the cart to ? Where ... ? When ... ?

        Circumstances that are not needed may be left out.
        """
        dropped = {asked}
        for label in ASKED:
            if self.happens(0.6) and _unique(event, dropped | {label}, events):
                dropped.add(label)
        if event.frame in self.lexicon.actions and self.happens(0.5):
            event = Event(self.lexicon.verbs[event.frame.name].items[0], event.roles)
        turned = event.frame.object is not None and self.happens(0.5 if asked == "ARG1" else 0.2)
        event.style = Style(passive=turned and asked != event.frame.subject.label)
        kept = [(role, part) for role, part in self.complements(event) if role not in dropped]
        preposition = next((slot.preposition for slot in event.frame.slots if slot.label == asked), "")
        parts = [part for role, part in kept if not role.startswith("ARGM")]
        circumstances = [part for role, part in kept if role.startswith("ARGM")]
        early = [*circumstances, ","] if preposition and circumstances else []  # not: rent from in 1906
        parts += [phrase(preposition)] if preposition else circumstances
        word = phrase(ASKED.get(asked) or "what")
        if asked not in ASKED:
            noun = event.roles[asked].noun
            if noun.cls == "person":
                word = phrase("who")
            elif noun.group != "relation" and self.happens(0.6):
                word = phrase("which", Word(noun.group, "NN"))
        if asked == event.grammatical[0].label:
            return sentence(word, verb(event, asked=True), *parts, end="?")
        first, *others = verb(event, inverted=True).parts
        return sentence(*early, word, first, self.subject(event), *others, *parts, end="?")


def _unique(event: Event, dropped: set[str], events: list[Event]) -> bool:
    """Whether the event is the only one with all the facts that are not dropped."""
    known = {(role, words) for role, words in event.facts.items() if role not in dropped}
    return bool(known) and sum(known <= other.facts.items() for other in events) == 1


def _answers(event: Event, label: str, answering: Sentence, before: list[str]) -> list[dict[str, Any]]:
    """The answers that annotators might give: the name alone, the whole phrase, the phrase without its article.

    Args:
        event, label: the role that is asked for.
        answering: the sentence with the answers.
        before: the words of the paragraph before it.
    """
    start, end = next((span.start, span.end) for span in answering.spans[event] if span.type == label)
    start += answering.words[start].tag in ("IN", "TO")
    inside = answering.words[start:end]
    bare = not any(word.tag in ("JJ", "POS") or word.form == "of" for word in inside)
    names = [
        (name.start, name.end) for name in answering.spans[ENTITY] if bare and start <= name.start < name.end <= end
    ]
    article = inside[0].form.lower() in ("a", "an", "the")
    answers = []
    for first, last in dict.fromkeys([*names[:1], (start, end), (start + article, end)]):
        upto = spaced([*before, *answering.forms[: first + 1]])
        answers.append(
            {"answer_start": len(upto) - len(answering.forms[first]), "text": spaced(answering.forms[first:last])}
        )
    return answers


def spaced(forms: Iterable[str]) -> str:
    """Words with ordinary spacing."""
    return re.sub(r" (?=[,.?]|'s\b)", "", " ".join(forms))
