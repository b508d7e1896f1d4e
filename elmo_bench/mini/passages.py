"""Paragraphs with questions about their events, for SQuAD.

A question repeats facts of an event, often changing between active and passive, and asks for one participant, the
place or the time. Another event with the same verb, often with a participant in common, serves as a distractor.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from elmo_bench.mini.language.chance import Chance
from elmo_bench.mini.language.clauses import Clauses, Style, finite, predicate
from elmo_bench.mini.language.events import Common, Event, Events, Filler, cls
from elmo_bench.mini.language.lexicon import Lexicon
from elmo_bench.mini.language.noun_phrases import (
    apposed,
    description,
    mentioned,
    name,
    possessive,
    pronoun,
    related,
    with_kind,
)
from elmo_bench.mini.language.phrases import Part, Phrase, Sentence, Word, phrase, sentence
from elmo_bench.mini.language.voices import SceneVoice, gender
from elmo_bench.mini.language.world import Entity, World

FRAMES = (
    "go arrive visit meet blame join work write give buy put hire acquire supply launch serve host inspire beat name "
    "fear make break carry tell"
).split()
AT_PLACES = ("go", "arrive", "visit", "serve", "host")  # already name a place


Facts = dict[str, str]  # role -> the words that fill it


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


class PassageVoice(SceneVoice):
    """Names, often with a noun; the topic becomes she, he or it if it was the subject of the previous sentence."""

    def __init__(self, chance: Chance, topic: Entity):
        self.chance, self.topic = chance, topic
        self.pronoun_allowed = False
        self.plain = False  # in questions: names and descriptions only

    def refer(self, filler: Filler, case: str = "object") -> Phrase:
        return mentioned(self._refer(filler, case), filler)

    def _refer(self, filler: Filler, case: str) -> Phrase:
        chance = self.chance
        if isinstance(filler, Common):
            if filler.owner:
                owner = mentioned(name(filler.owner, full=False), filler.owner)
                return related(owner, filler) if self.plain or chance.happens(0.5) else possessive(owner, filler)
            return description(filler, "the" if self.plain else "a")
        if filler is self.topic and case == "subject" and self.pronoun_allowed and not self.plain:
            return pronoun(gender(filler), case)
        bare = name(filler, full=chance.happens(0.4))
        if not self.plain and chance.happens(0.2):
            kind = description(Common("", filler.noun))
            return with_kind(filler, bare) if chance.happens(0.5) else apposed(bare, kind)
        return bare


class Passages:
    """Draws passages.

    Args:
        chance: the stream to draw from.
        lexicon: of a seed.
        world: of the same seed.
    """

    def __init__(self, chance: Chance, lexicon: Lexicon, world: World):
        self.chance, self.lexicon = chance, lexicon
        self.events = Events(chance, lexicon, world)
        self.world = world

    def passage(self) -> Passage:
        chance = self.chance
        topic = self.world.by_class[chance.weighted({"person": 5, "org": 3, "place": 1, "work": 1})].draw(chance)
        voice = PassageVoice(chance, topic)
        clauses = Clauses(chance, voice)
        events = self._happenings(topic)
        sentences, last = [], None
        for event in events:
            voice.pronoun_allowed = last is topic and chance.happens(0.6)
            passive = bool(event.object) and chance.happens(0.25)
            fronted = chance.happens(0.3)
            sentences.append(sentence(clauses.clause(event, Style(passive=passive), fronted)))
            last = clauses.subject(event, passive)[1]
        context, offsets = detokenized(sentences)
        voice.plain = True
        facts = [_facts(event) for event in events]
        questions = []
        for i, event in enumerate(events):
            asked = self._askable(i, events, facts, sentences[i])
            if asked:
                question = self._asked(clauses, event, asked, self._dropped(i, asked, events, facts))
                questions.append(Question(question, _answers(sentences[i], asked, offsets[i], context)))
        return Passage("_".join(topic.name), context, sentences, questions)

    def _happenings(self, topic: Entity) -> list[Event]:
        """Four to six events in random order: events of the topic, each with a similar one as a distractor."""
        chance = self.chance
        events: list[Event] = []
        for _ in range(chance.between(2, 3)):
            event = self._event(topic)
            twin = self._event(topic, event) if chance.happens(0.5) else self._event(None, event)
            if chance.happens(0.3) and event.place:
                twin = replace(twin, place=event.place, at=event.at)
            events += [event, twin]
        return chance.shuffled(events)

    def _event(self, subject: Entity | None, like: Event | None = None) -> Event:
        """An event with a time and often a place; `like` gives an event whose verb it repeats."""
        frames = [self.lexicon.frames[name] for name in FRAMES]
        fit = [frame for frame in frames if subject is None or cls(subject) in frame.subject.classes]
        frame = like.verb.frame if like else self.chance.one_of(fit)
        event = self.events.event(frame, subject)
        event = replace(event, time=self._time(), manner="", verb=like.verb if like else event.verb)
        if event.place is None and frame.name not in AT_PLACES and self.chance.happens(0.4):
            event = replace(event, place=self.world.places.draw(self.chance), at="in")
        return event

    def _time(self) -> Phrase:
        return phrase("in", self.events.year()) if self.chance.happens(0.5) else self.events.time()

    # Questions.

    def _askable(self, i: int, events: list[Event], facts: list[Facts], told: Sentence) -> str:
        """A role of event i that its sentence mentions and whose question has one answer; empty if there is none."""
        spans = {span.type: span for span in told.propositions[0].arguments}
        labels = [label for label, span in spans.items() if label in facts[i] and told.tags[span.start] != "PRP"]
        for label in self.chance.shuffled(labels):
            if len(facts[i]) > 1 and _unique(i, {label}, events, facts):
                return label
        return ""

    def _dropped(self, i: int, asked: str, events: list[Event], facts: list[Facts]) -> set[str]:
        """The roles that the question leaves out: the one it asks for, and circumstances that are not needed."""
        dropped = {asked}
        for label in ("ARGM-TMP", "ARGM-LOC"):
            if self.chance.happens(0.6) and _unique(i, dropped | {label}, events, facts):
                dropped.add(label)
        return dropped

    def _asked(self, clauses: Clauses, event: Event, label: str, dropped: set[str]) -> Sentence:
        """Who mended the cart ? What was mended by Tarvel ? Who did Tarvel give the cart to ? Where ... ? When ... ?"""
        frame = event.verb.frame
        of_object = frame.object is not None and label == frame.object.label
        turned = self.chance.happens(0.6 if of_object else 0.2)
        passive = turned and event.object is not None and label != frame.subject.label
        p, style = predicate(event.verb), Style(passive=passive)
        first_label, subject = clauses.subject(event, passive)
        rest = [(what, part) for what, part in clauses.complements(event, p, passive, agent=1.0) if what not in dropped]
        parts: list[Part] = [part for what, part in rest if not what.startswith("ARGM")]
        parts.append(phrase(next((slot.preposition for slot, _ in event.obliques if slot.label == label), "")))
        parts += [part for what, part in rest if what.startswith("ARGM")]
        if label == first_label:
            first, others = finite(p, event.verb, style, "singular")
            return sentence(self._word(subject), first, *others, *parts, end="?")
        first, others = finite(p, event.verb, style, clauses.voice.agreement(subject), inverted=True)
        asked = {"ARGM-LOC": "where", "ARGM-TMP": "when"}.get(label)
        word = phrase(asked) if asked else self._word(_fillers(event)[label])
        return sentence(word, first, clauses.voice.refer(subject, "subject"), *others, *parts, end="?")

    def _word(self, asked: Filler) -> Phrase:
        """The question word: who, what, or which with a noun."""
        if cls(asked) == "person":
            return phrase("who")
        if isinstance(asked, Entity) and self.chance.happens(0.7):
            return phrase("which", Word(asked.noun.group, "NN"))
        return phrase(Word("what", "WP"))


def _fillers(event: Event) -> dict[str, Filler]:
    """The participants and the place of an event, by role."""
    frame = event.verb.frame
    fillers = {frame.subject.label: event.subject, **{slot.label: filler for slot, filler in event.obliques}}
    if frame.object and event.object:
        fillers[frame.object.label] = event.object
    if event.place:
        fillers["ARGM-LOC"] = event.place
    return fillers


def _facts(event: Event) -> Facts:
    """What a question can mention or ask for, by role, in words that identify it."""
    facts = {label: _wording(filler) for label, filler in _fillers(event).items()}
    return facts | ({"ARGM-TMP": sentence(event.time).text} if event.time else {})


def _wording(filler: Filler) -> str:
    if isinstance(filler, Entity):
        return " ".join(filler.short)
    owner = filler.owner.short if filler.owner else ()
    return " ".join((*filler.adjectives, filler.noun.form, *owner))


def _unique(i: int, dropped: set[str], events: list[Event], facts: list[Facts]) -> bool:
    """Whether event i is the only one with its verb and all the facts that are not dropped."""
    known = [(label, value) for label, value in facts[i].items() if label not in dropped]
    alike = [f for e, f in zip(events, facts, strict=True) if e.verb == events[i].verb]
    return bool(known) and len([f for f in alike if all(f.get(label) == value for label, value in known)]) == 1


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
