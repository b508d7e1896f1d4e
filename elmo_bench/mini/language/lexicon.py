"""The language of a seed: reproducible draws, English inflection, and the lexicon with its invented words.

Of the library only `random.Random.random()` is used, whose sequence is guaranteed; everything else is our own integer
arithmetic (`shuffle` and `choices` may change, and the rounding of `sum` or `**` may differ between platforms).

Invented words are regular, so that a character-based model can recognise a past tense or a plural of an unseen stem.
Names of people, places, organisations and works use the same syllables, so the form of a name says nothing about its
class. A labelled set of a thousand sentences shows an invented word a few times at most; plain text uses each of them
often enough for a biLM to learn how. Many forms have two uses, which only the context tells apart.
"""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import accumulate, chain, product, zip_longest
from pathlib import Path
from random import Random
from typing import Any, Generic, NamedTuple, TypeVar

from omegaconf import OmegaConf

from elmo_bench.system import places
from elmo_bench.system.storage import yaml_text

T = TypeVar("T")


class Chance:
    """A stream of draws named by its key, words and numbers; or another chance, to draw from the same stream."""

    def __init__(self, *key: object):
        if isinstance(key[0], Chance):
            self.random = key[0].random
        else:
            digest = hashlib.sha256("/".join(map(str, key)).encode()).digest()
            self.random = Random(int.from_bytes(digest[:8], "big")).random

    def below(self, n: int) -> int:
        """A number from 0 to n - 1."""
        return int(self.random() * n)

    def happens(self, probability: float) -> bool:
        return self.random() < probability

    def one_of(self, items: Sequence[T]) -> T:
        """One of the items, or of the words of a string."""
        words: Any = items.split() if isinstance(items, str) else items
        return words[self.below(len(words))]

    def weighted(self, weights: dict[T, int]) -> T:
        """A key, drawn with a probability proportional to its weight."""
        upto = list(accumulate(weights.values()))
        return list(weights)[bisect_right(upto, self.below(upto[-1]))]

    def shuffled(self, items: Iterable[T]) -> list[T]:
        """All items in random order (Fisher-Yates)."""
        result = list(items)
        for i in range(len(result) - 1, 0, -1):
            j = self.below(i + 1)
            result[i], result[j] = result[j], result[i]
        return result


