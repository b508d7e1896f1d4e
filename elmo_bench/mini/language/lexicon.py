"""The lexicon of a seed: English words and many more invented ones, with their classes and frames.

A labelled set of a thousand sentences shows an invented word a few times at most; plain text uses each of them often
enough for a biLM to learn how. Many forms have two uses, which only the context tells apart: nouns of two groups, nouns
that are verbs too, and verbs whose subject is the agent in one frame and the thing that changes in another.
"""

from __future__ import annotations

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


FRAMES: dict[Frame, str] = {}  # with their verbs
for row in WORDS["frames"].strip().splitlines():
    name, cells, marks, verbs = (cell.strip() for cell in row.split("|"))
    slots = [
        Slot(label, THINGS if classes == "thing" else tuple(classes.split(",")), preposition)
        for preposition, label, classes in re.findall(r"(?:(\w+)/)?(\w+):(\S+)", cells)
    ]
    FRAMES[Frame(name, tuple(slots), marks)] = verbs
GENDER = {word: gender for gender in ("female", "male") for word in WORDS[gender].split()}  # of nouns
CLASS = {group: cls for cls, groups in WORDS["nouns"].items() for group in groups}


class Lexicon(Chance):
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
        super().__init__("lexicon", seed)
        self._invented, self._english = invented, english_forms()
        self.namer = Inventor(self, self._english)
        lemmas = {frame: self._with_invented(verbs) for frame, verbs in FRAMES.items() if "c" not in frame.marks}
        self.frames = {frame.name: frame for frame in lemmas}
        self.actions = [frame for frame in lemmas if "*" in frame.marks]
        marked = {mark: [words for frame, words in lemmas.items() if mark in frame.marks] for mark in "+-"}
        # a person drasks (ARG0), and so does a cart (ARG1)
        shared = set().union(*(self._share(words, marked["-"], invented // 3) for words in marked["+"]))
        groups = {group: self._with_invented(WORDS["nouns"][cls][group]) for group, cls in CLASS.items()}
        for group, words in groups.items():  # a third of its invented nouns are in a group of another class too
            self._share(words, [groups[other] for other in CLASS if CLASS[other] != CLASS[group]], invented // 3)
        for words in lemmas.values():  # some verbs are nouns
            self._share(words, list(groups.values()), invented // 4)
        uses = Counter(chain(*groups.values(), set().union(*lemmas.values())))
        self._ambiguous = {word for word, n in uses.items() if n > 1}
        self.hypernyms = {group: Noun(group, cls, group) for group, cls in CLASS.items()}
        rows = {group: [self._noun(word, CLASS[group], group) for word in words] for group, words in groups.items()}
        self._uses = Counter((noun.form, noun.cls) for noun in chain(*rows.values()))
        for cls, names in WORDS["nouns"].items():  # the groups of a class one after another by rank
            mixed = chain(*zip_longest(*(rows[group] for group in names)))
            rows = {cls: [noun for noun in mixed if noun], **rows}
        self.nouns = {name: Ranked(row, flat=12) for name, row in rows.items()}
        self.relations = {
            owner: {
                cls: Ranked(self._noun(form, cls, "relation") for form in words.split() + self._stems(invented // 2))
                for cls, words in by_class.items()
            }
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
        return known[:4] + self.shuffled(known[4:] + self._stems(self._invented))

    def _stems(self, n: int) -> list[str]:
        return [self.namer.stem() for _ in range(n)]

    def _share(self, words: list[str], takers: list[list[str]], n: int) -> set[str]:
        """Adds some of the invented words to other lists; returns them."""
        chosen = self.shuffled(word for word in words if word not in self._english)[:n]
        for word in chosen:
            if word not in (taker := self.one_of(takers)):
                taker.insert(self.one_of(range(4, len(taker) + 1)), word)
        return {*chosen}

    def _sense(self, form: str, use: str) -> str:
        return f"{form}%{use}" if form in self._ambiguous else ""

    def _noun(self, form: str, cls: str, group: str) -> Noun:
        return Noun(form, cls, group, GENDER.get(form, ""), self._sense(form, group))


def english_forms() -> set[str]:
    """The English forms that no invented word repeats, in lower case: the tables and the open biLM's vocabulary."""
    tables = {name: table for name, table in WORDS.items() if name not in ("syllables", "irregular")}
    words = {*re.findall("[A-Za-z_]+", str(tables))}
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
    chance, values = Chance("opinions", seed), REVIEWS["values"]
    adjectives = [namer.stem(chance.one_of(REVIEWS["suffixes"])) for _ in range(8 * invented)]
    fixed = {1: adjectives[:invented], -1: adjectives[invented : 2 * invented]}
    turning = {1: adjectives[2 * invented :: 2], -1: adjectives[2 * invented + 1 :: 2], 0: []}
    found = {}
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
