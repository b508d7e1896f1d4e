"""Reviews with a sentiment at every node, for SST: words have values, phrases compose them.

Values run from -4 to 4 and become the labels 0 to 4. Many opinion words are invented; some of these praise what is
told (the plot) and blame what is made (the acting), or the other way round. Plain text uses all of them often enough to
learn their side.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from elmo_bench.mini.language.chance import Chance, Ranked
from elmo_bench.mini.language.english import table
from elmo_bench.mini.language.lexicon import Lexicon
from elmo_bench.mini.language.morphology import Inventor, adverb, article, third
from elmo_bench.mini.language.world import World

REVIEWS = table("reviews")
SUFFIXES = ("y", "ish", "ous", "al", "ic")


@dataclass(frozen=True, eq=False)
class Tree:
    """A binary tree: a word, or two trees, with a value from -4 to 4."""

    value: int
    word: str = ""
    children: tuple[Tree, ...] = ()

    @property
    def label(self) -> int:
        """0 very negative, 1, 2 neutral, 3, 4 very positive."""
        strength = 2 if abs(self.value) >= 3 else 1 if self.value else 0
        return 2 + (strength if self.value > 0 else -strength)

    def words(self) -> Iterator[str]:
        if self.word:
            yield self.word
        for child in self.children:
            yield from child.words()

    def __str__(self) -> str:
        """In the notation of the Stanford Sentiment Treebank: (3 (2 a) (4 gem))."""
        return f"({self.label} {self.word or ' '.join(map(str, self.children))})"


def _scaled(value: int, by: int) -> int:
    """The value moved away from zero (by > 0) or towards it, but never across it."""
    size = max(1, min(4, abs(value) + by)) if value else 0
    return size if value > 0 else -size


def _negated(value: int) -> int:
    """not good is bad, not superb a little bad, not awful a little good."""
    weak = 1 if abs(value) >= 3 else 2
    return 0 if value == 0 else -weak if value > 0 else weak


# What the two parts of a node come to.
OPERATORS = {
    "": lambda left, right: max(-4, min(4, left + right)),
    "more": lambda _, right: _scaled(right, 1),
    "most": lambda _, right: _scaled(right, 2),
    "less": lambda _, right: _scaled(right, -2),
    "not": lambda _, right: _negated(right),
    "both": lambda left, right: int((left + right) * 2 / 3) or left,
    "but": lambda left, right: max(-4, min(4, int((left + 3 * right) / 3))) or right,  # the second counts three times
}


class OpinionWords:
    """Opinion words with their values, by side (1 positive, -1 negative) and by the kind of what they describe.

    Args:
        seed: of the data set; decides the sides of the invented words.
        namer: makes stems that are not words yet.
        invented: the number of invented adjectives, nouns and verbs of a side; six times as many adjectives turn.
    """

    def __init__(self, seed: int, namer: Inventor, invented: int):
        chance = Chance("opinions", seed)
        values = REVIEWS["values"]
        self.words: dict[tuple[str, int, str], Ranked[tuple[str, int]]] = {}
        adjectives = [namer.stem() + chance.one_of(SUFFIXES) for _ in range(8 * invented)]
        turning = adjectives[2 * invented :]
        for side in (1, -1):
            fixed = adjectives[:invented] if side > 0 else adjectives[invented : 2 * invented]
            known = [(word, size * side) for size in (2, 4) for word in values["adjectives"][size * side].split()]
            known += [(word, 2 * side) for word in fixed]
            for kind, here in (("told", 1), ("made", -1), ("", 0)):
                half = turning[::2] if here * side > 0 else turning[1::2]
                words = known + [(word, 2 * side) for word in half if here]
                self.words["adjectives", side, kind] = Ranked(chance.shuffled(words), flat=16)
            for which in ("nouns", "verbs"):
                stems = [namer.stem() for _ in range(invented)]
                words = [(word, 3 * side) for word in [*values[which][3 * side].split(), *stems]]
                self.words[which, side, ""] = Ranked(chance.shuffled(words), flat=16)


class Opinions:
    """Draws reviews.

    Args:
        chance: the stream to draw from.
        lexicon: of a seed.
        world: of the same seed.
        words: of the same seed.
    """

    def __init__(self, chance: Chance, lexicon: Lexicon, world: World, words: OpinionWords):
        self.chance, self.lexicon, self.world, self.words = chance, lexicon, world, words
        self._kind_said = ""  # the last, which is not said again at once: the ending has a good ending
        self._topic = ""  # of what the clause is about: told, made, or empty for the whole

    def review(self) -> Tree:
        """A sentence with its full stop."""
        return _capitalised(self.drawn())

    def drawn(self) -> Tree:
        """A review that does not begin with a capital letter yet."""
        side = self.chance.one_of((1, -1))
        whole = self._rule("NEUTRAL" if self.chance.happens(0.15) else "REVIEW", side)
        return Tree(whole.value, "", (whole, Tree(0, ".")))

    def _rule(self, name: str, side: int) -> Tree:
        if name == "CLAUSE":
            self._topic = ""
        return self._grown(_parsed(self.chance.weighted(REVIEWS["rules"][name])), side)

    def _grown(self, template: Any, side: int) -> Tree:
        """The tree of a parsed template."""
        if isinstance(template, str):
            return self._leaf(template, side)
        operator, *parts = template
        if "ARTICLE" in parts:  # depends on the word after it
            after = self._grown(parts[1], side)
            return Tree(after.value, "", (Tree(0, article(next(after.words()))), after))
        children = tuple(self._grown(part, side) for part in parts)
        if len(children) == 1:
            return children[0]
        return Tree(OPERATORS[operator](*(child.value for child in children)), "", children)

    def _leaf(self, template: str, side: int) -> Tree:
        name = template.removeprefix("-")
        side = -side if template != name else side
        if name in REVIEWS["rules"]:
            return self._rule(name, side)
        if name.isupper():
            return getattr(self, f"_{name.lower()}")(side)
        return Tree(0, self.chance.one_of(template.split("|")))

    # The words in capitals.

    def _adjective(self, side: int) -> Tree:
        word, value = self.words.words["adjectives", side, self._topic].draw(self.chance)
        return Tree(value, word)

    def _quality(self, side: int) -> Tree:
        """An adjective and what it is said of, which is drawn first: the adjective's side depends on it."""
        kind = self._kind(side)
        adjective = self._adjective(side)
        return Tree(adjective.value, "", (adjective, kind))

    def _adverb(self, side: int) -> Tree:
        word = self._adjective(side)
        return Tree(word.value, adverb(word.word))

    def _noun(self, side: int) -> Tree:
        word, value = self.words.words["nouns", side, ""].draw(self.chance)
        return Tree(value, word)

    def _verb(self, side: int) -> Tree:
        word, value = self.words.words["verbs", side, ""].draw(self.chance)
        return Tree(value, word)

    def _verbs(self, side: int) -> Tree:
        word = self._verb(side)
        return Tree(word.value, third(word.word))

    def _kind(self, side: int) -> Tree:
        kinds = REVIEWS["kinds"]
        topic = self._topic = self.chance.one_of(list(kinds))
        self._kind_said = self.chance.one_of([word for word in kinds[topic].split() if word != self._kind_said])
        return Tree(0, self._kind_said)

    def _thing(self, side: int) -> Tree:
        return Tree(0, self.lexicon.nouns[self.chance.one_of(("person", "place", "animal"))].draw(self.chance).form)

    def _name(self, side: int) -> Tree:
        entity = self.world.by_class[self.chance.one_of(("composition", "person"))].draw(self.chance)
        first, *more = entity.name if self.chance.happens(0.4) else entity.short
        tree = Tree(0, first)
        for word in more:
            tree = Tree(0, "", (tree, Tree(0, word)))
        return tree


@cache
def _parsed(template: str) -> Any:
    """A template as nested lists: the operator and the parts of each node; a word alone is a string."""
    tokens = template.replace("(", " ( ").replace(")", " ) ").split()

    def node(at: int) -> tuple[Any, int]:
        if tokens[at] != "(":
            return tokens[at], at + 1
        parts: list[Any] = [""]
        at += 1
        while tokens[at] != ")":
            if tokens[at].endswith(":"):
                parts[0], at = tokens[at][:-1], at + 1
                continue
            part, at = node(at)
            parts.append(part)
        return parts, at + 1

    return node(0)[0]


def _capitalised(tree: Tree) -> Tree:
    """The tree with a capital letter at its start."""
    if tree.word:
        return Tree(tree.value, tree.word[0].upper() + tree.word[1:])
    return Tree(tree.value, "", (_capitalised(tree.children[0]), *tree.children[1:]))
