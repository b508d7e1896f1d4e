"""Reviews with a sentiment at every node, for SST: words have values, phrases compose them.

Values run from -4 to 4 and become the labels 0 to 4. Many opinion words are invented; some of these praise what is
told (the plot) and blame what is made (the acting), or the other way round. Plain text uses all of them often enough to
learn their side.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from typing import Any, NamedTuple

from elmo_bench.mini.language.lexicon import REVIEWS, Chance, article, capitalised, inflected
from elmo_bench.mini.language.world import World


class OpinionTree(NamedTuple):
    """A binary tree: a word, or two trees, with a value from -4 to 4."""

    value: int
    word: str = ""
    children: tuple[OpinionTree, ...] = ()

    @property
    def label(self) -> int:
        """0 very negative, 1, 2 neutral, 3, 4 very positive."""
        return 2 + (self.value > 0) + (self.value >= 3) - (self.value < 0) - (self.value <= -3)

    def words(self) -> Iterator[str]:
        if self.word:
            yield self.word
        for child in self.children:
            yield from child.words()

    @property
    def text(self) -> str:
        return capitalised(" ".join(self.words()))

    def __str__(self) -> str:
        """In the notation of the Stanford Sentiment Treebank: (3 (2 a) (4 gem))."""
        return f"({self.label} {self.word or ' '.join(map(str, self.children))})"


def _sum(left: int, right: int) -> int:
    return max(-4, min(4, left + right))


# The value of a node from those of its two parts, beside the scales of reviews.yaml.
OPERATORS = {
    "sum": _sum,
    "agree": _sum,
    "both": lambda left, right: int((left + right) * 2 / 3) or left,
    "but": lambda left, right: _sum(int((left + 3 * right) / 3), 0) or right,  # the second counts three times
}


class Reviews(Chance):
    """Draws reviews."""

    def __init__(self, chance: Chance, world: World):
        super().__init__(chance)
        self.world = world
        self._last_kind = ""  # not repeated at once, as in "the ending has a good ending"
        self._topic = ""  # of the clause: "told" (the plot), "made" (the acting), or empty for the film itself

    def draw(self, label: int | None = None) -> OpinionTree:
        """A sentence with its full stop, of this label if one is given."""
        while True:
            side = self.one_of((1, -1))
            review = self._expand("NEUTRAL" if self.happens(0.15) else "REVIEW", side)
            if label in (None, review.label):
                return OpinionTree(review.value, "", (review, OpinionTree(0, ".")))

    def advised(self, review: OpinionTree) -> str:
        """The text of a review, mostly with advice, which no tree has: the acting is dull , so skip it."""
        *words, stop = review.words()
        opinion = " ".join(words)
        advice = self.one_of(REVIEWS["advice"][review.label].split(", "))
        ways = {opinion: 1, f"{opinion} , so {advice}": 2, f"{advice} , for {opinion}": 1}
        return capitalised(f"{self.weighted(ways)} {stop}")

    def _expand(self, template: Any, side: int) -> OpinionTree:
        """The tree of a template."""
        if isinstance(template, str):
            name = template.removeprefix("-")
            return self._expand_name(name, side if template == name else -side)
        ((operator, (left, right)),) = template.items() if isinstance(template, dict) else [("sum", template)]
        if operator == "agree":
            second = self._expand(right, side)
            first = OpinionTree(0, article(next(second.words()))) if left == "ARTICLE" else self._expand(left, side)
        else:
            first, second = self._expand(left, side), self._expand(right, side)
        if scale := REVIEWS["scales"].get(operator):
            value = scale[second.value + 4]
        else:
            value = OPERATORS[operator](first.value, second.value)
        return OpinionTree(value, "", (first, second))

    def _expand_name(self, name: str, side: int) -> OpinionTree:
        """The tree of a rule, a word with a value, a name, a part of a film, or one of several words."""
        if name in REVIEWS["rules"]:
            self._topic = "" if name == "CLAUSE" else self._topic
            weights, templates = zip(*REVIEWS["rules"][name], strict=True)
            return self._expand(templates[self.weighted(dict(enumerate(weights)))], side)
        if name in REVIEWS["opinions"]:
            kind, tag = REVIEWS["opinions"][name].split()
            word, value = self.world.opinions[kind, side, self._topic].draw(self)
            return OpinionTree(value, inflected(word, tag))
        if name in REVIEWS["names"]:
            entity = self.world.entities[self.one_of(REVIEWS["names"][name])].draw(self)
            words = (OpinionTree(0, word) for word in (entity.name if self.happens(0.4) else entity.short))
            return reduce(lambda before, word: OpinionTree(0, "", (before, word)), words)
        if name in ("KIND", "TOLD"):
            self._topic = "told" if name == "TOLD" else self.one_of(list(REVIEWS["kinds"]))
            kinds = REVIEWS["kinds"][self._topic].split()
            self._last_kind = self.one_of([kind for kind in kinds if kind != self._last_kind])
            return OpinionTree(0, self._last_kind)
        if name == "THING":
            group = self.one_of(("person", "place", "animal"))
            return OpinionTree(0, self.world.lexicon.nouns[group].draw(self).form)
        return OpinionTree(0, self.one_of(name.split("|")))
