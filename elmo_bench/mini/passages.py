"""Paragraphs with questions, for SQuAD: two events of one frame, so that each distracts from the other.

A question may use the hypernym of the verb (what did Tarvel clean? for a verb that is a kind of cleaning), and it fits
one event of the paragraph only.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from elmo_bench.mini.language.chance import Chance
from elmo_bench.mini.language.clauses import Clauses, Style, finite, number, predicate
from elmo_bench.mini.language.events import Event, Events, Filler, cls
from elmo_bench.mini.language.lexicon import Lexicon
from elmo_bench.mini.language.phrases import Part, Phrase, Sentence, Word, phrase, sentence
from elmo_bench.mini.language.voices import PLAIN, Discourse, Voice
from elmo_bench.mini.language.world import Entity, World

FRAMES = (
    "clean make carry break play watch chase go arrive visit meet praise join work write attend sail give buy put hire "
    "acquire supply fund launch serve host inspire beat"
).split()
TOPICS = {"person": 6, "org": 3, "place": 1}
ASKED = {"ARGM-LOC": "where", "ARGM-TMP": "when"}


class Answer(NamedTuple):
    """A character span of the context."""

    text: str
    start: int


class Question(NamedTuple):
    """A question with its answers, the shortest complete one first."""

    question: Sentence
    answers: tuple[Answer, ...]


class Passage(NamedTuple):
    """A paragraph as plain text, its sentences, and questions about it."""

    title: str
    context: str
    sentences: list[Sentence]
    questions: list[Question]

    def told(self) -> list[Sentence]:
        """The sentences and the questions."""
        return [*self.sentences, *(question.question for question in self.questions)]


class Passages:
    """Draws passages.

    Args:
        chance: the stream to draw from.
        lexicon: of a seed.
        world: of the same seed.
    """

    def __init__(self, chance: Chance, lexicon: Lexicon, world: World):
        self.chance, self.lexicon, self.world = chance, lexicon, world
        self.events = Events(chance, lexicon, world)
        self._asking = Clauses(chance, Voice(chance, PLAIN, definite=1.0))

    def passage(self) -> Passage:
        chance = self.chance
        topic = self.world.by_class[chance.weighted(TOPICS)].draw(chance)
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
                dropped = self._dropped(event, asked, events)
                answers = _answers(told, asked, starts, context)
                questions.append(Question(self._question(event, asked, dropped), answers))
        return Passage("_".join(topic.name), context, sentences, questions)

    def _happenings(self, topic: Entity) -> list[Event]:
        """An event of the topic and another one of its frame, often of the topic too; in random order."""
        first = self._event(topic)
        return self.chance.shuffled([first, self._event(topic if self.chance.happens(0.5) else None, first)])

    def _event(self, subject: Entity | None, like: Event | None = None) -> Event:
        """An event with a time and often a place; `like` gives an event whose frame it repeats."""
        frames = [self.lexicon.frames[name] for name in FRAMES]
        fit = [frame for frame in frames if subject is None or cls(subject) in frame.subject.classes]
        frame = like.verb.frame if like else self.chance.one_of(fit)
        event = replace(self.events.event(frame, subject), time=self.events.time())
        if event.place is None and not frame.placed and self.chance.happens(0.4):
            event = replace(event, place=self.world.by_class["place"].draw(self.chance))
        return event

    # Questions.

    def _askable(self, event: Event, events: list[Event], told: Sentence) -> str:
        """A role that is given without a pronoun and whose question has one answer; empty if there is none."""
        facts = _facts(event)
        spans = {span.type: span for span in told.propositions[0].arguments}
        labels = [
            label for label, span in spans.items() if label in facts and "PRP" not in told.tags[span.start : span.end]
        ]
        for label in self.chance.shuffled(labels):
            if len(facts) > 1 and _unique(event, {label}, events):
                return label
        return ""

    def _dropped(self, event: Event, asked: str, events: list[Event]) -> set[str]:
        """The roles that the question leaves out: the one it asks for, and circumstances that are not needed."""
        dropped = {asked}
        for label in ASKED:
            if self.chance.happens(0.6) and _unique(event, dropped | {label}, events):
                dropped.add(label)
        return dropped

    def _question(self, event: Event, asked: str, dropped: set[str]) -> Sentence:
        """Who mended the cart ? What was mended by Tarvel ? Who did Tarvel give the cart to ? Where ... ? When ... ?"""
        frame = event.verb.frame
        if frame.action and self.chance.happens(0.5):
            event = replace(event, verb=self.lexicon.verbs[frame.name].items[0])
        turned = event.object is not None and self.chance.happens(0.5 if asked == "ARG1" else 0.2)
        passive = turned and asked != frame.subject.label
        p, style = predicate(event.verb), Style(passive=passive)
        first_label, subject = self._asking.subject(event, passive)
        rest = [(label, part) for label, part in self._asking.complements(event, p, passive) if label not in dropped]
        parts: list[Part] = [part for label, part in rest if not label.startswith("ARGM")]
        parts.append(phrase(next((slot.preposition for slot in frame.obliques if slot.label == asked), "")))
        parts += [part for label, part in rest if label.startswith("ARGM")]
        if asked == first_label:
            first, others = finite(p, event.verb, style, "singular")
            return sentence(self._word(subject), first, *others, *parts, end="?")
        first, others = finite(p, event.verb, style, number(subject), inverted=True)
        word = phrase(ASKED[asked]) if asked in ASKED else self._word(_fillers(event)[asked])
        return sentence(word, first, self._asking.voice.refer(subject, "subject"), *others, *parts, end="?")

    def _word(self, asked: Filler) -> Phrase:
        """The question word: who, what, or which with a hypernym."""
        if cls(asked) == "person":
            return phrase("who")
        group = asked.noun.group
        return (
            phrase("which", Word(group, "NN")) if group != "relation" and self.chance.happens(0.6) else phrase("what")
        )


def _fillers(event: Event) -> dict[str, Filler]:
    """The participants and the place, by role."""
    fillers = {slot.label: filler for slot, filler in event.filled()}
    return fillers | ({"ARGM-LOC": event.place} if event.place else {})


def _facts(event: Event) -> dict[str, str]:
    """What a question can mention or ask for, by role, in words that identify it."""
    facts = {label: _wording(filler) for label, filler in _fillers(event).items()}
    return facts | ({"ARGM-TMP": " ".join(word.form for word in event.time.words())} if event.time else {})


def _wording(filler: Filler) -> str:
    if isinstance(filler, Entity):
        return " ".join(filler.short)
    owner = filler.owner.short if filler.owner else ()
    return " ".join((*filler.adjectives, filler.noun.form, *owner))


def _unique(event: Event, dropped: set[str], events: list[Event]) -> bool:
    """Whether the event is the only one of its frame with all the facts that are not dropped."""
    known = [(label, value) for label, value in _facts(event).items() if label not in dropped]
    alike = [_facts(other) for other in events if other.verb.frame == event.verb.frame]
    return bool(known) and sum(all(facts.get(label) == value for label, value in known) for facts in alike) == 1


def _answers(told: Sentence, label: str, offsets: list[int], context: str) -> tuple[Answer, ...]:
    """The answers that annotators might give: the name alone, the whole phrase, the phrase without its article."""
    start, end = next((span.start, span.end) for span in told.propositions[0].arguments if span.type == label)
    if told.tags[start] in ("IN", "TO") and (label != "ARGM-TMP" or told.words[start].lower() in ("in", "on")):
        start += 1
    bare = not any(told.tags[i] in ("JJ", "POS") or told.words[i] == "of" for i in range(start, end))
    spans = [(span.start, span.end) for span in told.entities if bare and start <= span.start < span.end <= end][:1]
    spans.append((start, end))
    if told.words[start].lower() in ("a", "an", "the"):
        spans.append((start + 1, end))
    answers = []
    for first, last in dict.fromkeys(spans):
        begin, stop = offsets[first], offsets[last - 1] + len(told.words[last - 1])
        answers.append(Answer(context[begin:stop], begin))
    return tuple(answers)


def detokenized(sentences: list[Sentence]) -> tuple[str, list[list[int]]]:
    """The text with ordinary spacing, and the start of each word of each sentence in it."""
    text, offsets = "", []
    for told in sentences:
        starts = []
        for word in told.words:
            if text and word not in (",", ".", "?", "'s"):
                text += " "
            starts.append(len(text))
            text += word
        offsets.append(starts)
    return text, offsets
