"""The lexicon of a seed: English words and many more invented ones, with their classes and frames.

A labelled set of a thousand sentences leaves most invented words unseen; plain text uses each of them often enough for
a biLM to learn how. Many forms have two uses, which only the context tells apart: nouns of two groups, nouns that are
verbs too, and verbs whose subject is the agent in one frame and the thing that changes in another.
"""

from __future__ import annotations

from typing import NamedTuple

from elmo_bench.mini.language.chance import Chance, Ranked
from elmo_bench.mini.language.english import THINGS, WORDS
from elmo_bench.mini.language.morphology import Inventor, gerund, past, plural, third
from elmo_bench.system import places


class Noun(NamedTuple):
    """A common noun; its group is its hypernym, its sense (bank%company) is given only if the form is ambiguous."""

    form: str
    cls: str
    group: str
    gender: str = ""
    sense: str = ""

    @property
    def plural(self) -> str:
        return plural(self.form)


class Slot(NamedTuple):
    """A slot for a participant: its role, the classes or groups that may fill it, its preposition if any."""

    label: str
    classes: tuple[str, ...]
    preposition: str = ""


class Frame(NamedTuple):
    """How a group of verbs is used; see the table in words.yaml for the marks."""

    name: str
    subject: Slot
    object: Slot | None
    obliques: tuple[Slot, ...]
    marks: str

    @property
    def action(self) -> bool:
        """Whether the verbs are hyponyms of the first one."""
        return "*" in self.marks

    @property
    def dative(self) -> bool:
        return "~" in self.marks

    @property
    def slots(self) -> list[Slot]:
        return [slot for slot in (self.subject, self.object, *self.obliques) if slot]

    @property
    def placed(self) -> bool:
        """Whether a participant is a place already, so that there is no room for another."""
        return any({"place", "building"} & set(slot.classes) for slot in self.slots)


class Verb(NamedTuple):
    """A verb in a frame, with its PropBank-like roleset number."""

    lemma: str
    number: str
    frame: Frame
    sense: str = ""
    shared: bool = False  # with a frame whose subject has another role


