"""Plain text for the biLM: every kind of sentence in the tasks' data, and general statements that are in none of them.

The senses of ambiguous words are recorded, to measure how well the layers of the biLM separate them.
"""

from __future__ import annotations

from collections.abc import Iterator

from elmo_bench.mini.formats import FORMATS
from elmo_bench.mini.language.chance import Chance
from elmo_bench.mini.language.english import GRAMMAR, REVIEWS
from elmo_bench.mini.language.events import Common
from elmo_bench.mini.language.morphology import capitalised, inflected
from elmo_bench.mini.language.phrases import Sentence, Word, sentence
from elmo_bench.mini.language.voices import description
from elmo_bench.mini.language.world import World, WorldSampler
from elmo_bench.mini.opinions import OpinionTree


class PlainText(WorldSampler):
    """Draws lines of text."""

    def __init__(self, chance: Chance, world: World):
        super().__init__(chance, world)
        self._sources = {task: made.source(chance, world) for task, made in FORMATS.items()}
        self._actions = [frame for frame in self.lexicon.frames.values() if frame.action]

    def lines(self) -> Iterator[tuple[str, str, list[tuple[int, str]]]]:
        """Endlessly: a line, the sentence in it that a task could have, and (token, sense) of its ambiguous words."""
        while True:
            kind = self.chance.weighted(GRAMMAR["text"])
            piece = [self._statement()] if kind == "statement" else FORMATS[kind].told(self._sources[kind].draw())
            for told in piece:
                if isinstance(told, OpinionTree):
                    yield self._advised(told), told.text, []
                else:
                    yield told.text, told.text, [(i, word.sense) for i, word in enumerate(told.words) if word.sense]

    def _advised(self, review: OpinionTree) -> str:
        """A review, mostly with what follows from it, which no tree has: the acting is dull , so skip it."""
        *words, stop = review.words()
        said = " ".join(words)
        advice = self.chance.one_of(REVIEWS["advice"][review.label].split(", "))
        ways = {said: 1, f"{said} , so {advice}": 2, f"{advice} , for {said}": 1}
        return capitalised(f"{self.chance.weighted(ways)} {stop}")

    def _statement(self) -> Sentence:
        """A baker is a worker. Munching is a kind of eating."""
        if self.chance.happens(0.3):
            verbs = self.lexicon.verbs[self.chance.one_of(self._actions).name]
            forms = (inflected(verb.lemma, "VBG") for verb in (verbs.draw(self.chance), verbs.items[0]))
            doing, kind = (Word(form, "VBG") for form in forms)
            return sentence(doing, "is a kind of", kind)
        general = self.lexicon.hypernyms[self.chance.one_of(list(self.lexicon.hypernyms))]
        special = self.lexicon.nouns[general.group].draw(self.chance)
        return sentence(description(Common(special)), "is", description(Common(general)))
