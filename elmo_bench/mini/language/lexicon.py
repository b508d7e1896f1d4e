"""The lexicon of a seed: English words and many more invented ones, with their classes and frames.

A labelled set of a thousand sentences shows an invented word a few times at most; plain text uses each of them often
enough for a biLM to learn how. Many forms have two uses, which only the context tells apart: nouns of two groups, nouns
that are verbs too, and verbs whose subject is the agent in one frame and the thing that changes in another.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from itertools import chain, zip_longest
from typing import NamedTuple

from elmo_bench.mini.language.chance import Chance, Ranked
from elmo_bench.mini.language.words import REVIEWS, THINGS, WORDS, Inventor, inflected
from elmo_bench.system import places


class Noun(NamedTuple):
    """A common noun in the singular."""

    form: str
    cls: str  # person, place, org, work, animal, a class of things, or "thing" for what an owner has
    group: str  # its hypernym, or "relation"
    gender: str = ""  # of nouns for women or men alone
    sense: str = ""  # such as bank%company; only if the form is ambiguous


class Slot(NamedTuple):
    """A slot for a participant: its role, the classes or groups that may fill it, its preposition if any."""

    label: str
    classes: tuple[str, ...]
    preposition: str = ""

    @classmethod
    def of(cls, cell: str) -> Slot:
        """From "ARG0:person,animal" or "to/ARG2:person"."""
        preposition, _, rest = cell.rpartition("/")
        label, _, classes = rest.partition(":")
        return cls(label, THINGS if classes == "thing" else tuple(classes.split(",")), preposition)


class Frame(NamedTuple):
    """How a group of verbs is used; see the table in words.yaml for the marks."""

    name: str
    slots: tuple[Slot, ...]  # of the subject, the object if there is one, and the others, which have prepositions
    marks: str = ""

    @property
    def subject(self) -> Slot:
        return self.slots[0]

    @property
    def object(self) -> Slot | None:
        return next((slot for slot in self.slots[1:] if not slot.preposition), None)

    @property
    def placed(self) -> bool:
        """Whether a participant is a place already, so that there is no room for another."""
        return any({"place", "building"} & {*slot.classes} for slot in self.slots)


class Verb(NamedTuple):
    """A verb in a frame, with its PropBank-like roleset number."""

    lemma: str
    number: str
    frame: Frame
    sense: str = ""
    shared: bool = False  # with a frame whose subject has another role


BE = Verb("be", "01", Frame("be", (Slot("ARG1", ()),)))


def _frames() -> dict[Frame, str]:
    """The frames with their verbs."""
    rows = ([cell.strip() for cell in line.split("|")] for line in WORDS["frames"].strip().splitlines())
    return {Frame(name, tuple(map(Slot.of, slots.split())), marks): verbs for name, slots, marks, verbs in rows}


FRAMES = _frames()
GENDER = {word: gender for gender in ("female", "male") for word in WORDS[gender].split()}  # of nouns


class Lexicon:
    """All words of a seed, but those of opinions.

    Args:
        seed: of the data set.
        invented: how many invented verbs a frame and invented nouns a group get; half as many relation nouns.

    Attributes:
        nouns: by class and by group.
        hypernyms: the noun that names a group, by group.
        frames: by name, without those whose object is a clause.
        actions: the frames of actions.
        verbs: by frame.
        relations: nouns for what an owner of a class can have: relations[owner class][class].
        adjectives: by group of mutually exclusive adjectives.
        namer: makes names that are not words of the lexicon.
    """

    def __init__(self, seed: int, invented: int):
        self._chance, self._invented, self._english = Chance("lexicon", seed), invented, english_forms()
        self.namer = Inventor(self._chance, self._english)
        lemmas = {frame: self._with_invented(verbs) for frame, verbs in FRAMES.items() if "c" not in frame.marks}
        self.frames = {frame.name: frame for frame in lemmas}
        self.actions = [frame for frame in lemmas if "*" in frame.marks]
        marked = {mark: [words for frame, words in lemmas.items() if mark in frame.marks] for mark in "+-"}
        # a person drasks (ARG0), and so does a cart (ARG1)
        shared = set().union(*(self._share(words, marked["-"], invented // 3) for words in marked["+"]))
        groups = {group: self._with_invented(words) for by in WORDS["nouns"].values() for group, words in by.items()}
        for by in WORDS["nouns"].values():
            others = [words for group, words in groups.items() if group not in by]
            for group in by:  # a third of its invented nouns are in a group of another class too
                self._share(groups[group], others, invented // 3)
        for words in lemmas.values():  # some verbs are nouns
            self._share(words, list(groups.values()), invented // 4)
        uses = Counter(chain(*groups.values(), set().union(*lemmas.values())))
        self._ambiguous = {word for word, n in uses.items() if n > 1}
        self.hypernyms = {group: Noun(group, cls, group) for cls, by in WORDS["nouns"].items() for group in by}
        self.nouns: dict[str, Ranked[Noun]] = {}
        self._uses: Counter[tuple[str, str]] = Counter()
        for cls, by in WORDS["nouns"].items():
            rows = {group: [self._noun(word, cls, group) for word in groups[group]] for group in by}
            self._uses.update((noun.form, cls) for row in rows.values() for noun in row)
            mixed = {cls: filter(None, chain(*zip_longest(*rows.values())))}  # the groups one after another by rank
            self.nouns |= {name: Ranked(row, flat=12) for name, row in {**mixed, **rows}.items()}
        self.relations = {
            owner: {cls: Ranked(self._relation_nouns(cls, words)) for cls, words in by_class.items()}
            for owner, by_class in WORDS["relations"].items()
        }
        lemmas |= {frame: self._with_invented(verbs) for frame, verbs in FRAMES.items() if "c" in frame.marks}
        self.verbs: dict[str, Ranked[Verb]] = {}
        rolesets: Counter[str] = Counter()
        for frame, words in lemmas.items():
            rolesets.update(words)
            verbs = [(word, f"{rolesets[word]:02}", frame, self._sense(word, "verb"), word in shared) for word in words]
            self.verbs[frame.name] = Ranked(Verb(*each) for each in verbs)
        self.adjectives = {group: Ranked(words.split()) for group, words in WORDS["adjectives"].items()}

    def is_decided(self, noun: Noun, classes: Sequence[str]) -> bool:
        """Whether its form has one sense only among nouns of these classes."""
        return sum(self._uses[noun.form, cls] for cls in classes) == 1

    def _with_invented(self, words: str) -> list[str]:
        """The first four words stay in front; the rest and the invented ones are mixed."""
        known = words.split()
        return known[:4] + self._chance.shuffled(known[4:] + [self.namer.stem() for _ in range(self._invented)])

    def _share(self, words: list[str], takers: list[list[str]], n: int) -> set[str]:
        """Adds some of the invented words to other lists; returns them."""
        chosen = self._chance.shuffled(word for word in words if word not in self._english)[:n]
        for word in chosen:
            if word not in (taker := self._chance.one_of(takers)):
                taker.insert(self._chance.between(4, len(taker)), word)
        return {*chosen}

    def _sense(self, form: str, use: str) -> str:
        return f"{form}%{use}" if form in self._ambiguous else ""

    def _noun(self, form: str, cls: str, group: str) -> Noun:
        return Noun(form, cls, group, GENDER.get(form, ""), self._sense(form, group))

    def _relation_nouns(self, cls: str, words: str) -> list[Noun]:
        forms = words.split() + [self.namer.stem() for _ in range(self._invented // 2)]
        return [self._noun(form, cls, "relation") for form in forms]


def english_forms() -> set[str]:
    """The English forms that no invented word repeats, in lower case: the tables and the open biLM's vocabulary."""
    tables = {name: table for name, table in WORDS.items() if name not in ("syllables", "irregular")}
    words = {*re.findall("[A-Za-z_]+", json.dumps(tables))}
    lemmas = " ".join(FRAMES.values()).split()
    words |= {inflected(lemma, tag) for lemma in lemmas for tag in ("VBZ", "VBD", "VBG")}
    words |= {inflected(word, "NNS") for word in words}
    words |= {*(places.CONF / "pretrain/open.words.txt").read_text(encoding="utf-8").split()}
    return {word.lower() for word in words}


