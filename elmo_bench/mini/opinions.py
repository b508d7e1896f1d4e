"""Reviews with a sentiment at every node, for SST: words have values, phrases compose them.

Values run from -4 to 4 and become the labels 0 to 4. Negation reverses a value and weakens it, intensifiers and
weakeners scale it; of two coordinated parts both count, with "but" mostly the second. Half of the opinion words are
invented; plain text uses them next to the others often enough to learn their side.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from elmo_bench.mini.language.chance import Chance
from elmo_bench.mini.language.lexicon import Lexicon
from elmo_bench.mini.language.morphology import adverb, article, third
from elmo_bench.mini.language.opinion_words import OpinionWords
from elmo_bench.mini.language.world import World

STRONGER = "very truly really".split()
STRONGEST = "extremely utterly".split()
WEAKER = "slightly somewhat rather".split()
TOPICS = "film plot acting script cast ending music dialogue camera director story humour pace".split()
PHRASES = {
    "bare": 6, "stronger": 4, "strongest": 2, "weaker": 3, "not": 4, "never": 1, "and": 4, "far": 1, "at all": 1,
}  # fmt: skip
PARTS = ("first", "second", "long", "final", "short")


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


def clipped(value: int) -> int:
    """The value limited to -4 to 4."""
    return max(-4, min(4, value))


def negated(value: int) -> int:
    """The value after negation: not good is bad, not superb a little bad, not awful a little good."""
    weak = 1 if abs(value) >= 3 else 2
    return 0 if value == 0 else -weak if value > 0 else weak


def scaled(value: int, by: int) -> int:
    """The value moved away from zero (by > 0) or towards it, but never across it."""
    size = max(1, min(4, abs(value) + by)) if value else 0
    return size if value > 0 else -size


def joined(first: int, second: int) -> int:
    """The value of two coordinated parts: two thirds of the sum, rounded towards zero."""
    return clipped(int((first + second) * 2 / 3))


def contrasted(first: int, second: int) -> int:
    """The value of two contrasted parts: a mean in which the second counts three times."""
    return clipped(int((first + 3 * second) / 3))


class Opinions:
    """Draws reviews.

    Args:
        chance: the stream to draw from.
        lexicon: of a seed.
        world: of the same seed.
        words: of the same seed.
    """

    def __init__(self, chance: Chance, lexicon: Lexicon, world: World, words: OpinionWords):
        self.chance, self.lexicon, self.world = chance, lexicon, world
        self.adjectives, self.nouns, self.verbs = words.adjectives, words.nouns, words.verbs

    def review(self) -> Tree:
        """A sentence with its full stop."""
        chance = self.chance
        side = chance.one_of((1, -1))
        kind = chance.weighted({"clause": 10, "and": 3, "but": 4, "although": 3, "despite": 2})
        first = self._clause(side)
        if kind == "clause":
            whole = first
        elif kind == "and":
            second = self._clause(side if chance.happens(0.8) else -side)
            whole = self._pair(first, "and", second, joined(first.value, second.value))
        elif kind == "but":
            second = self._clause(-side)
            whole = self._pair(first, "but", second, contrasted(first.value, second.value))
        elif kind == "although":
            second = self._clause(-side)
            opening = _join(_join(leaf("although"), first, first.value), leaf(","), first.value)
            whole = _join(opening, second, contrasted(first.value, second.value))
        else:
            second = self._clause(-side)
            thing = _join(leaf("its"), self._quality(side))
            opening = _join(_join(leaf("despite"), thing), leaf(","), thing.value)
            whole = _join(opening, second, contrasted(thing.value, second.value))
        return _capitalised(_join(whole, leaf("."), whole.value))

    def _pair(self, first: Tree, word: str, second: Tree, value: int) -> Tree:
        linked = _join(leaf(","), _join(leaf(word), second, second.value), second.value)
        return _join(first, linked, value)

    # Clauses with a value on the given side (1 positive, -1 negative), or neutral ones.

    def _clause(self, side: int) -> Tree:
        chance = self.chance
        kind = chance.weighted({"is": 10, "verb": 5, "noun": 4, "has": 4, "does": 3, "fails": 3, "plain": 3})
        topic = self._topic()
        if kind == "is":
            rest = _join(leaf(chance.one_of(("is", "was", "seems"))), self._adjective_phrase(side))
        elif kind == "verb":
            rest = _join(self._verb(side), self._audience())
        elif kind == "noun":
            noun = self._quality(side) if chance.happens(0.5) else self._noun(side)
            some = leaf(article(next(noun.words())))
            rest = _join(leaf("is"), _join(some, noun))
        elif kind == "has":
            rest = _join(leaf("has"), _join(leaf("some"), self._quality(side, leaf(self._kind()))))
        elif kind == "does":
            doing = leaf(third(self.lexicon.verbs["premiere"].draw(chance).lemma))
            rest = _join(doing, self._adverb(side))
        elif kind == "fails":
            good = self._verb(-side, base=True)
            doing = _join(good, self._audience())
            rest = _join(_join(leaf("fails"), leaf("to")), doing, negated(doing.value))
            if chance.happens(0.4):
                rest = _join(_join(leaf("does"), leaf("not")), doing, negated(doing.value))
        else:
            rest = _join(leaf(chance.one_of(("follows", "shows", "recalls"))), self._plain_thing())
        return _join(topic, rest)

    def _topic(self) -> Tree:
        """the second half of the plot, the ending, Tarvel, Tarvel 's novel."""
        chance = self.chance
        kind = chance.weighted({"the": 8, "part": 3, "named": 5, "of": 4, "it": 2})
        if kind == "it":
            return leaf(chance.one_of(("it", "this")))
        if kind == "the":
            return _join(leaf("the"), leaf(self._kind()))
        if kind == "part":
            return _join(leaf("the"), _join(leaf(chance.one_of(PARTS)), leaf(self._kind())))
        if kind == "named":
            return self._name(chance.one_of(("work", "person")))
        return _join(_join(self._name(chance.one_of(("work", "person"))), leaf("'s")), leaf(self._kind()))

    def _name(self, cls: str) -> Tree:
        entity = self.world.by_class[cls].draw(self.chance)
        words = entity.name if self.chance.happens(0.4) else entity.short
        tree = leaf(words[0])
        for word in words[1:]:
            tree = _join(tree, leaf(word))
        return tree

    def _kind(self) -> str:
        if self.chance.happens(0.6):
            return self.chance.one_of(TOPICS)
        return self.lexicon.nouns["composition"].draw(self.chance).form

    def _plain_thing(self) -> Tree:
        noun = self.lexicon.nouns[self.chance.one_of(("person", "place", "animal"))].draw(self.chance).form
        return _join(leaf(article(noun)), leaf(noun))

    def _audience(self) -> Tree:
        who = self.chance.one_of(("us", "me", "everyone", "its audience", "the viewer", "the critics"))
        first, *more = who.split()
        return _join(leaf(first), leaf(more[0])) if more else leaf(first)

    # Opinion words and what changes them.

    def _adjective(self, side: int) -> Tree:
        return self._word(self.adjectives[side].draw(self.chance))

    def _noun(self, side: int) -> Tree:
        return self._word(self.nouns[side].draw(self.chance))

    def _verb(self, side: int, base: bool = False) -> Tree:
        word, value = self.verbs[side].draw(self.chance)
        return Tree(value, word if base else third(word))

    def _adverb(self, side: int) -> Tree:
        word, value = self.adjectives[side].draw(self.chance)
        return Tree(value, adverb(word))

    def _word(self, word: tuple[str, int]) -> Tree:
        return Tree(word[1], word[0])

    def _quality(self, side: int, noun: Tree | None = None) -> Tree:
        """superb acting, a clumsy mess."""
        described = self._adjective(side)
        noun = noun or leaf(self._kind())
        return _join(described, noun)

    def _adjective_phrase(self, side: int) -> Tree:
        chance = self.chance
        kind = chance.weighted(PHRASES)
        if kind == "bare":
            return self._adjective(side)
        if kind in ("stronger", "strongest", "weaker"):
            words, by = {"stronger": (STRONGER, 1), "strongest": (STRONGEST, 2), "weaker": (WEAKER, -2)}[kind]
            inner = self._adjective(side)
            return _join(leaf(chance.one_of(words)), inner, scaled(inner.value, by))
        if kind == "and":
            first, second = self._adjective(side), self._adjective(side)
            return _join(first, _join(leaf("and"), second), joined(first.value, second.value))
        inner = self._adjective(-side)
        if chance.happens(0.3):
            inner = _join(leaf(chance.one_of(STRONGER)), inner, scaled(inner.value, 1))
        if kind == "far":
            return _join(_join(leaf("far"), leaf("from")), inner, negated(inner.value))
        if kind == "at all":
            return _join(_join(leaf("not"), _join(leaf("at"), leaf("all"))), inner, scaled(negated(inner.value), 2))
        return _join(leaf(kind), inner, negated(inner.value))


def leaf(word: str) -> Tree:
    """A word without an opinion."""
    return Tree(0, word)


def _join(left: Tree, right: Tree, value: int | None = None) -> Tree:
    """Joins two trees; the value is by default the sum of theirs."""
    return Tree(clipped(left.value + right.value) if value is None else value, "", (left, right))


def _capitalised(tree: Tree) -> Tree:
    if tree.word:
        return Tree(tree.value, tree.word[0].upper() + tree.word[1:])
    return Tree(tree.value, "", (_capitalised(tree.children[0]), *tree.children[1:]))