class Lexicon:
    """All words of a seed.

    Args:
        seed: of the data set.
        invented: how many invented verbs a frame and invented nouns a group get; half as many relation nouns.

    Attributes:
        nouns: by class and by group.
        hypernyms: the noun that names a group, by group.
        frames: by name.
        verbs: by frame.
        relations: nouns for what an owner of a class can have: relations[owner class][class].
        adjectives: by group of mutually exclusive adjectives.
        namer: makes names that are not words of the lexicon.
    """

    def __init__(self, seed: int, invented: int):
        self._chance = Chance("lexicon", seed)
        self._invented = invented
        self._english = english_forms()
        self.namer = Inventor(self._chance, set(self._english))
        rows = [[cell.strip() for cell in line.split("|")] for line in WORDS["frames"].strip().splitlines()]
        self.frames = {row[0]: _frame(row) for row in rows}
        lemmas = {row[0]: self._with_invented(row[-1]) for row in rows}
        self._share_verbs(lemmas)
        groups = {group: self._with_invented(words) for by in WORDS["nouns"].values() for group, words in by.items()}
        self._share_nouns(groups, lemmas)
        uses = [word for words in [*groups.values(), set().union(*lemmas.values())] for word in words]
        ambiguous = {word for word in uses if uses.count(word) > 1}
        self.verbs = self._verbs(lemmas, ambiguous)
        self.nouns = self._nouns(groups, ambiguous)
        self.hypernyms = {group: Noun(group, cls, group) for cls, by in WORDS["nouns"].items() for group in by}
        self.relations = {
            owner: {cls: self._relation_nouns(cls, words) for cls, words in by_class.items()}
            for owner, by_class in WORDS["relations"].items()
        }
        self.said, self.wanted = (
            Ranked(Verb(lemma, "01", self.frames["rest"]) for lemma in self._with_invented(WORDS[kind]))
            for kind in ("said", "wanted")
        )
        self.adjectives = {group: Ranked(words.split()) for group, words in WORDS["adjectives"].items()}

    def _with_invented(self, words: str) -> list[str]:
        """The first four words stay in front; the rest and the invented ones are mixed."""
        known = words.split()
        return known[:4] + self._chance.shuffled(known[4:] + [self.namer.stem() for _ in range(self._invented)])

    def _share_verbs(self, lemmas: dict[str, list[str]]) -> None:
        """A person drasks (ARG0), and so does a cart (ARG1)."""
        takers = [frame.name for frame in self.frames.values() if "-" in frame.marks]
        for frame in self.frames.values():
            if "+" in frame.marks:
                for lemma in self._chance.some(self._made(lemmas[frame.name]), self._invented // 3):
                    self._insert(lemmas[self._chance.one_of(takers)], lemma)

    def _share_nouns(self, groups: dict[str, list[str]], lemmas: dict[str, list[str]]) -> None:
        """A third of a group's invented nouns are in a group of another class too; some verbs are nouns."""
        classes = {group: cls for cls, by in WORDS["nouns"].items() for group in by}
        for group, words in list(groups.items()):
            others = [other for other in groups if classes[other] != classes[group]]
            for word in self._chance.some(self._made(words), self._invented // 3):
                other = groups[self._chance.one_of(others)]
                if word not in other:
                    self._insert(other, word)
        for words in lemmas.values():
            for verb in self._chance.some(self._made(words), self._invented // 4):
                other = groups[self._chance.one_of(list(groups))]
                if verb not in other:
                    self._insert(other, verb)

    def _made(self, words: list[str]) -> list[str]:
        return [word for word in words if word not in self._english]

    def _insert(self, words: list[str], word: str) -> None:
        words.insert(self._chance.between(4, len(words)), word)

    def _relation_nouns(self, cls: str, words: str) -> Ranked[Noun]:
        forms = words.split() + [self.namer.stem() for _ in range(self._invented // 2)]
        return Ranked(Noun(form, cls, "relation", _gender(form)) for form in forms)

    def _verbs(self, lemmas: dict[str, list[str]], ambiguous: set[str]) -> dict[str, Ranked[Verb]]:
        uses: dict[str, int] = {}
        shared = {word for name, words in lemmas.items() if "-" in self.frames[name].marks for word in words}
        verbs = {}
        for name, words in lemmas.items():
            row = []
            for lemma in words:
                uses[lemma] = uses.get(lemma, 0) + 1
                twice = lemma in shared and sum(lemma in others for others in lemmas.values()) > 1
                sense = f"{lemma}%verb" if lemma in ambiguous else ""
                row.append(Verb(lemma, f"{uses[lemma]:02}", self.frames[name], sense, twice))
            verbs[name] = Ranked(row)
        return verbs

    def _nouns(self, groups: dict[str, list[str]], ambiguous: set[str]) -> dict[str, Ranked[Noun]]:
        """By group, and by class with its groups one after another by rank."""
        rows: dict[str, list[Noun]] = {}
        for cls, by in WORDS["nouns"].items():
            for group in by:
                sense = [f"{word}%{group}" if word in ambiguous else "" for word in groups[group]]
                rows[group] = [Noun(w, cls, group, _gender(w), s) for w, s in zip(groups[group], sense, strict=True)]
            if cls not in by:
                mine = [rows[group] for group in by]
                rows[cls] = [row[rank] for rank in range(max(map(len, mine))) for row in mine if rank < len(row)]
        return {name: Ranked(row, flat=12) for name, row in rows.items()}


def _gender(noun: str) -> str:
    return next((gender for gender in ("female", "male") if noun in WORDS[gender].split()), "")


def _frame(row: list[str]) -> Frame:
    name, subject, target, obliques, marks, _ = row
    slots = []
    for oblique in obliques.split():
        preposition, _, rest = oblique.partition("/")
        slots.append(_slot(rest, preposition))
    return Frame(name, _slot(subject), _slot(target) if target else None, tuple(slots), marks)


def _slot(cell: str, preposition: str = "") -> Slot:
    label, _, classes = cell.partition(":")
    names = tuple(classes.split(","))
    return Slot(label, THINGS if names == ("thing",) else names, preposition)


def english_forms() -> set[str]:
    """The English forms that no invented word repeats, in lower case: the tables and the open biLM's vocabulary."""
    tables = [WORDS[kind] for kind in ("name_words", "months", "weekdays", "numbers", "said", "wanted")]
    tables += [words for kind in ("nouns", "relations") for by in WORDS[kind].values() for words in by.values()]
    words = " ".join([*WORDS["tags"].values(), *WORDS["adjectives"].values(), *tables]).split()
    lemmas = [lemma for line in WORDS["frames"].strip().splitlines() for lemma in line.split("|")[-1].split()]
    words += [form for lemma in lemmas for form in (lemma, third(lemma), past(lemma), gerund(lemma))]
    common = (places.CONF / "pretrain/open.words.txt").read_text(encoding="utf-8").split()
    return {form.lower() for word in words for form in (word, plural(word))} | {word.lower() for word in common}