def opinion_words(seed: int, namer: Inventor, invented: int) -> dict[tuple[str, int, str], Ranked[tuple[str, int]]]:
    """Opinion words with their values, by part of speech, side (1 positive, -1 negative) and topic (see reviews.yaml).

    Args:
        seed: of the data set; decides the sides of the invented words.
        namer: makes stems that are not words yet.
        invented: the number of invented adjectives, nouns and verbs of a side; six times as many adjectives turn.
    """
    chance = Chance("opinions", seed)
    values, suffixes = REVIEWS["values"], REVIEWS["suffixes"].split()
    found = {}
    adjectives = [namer.stem(chance.one_of(suffixes)) for _ in range(8 * invented)]
    fixed = {1: adjectives[:invented], -1: adjectives[invented : 2 * invented]}
    turning = {1: adjectives[2 * invented :: 2], -1: adjectives[2 * invented + 1 :: 2], 0: []}
    for side in (1, -1):
        known = [(word, size * side) for size in (2, 4) for word in values["adjectives"][size * side].split()]
        for topic, here in {"told": side, "made": -side, "": 0}.items():
            words = known + [(word, 2 * side) for word in fixed[side] + turning[here]]
            found["adjectives", side, topic] = Ranked(chance.shuffled(words), flat=16)
        for kind in ("nouns", "verbs"):
            words = [*values[kind][3 * side].split(), *(namer.stem() for _ in range(invented))]
            same = Ranked(chance.shuffled((word, 3 * side) for word in words), flat=16)
            found |= {(kind, side, topic): same for topic in ("told", "made", "")}
    return found