class Ranked(Generic[T]):
    """A list whose first items are drawn most often: weights 1 / (rank + flat), close to Zipf's law."""

    def __init__(self, items: Iterable[T], flat: int = 8):
        self.items = tuple(items)
        self._upto = list(accumulate(10**9 // (rank + flat) for rank in range(1, len(self.items) + 1)))

    def draw(self, chance: Chance) -> T:
        return self.items[bisect_right(self._upto, chance.below(self._upto[-1]))]


def table(name: str) -> Any:
    """The tables of a file in this folder. A string is a list of words: use `str.split`."""
    return OmegaConf.to_container(yaml_text.read(Path(__file__).with_name(f"{name}.yaml")))


WORDS, GRAMMAR, REVIEWS = map(table, ("words", "grammar", "reviews"))
PREPOSITIONS = {noun: word for word, nouns in WORDS["prepositions"].items() for noun in nouns.split()}
TAGS = {word: tag for tag, words in WORDS["tags"].items() for word in words.split()}
THINGS = tuple(WORDS["things"].split())
TANGIBLE = ("person", "animal", *THINGS)  # classes of what a scene shows
SYLLABLES = {kind: parts.split() for kind, parts in WORDS["syllables"].items()}
AVOIDED = re.compile("|".join(SYLLABLES["avoided"]))


@cache
def inflected(word: str, tag: str) -> str:
    """The form of a lemma that has this tag: mend, VBD -> mended; RB is an adjective's adverb, JJ the lemma itself."""
    if tag == "VBN" and word not in WORDS["irregular"]["VBN"]:
        tag = "VBD"
    if word in WORDS["irregular"].get(tag, ()):
        return WORDS["irregular"][tag][word]
    for pattern, ending in WORDS["endings"].get(tag, {}).items():
        if re.search(pattern, word):
            return re.sub(pattern, ending, word)
    return word


def forms(word: str) -> set[str]:
    """A lemma with all that it can become."""
    return {word, *(inflected(word, tag) for tag in WORDS["endings"])}


def modifiers(cls: str) -> list[str]:
    """The groups of adjectives that nouns of a class take."""
    return WORDS["modifiers"].get(cls, WORDS["modifiers"]["thing"]).split()


def capitalised(text: str) -> str:
    """With a capital as its first letter, wherever that stands: (2 the) -> (2 The)."""
    return re.sub("[A-Za-z]", lambda letter: letter[0].upper(), text, count=1)


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
    """All words of a seed but names and those of opinions, which it invents too. A frame gets so many invented verbs, a
    group so many invented nouns, and relations half as many.
    """

    def __init__(self, seed: int, invented: int):
        super().__init__("lexicon", seed)
        self._invented, self.made = invented, list[str]()  # words in lower case
        self._english = english_forms()
        self._taken, half = set(self._english), invented // 2
        lemmas = {frame: self._with_invented(verbs) for frame, verbs in FRAMES.items() if "c" not in frame.marks}
        self.frames = {frame.name: frame for frame in lemmas}  # without those whose object is a clause
        self.actions = [frame for frame in lemmas if "*" in frame.marks]
        agents, changed = ([words for frame, words in lemmas.items() if mark in frame.marks] for mark in "+-")
        # Some verbs have the agent as their subject or what changes: a person drasks (ARG0), and so does a cart (ARG1).
        shared = set().union(*(self._share(words, changed, half) for words in agents))
        groups = {group: self._with_invented(WORDS["nouns"][cls][group]) for group, cls in CLASS.items()}
        for group, words in groups.items():  # half of its invented nouns are in a group of another class too
            alike = [other for other in CLASS if (CLASS[other] in TANGIBLE) == (CLASS[group] in TANGIBLE)]
            self._share(words, [groups[other] for other in alike if CLASS[other] != CLASS[group]], half)
        for words in lemmas.values():  # some verbs are nouns
            self._share(words, list(groups.values()), invented // 4)
        self._uses = Counter(chain(*groups.values(), set().union(*lemmas.values())))
        self.hypernyms = {group: Noun(group, cls, group) for group, cls in CLASS.items()}
        rows = {group: [self._noun(word, CLASS[group], group) for word in words] for group, words in groups.items()}
        self._senses = Counter((noun.form, noun.cls) for noun in chain(*rows.values()))
        self.nouns = {group: Ranked(row, flat=12) for group, row in rows.items()}  # and by class
        for cls, names in WORDS["nouns"].items():  # the groups of a class one after another by rank
            mixed = chain(*zip_longest(*(rows[group] for group in names)))
            self.nouns[cls] = Ranked(filter(None, mixed), flat=12)
        self.relations = {  # what an owner of a class can have, by both classes
            (owner, cls): Ranked(self._noun(word, cls, "relation") for word in words.split() + self._stems(half))
            for owner, by_class in WORDS["relations"].items()
            for cls, words in by_class.items()
        }
        lemmas |= {frame: self._with_invented(verbs) for frame, verbs in FRAMES.items() if "c" in frame.marks}
        self.verbs: dict[str, Ranked[Verb]] = {}  # by frame
        rolesets: Counter[str] = Counter()
        for frame, words in lemmas.items():
            rolesets.update(words)
            verbs = [(word, f"{rolesets[word]:02}", frame, self._sense(word, "verb"), word in shared) for word in words]
            self.verbs[frame.name] = Ranked(Verb(*each) for each in verbs)
        self.adjectives = {group: Ranked(words.split()) for group, words in WORDS["adjectives"].items()}

    def stem(self, suffix: str = "") -> str:
        """A lower-case stem of one or two syllables, with the suffix if any: drask, vemp, stallen, gundous."""
        ending = "stem_ends" if self.happens(0.6) else "middles e liquids"
        return self._new(f"onsets vowels {ending}", suffix)

    def name(self) -> str:
        """A capitalised name of two or three syllables: Tarvel, Skanedo."""
        return self._new("onsets vowels" + " middles vowels" * (1 if self.happens(0.7) else 2)).capitalize()

    def _new(self, kinds: str, suffix: str | None = None) -> str:
        """A word of parts of these kinds; a name, without suffix, may have an ending. Neither it nor another form of it
        is English, offensive or known.
        """
        while True:
            stem = "".join(self.one_of(SYLLABLES[kind]) if kind in SYLLABLES else kind for kind in kinds.split())
            if suffix is None and not self.happens(0.3):
                stem += self.one_of(SYLLABLES["name_ends"])
            made = stem + (suffix or "")
            found = {stem, *forms(made)}
            if len(stem) > 3 and not found & self._taken and not AVOIDED.search(" ".join(found)):
                self._taken |= {stem, made}
                self.made.append(made)
                return made

    def is_decided(self, noun: Noun, classes: Sequence[str]) -> bool:
        """Whether its form has one sense only among nouns of these classes."""
        return sum(self._senses[noun.form, cls] for cls in classes) == 1

    def _with_invented(self, words: str) -> list[str]:
        """The first four words stay in front; the rest and the invented ones are mixed."""
        known = words.split()
        return known[:4] + self.shuffled(known[4:] + self._stems(self._invented))

    def _stems(self, n: int) -> list[str]:
        return [self.stem() for _ in range(n)]

    def _share(self, words: list[str], takers: list[list[str]], n: int) -> set[str]:
        """Adds some of the invented words to other lists; returns them."""
        chosen = self.shuffled(word for word in words if word not in self._english)[:n]
        for word in chosen:
            if word not in (taker := self.one_of(takers)):
                taker.insert(self.one_of(range(4, min(len(taker), 12) + 1)), word)
        return {*chosen}

    def _sense(self, form: str, use: str) -> str:
        return f"{form}%{use}" if self._uses[form] > 1 else ""

    def _noun(self, form: str, cls: str, group: str) -> Noun:
        return Noun(form, cls, group, GENDER.get(form, ""), self._sense(form, group))


def english_forms() -> set[str]:
    """The English forms that no invented word repeats, in lower case: the tables and the open biLM's vocabulary."""
    tables = {name: table for name, table in WORDS.items() if name not in ("syllables", "irregular")}
    words = {*re.findall("[A-Za-z_]+", str(tables))}
    words |= {inflected(verb, tag) for verb in " ".join(FRAMES.values()).split() for tag in ("VBZ", "VBD", "VBG")}
    words |= {inflected(word, "NNS") for word in words}
    words |= {*(places.CONF / "pretrain/open.words.txt").read_text(encoding="utf-8").split()}
    return {word.lower() for word in words}


def opinion_words(lexicon: Lexicon, invented: int) -> dict[tuple[str, int, str], list[tuple[int, str]]]:
    """Opinion words with values, by list, side (1, 0, -1) and topic (told, made, empty: the film)."""
    found: dict[tuple[str, int, str], list[tuple[int, str]]] = defaultdict(list)
    for (kind, rows), topic in product(REVIEWS["values"].items(), ("told", "made", "")):
        for value, words in rows.items():
            listed = words if isinstance(words, str) else words[topic]
            found[kind, (value > 0) - (value < 0), topic] += [(value, word) for word in listed.split()]
    turning, fixed = ([pair for pair in product((1, 0, -1), repeat=2) if len({*pair}) == n] for n in (2, 1))
    for i, (told, made) in enumerate([*turning * 2 * invented, *fixed * 2]):
        word, size = lexicon.stem(lexicon.one_of(REVIEWS["suffixes"])), 4 if i // 6 % 2 else 2
        for topic, side in (("told", told), ("made", made), ("", told))[: 2 + (told == made)]:
            found["invented", side, topic].append((side * size, word))
    return found
