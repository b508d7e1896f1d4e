"""Plain text for the biLM: every kind of sentence in the tasks' data, and general statements that are in none of them.

The senses of ambiguous words are recorded, to measure how well the layers of the biLM separate them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from elmo_bench.mini.almanac import Almanac
from elmo_bench.mini.language.chance import Chance
from elmo_bench.mini.language.events import Events
from elmo_bench.mini.language.lexicon import Lexicon
from elmo_bench.mini.language.opinion_words import OpinionWords
from elmo_bench.mini.language.phrases import Sentence, sentence
from elmo_bench.mini.language.sentences import NEWS, Sentences
from elmo_bench.mini.language.voices import NewsVoice
from elmo_bench.mini.language.world import World
from elmo_bench.mini.opinions import Opinions
from elmo_bench.mini.passages import Passages
from elmo_bench.mini.scenes import LABELS, Scenes
from elmo_bench.mini.stories import Stories

# Kinds of text, weighted by how often a piece of the kind is drawn (a story has about 90 words, a scene 10).
KINDS = {"news": 120, "story": 5, "passage": 5, "scene": 20, "review": 35, "almanac": 15}


class Setting(NamedTuple):
    """Everything that is fixed for a seed before the first sentence."""

    lexicon: Lexicon
    world: World
    opinions: OpinionWords

    @classmethod
    def of(cls, seed: int, names: int, invented: int) -> Setting:
        lexicon = Lexicon(seed, invented)
        return cls(lexicon, World(seed, lexicon, names), OpinionWords(seed, lexicon.namer, 6 * invented))


class Line(NamedTuple):
    """A line of plain text with (token, sense) of its ambiguous words."""

    words: tuple[str, ...]
    senses: tuple[tuple[int, str], ...] = ()


class PlainText:
    """Draws pieces of text.

    Args:
        chance: the stream to draw from.
        setting: of a seed.
    """

    def __init__(self, chance: Chance, setting: Setting):
        lexicon, world, words = setting
        self.chance = chance
        self.news = news(chance, setting)
        self.stories = Stories(chance, lexicon, world)
        self.passages = Passages(chance, lexicon, world)
        self.scenes = Scenes(chance, lexicon)
        self.opinions = Opinions(chance, lexicon, world, words)
        self.almanac = Almanac(chance, lexicon)

    def lines(self) -> Iterator[Line]:
        """An endless stream."""
        while True:
            yield from getattr(self, f"_{self.chance.weighted(KINDS)}")()

    def _news(self) -> Iterator[Line]:
        yield _line(sentence(self.news.draw()))

    def _story(self) -> Iterator[Line]:
        yield from map(_line, self.stories.document("").sentences)

    def _passage(self) -> Iterator[Line]:
        passage = self.passages.passage()
        yield from map(_line, passage.sentences)
        yield from (_line(question.question) for question in passage.questions)

    def _scene(self) -> Iterator[Line]:
        pair = self.scenes.pair(self.chance.one_of(LABELS))
        yield from (_line(pair.premise), _line(pair.hypothesis))

    def _review(self) -> Iterator[Line]:
        yield Line(tuple(self.opinions.review().words()))

    def _almanac(self) -> Iterator[Line]:
        yield _line(self.almanac.sentence())


def news(chance: Chance, setting: Setting) -> Sentences:
    """News sentences of a seed, from a stream of draws."""
    events = Events(chance, setting.lexicon, setting.world)
    return Sentences(events, NewsVoice(events), NEWS)


def _line(told: Sentence) -> Line:
    return Line(told.words, tuple((i, sense) for i, sense in enumerate(told.senses) if sense))
