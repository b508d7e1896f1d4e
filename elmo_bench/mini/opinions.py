"""Reviews with a sentiment at every node, for SST: words have values, phrases compose them.

Most adjectives are invented; their side depends on what they are said of: what is told (the plot) or made (the acting).
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from elmo_bench.mini.language.lexicon import REVIEWS, Chance, capitalised
from elmo_bench.mini.language.world import World


class OpinionTree(NamedTuple):
    """A binary tree: a word, which evidence follows in plain text, or two trees; with a value from -4 to 4."""

    value: int
    word: str = ""
    children: tuple[OpinionTree, ...] = ()
    evidence: str = ""

    @property
    def label(self) -> int:
        """0 very negative, 1, 2 neutral, 3, 4 very positive."""
        return 2 + (self.value > 0) + (self.value >= 3) - (self.value < 0) - (self.value <= -3)

    @property
    def text(self) -> str:
        return capitalised(self.said())

    def said(self, explained: bool = False) -> str:
        return self.word + self.evidence * explained or " ".join(child.said(explained) for child in self.children)

    def __str__(self) -> str:
        """In the notation of the Stanford Sentiment Treebank: (3 (2 a) (4 gem))."""
        return f"({self.label} {self.word or ' '.join(map(str, self.children))})"


class Reviews(Chance):
    """Draws reviews."""

    def __init__(self, chance: Chance, world: World):
        super().__init__(chance)
        self.world = world
        self._topic, self._said = "", {"ITS": "its", "PART": ""}  # of the clause; what names of templates stand for

    def draw(self, label: int | None = None) -> OpinionTree:
        """A sentence with its full stop, of this label if one is given."""
        while True:
            self._said |= {name: self.world.entities[cls].draw(self).short[0] for name, cls in REVIEWS["names"].items()}
            review = self._expand("REVIEW", self.one_of((1, 0, -1)))
            if label in (None, review.label) and not re.search(r"\b(\w+) and \1\b|( is a ).*\2", review.text):
                return OpinionTree(review.value, "", (review, OpinionTree(0, ".")))

    def _expand(self, template: Any, side: int) -> OpinionTree:
        """The tree of a template."""
        if isinstance(template, str):
            return self._expand_name(template.lstrip("-0"), side * {"-": -1, "0": 0}.get(template[0], 1))
        ((operator, parts),) = template.items() if isinstance(template, dict) else [("sum", template)]
        left, right = (self._expand(part, side) for part in parts)
        first, second, divisor = REVIEWS["operators"][operator]
        value = int((first * left.value + second * right.value) / divisor) or right.value or left.value
        return OpinionTree(value, "", (left, right))

    def _expand_name(self, name: str, side: int) -> OpinionTree:
        """The tree of a rule, a word with a value, a name, a part of the film, or one of several words."""
        if name in REVIEWS["rules"]:
            self._topic = "" if name == "CLAUSE" else self._topic
            return self._expand(self.one_of([rule for n, rule in REVIEWS["rules"][name] for _ in range(n)]), side)
        if name in REVIEWS["opinions"]:
            return self._opinion(side, **REVIEWS["opinions"][name])
        if name in ("A_PART", "ITS"):
            part = self.one_of([part for part in REVIEWS["parts"] if part != self._said["PART"]])
            self._topic, self._said["PART"] = REVIEWS["parts"][part], part
        return OpinionTree(0, self._said.get(name.removeprefix("A_")) or self.one_of(name.split("|")))

    def _opinion(self, side: int, of: str, limit: int = 4, evidence: str = "") -> OpinionTree:
        """A word of the lists, with a value up to the limit; an invented one mostly has evidence of the same value."""
        lists = {kind: self.world.opinions[kind, side, self._topic] for kind in ("known", "invented", *of.split())}
        value, word = self.one_of([each for kind in of.split() for each in lists[kind] if abs(each[0]) <= limit])
        leaf = OpinionTree(value, word)
        if not evidence or (value, word) not in lists["invented"] or self.happens(0.15):
            return leaf
        known = self.one_of([word for size, word in lists["known"] if size == value])
        remark = self.one_of(REVIEWS["remarks"][leaf.label].split("; "))
        return leaf._replace(evidence=" " + self.one_of(evidence.split("; ")).format(known=known, remark=remark))
