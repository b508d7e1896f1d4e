"""Plain text for the biLM: every kind of sentence in the tasks' data, and general statements that are in none of them.

The senses of ambiguous words are recorded, to measure how well the layers of the biLM separate them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from elmo_bench.mini.language.chance import Chance
from elmo_bench.mini.language.events import Common, Events
from elmo_bench.mini.language.lexicon import Lexicon
from elmo_bench.mini.language.morphology import gerund
from elmo_bench.mini.language.phrases import Sentence, Word, phrase, sentence
from elmo_bench.mini.language.sentences import NEWS, Sentences
from elmo_bench.mini.language.voices import NEWS as NAMING
from elmo_bench.mini.language.voices import Voice, description
from elmo_bench.mini.language.world import World
from elmo_bench.mini.opinions import REVIEWS, Opinions, OpinionWords
from elmo_bench.mini.passages import Passages
from elmo_bench.mini.scenes import LABELS, Scenes
from elmo_bench.mini.stories import Stories

# Kinds of text, weighted by how often a piece of the kind is drawn (a story has about 90 words, a scene 10).
KINDS = {"news": 120, "story": 6, "passage": 9, "scene": 24, "review": 55, "statement": 15}


class Setting(NamedTuple):
    """Everything that is fixed for a seed before the first sentence."""

    lexicon: Lexicon
    world: World
    opinions: OpinionWords

    @classmethod
    def of(cls, seed: int, names: int, invented: int) -> Setting:
        lexicon = Lexicon(seed, invented)
        return cls(lexicon, World(seed, lexicon, names), OpinionWords(seed, lexicon.namer, invented))

    def news(self, chance: Chance) -> Sentences:
        events = Events(chance, self.lexicon, self.world)
        return Sentences(events, Voice(chance, NAMING, definite=0.4), NEWS)

    def stories(self, chance: Chance) -> Stories:
        return Stories(chance, self.lexicon, self.world)

    def scenes(self, chance: Chance) -> Scenes:
        return Scenes(Events(chance, self.lexicon, self.world))

    def passages(self, chance: Chance) -> Passages:
        return Passages(chance, self.lexicon, self.world)

    def reviews(self, chance: Chance) -> Opinions:
        return Opinions(chance, self.lexicon, self.world, self.opinions)


class Line(NamedTuple):
    """A line of plain text, (token, sense) of its ambiguous words, and the sentence in it that a task could have."""

    words: tuple[str, ...]
    senses: tuple[tuple[int, str], ...] = ()
    said: str = ""


class PlainText:
    """Draws pieces of text.

    Args:
        chance: the stream to draw from.
        setting: of a seed.
    """

    def __init__(self, chance: Chance, setting: Setting):
        self.chance, self.lexicon = chance, setting.lexicon
        self.news, self.stories, self.passages = setting.news(chance), setting.stories(chance), setting.passages(chance)
        self.scenes, self.reviews = setting.scenes(chance), setting.reviews(chance)
        self._actions = [frame for frame in self.lexicon.frames.values() if frame.action]

    def lines(self) -> Iterator[Line]:
        """An endless stream."""
        while True:
            for told in getattr(self, f"_{self.chance.weighted(KINDS)}")():
                if isinstance(told, Sentence):
                    yield Line(told.words, tuple((i, sense) for i, sense in enumerate(told.senses) if sense))
                else:
                    yield told

    def _news(self) -> list[Sentence]:
        return [sentence(self.news.draw())]

    def _story(self) -> list[Sentence]:
        return self.stories.document("").sentences

    def _passage(self) -> list[Sentence]:
        return self.passages.passage().told()

    def _scene(self) -> list[Sentence]:
        pair = self.scenes.pair(self.chance.one_of(LABELS))
        return [pair.premise, pair.hypothesis]

    def _review(self) -> list[Line]:
        """A review, mostly with what follows from it, which no tree has: the acting is dull , so skip it."""
        tree = self.reviews.drawn()
        *words, stop = tree.words()
        said = _capitalised([*words, stop])
        advice = self.chance.one_of(REVIEWS["advice"][tree.label].split(", ")).split()
        way = self.chance.weighted({"none": 1, "after": 2, "before": 1})
        if way == "after":
            words += [",", "so", *advice]
        elif way == "before":
            words = [*advice, ",", "for", *words]
        return [Line(_capitalised([*words, stop]), said=" ".join(said))]

    def _statement(self) -> list[Sentence]:
        """A baker is a worker. Munching is a kind of eating."""
        if self.chance.happens(0.3):
            verbs = self.lexicon.verbs[self.chance.one_of(self._actions).name]
            special, general = verbs.draw(self.chance), verbs.items[0]
            doing, kind = Word(gerund(special.lemma), "VBG"), Word(gerund(general.lemma), "VBG")
            return [sentence(doing, "is a kind of", kind)]
        general_noun = self.lexicon.hypernyms[self.chance.one_of(list(self.lexicon.hypernyms))]
        special_noun = self.lexicon.nouns[general_noun.group].draw(self.chance)
        one, kind_of = description(Common("", special_noun)), description(Common("", general_noun))
        return [sentence(phrase(one), "is", kind_of)]


def _capitalised(words: list[str]) -> tuple[str, ...]:
    return (words[0][0].upper() + words[0][1:], *words[1:])
