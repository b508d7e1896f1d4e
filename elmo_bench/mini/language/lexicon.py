"""The lexicon of a seed: English words and many more invented ones, with their classes and frames.

A labelled set of a thousand sentences leaves most of the invented verbs and nouns unseen. Each verb selects for
certain classes of participants, and plain text uses every word often enough for a biLM to learn this.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from elmo_bench.mini.language import english
from elmo_bench.mini.language.chance import Chance, Ranked
from elmo_bench.mini.language.morphology import Inventor, agent, gerund, past, plural, third


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
    """How a group of verbs is used. In an `action`, the verbs are hyponyms of the first one."""

    name: str
    subject: Slot
    object: Slot | None
    obliques: tuple[Slot, ...]
    action: bool
    dative: bool


class Verb(NamedTuple):
    """A verb in a frame, with its PropBank-like roleset number."""

    lemma: str
    number: str
    frame: Frame
    sense: str = ""


class Lexicon:
    """All words of a seed.

    Args:
        seed: of the data set.
        invented: how many invented verbs a frame and invented nouns a group get; half as many relation nouns.

    Attributes:
        nouns: by class and by group.
        hypernyms: the noun that names a group, by group.
        verbs: by frame.
        relations: nouns for what an owner of a class can have: relations[owner class][class].
        events: nouns for events, derived from verbs.
        adjectives: by group of mutually exclusive adjectives; those of "other" are not exclusive.
        namer: makes names that are not words of the lexicon.
    """

    def __init__(self, seed: int, invented: int):
        self._chance = Chance("lexicon", seed)
        self.namer = Inventor(self._chance, _english_words())
        self._invented = invented
        self.frames = {frame.name: frame for frame in map(_frame, _rows())}
        lemmas = {row[0]: self._with_invented(row[-1].split()) for row in _rows()}
        groups = self._groups(lemmas)
        ambiguous = _ambiguous(groups, lemmas)
        self.verbs = self._verbs(lemmas, ambiguous)
        self.nouns, self.hypernyms = _nouns(groups, ambiguous)
        self.relations = {
            owner: {cls: self._relation_nouns(cls, words.split()) for cls, words in by_class.items()}
            for owner, by_class in english.RELATIONS.items()
        }
        self.speech, self.control, self.price = (
            Ranked(Verb(lemma, "01", self.frames["rest"]) for lemma in self._with_invented(words.split()))
            for words in (english.SPEECH_VERBS, english.CONTROL_VERBS, english.PRICE_VERBS)
        )
        english_verbs = _english_words()
        self.events = Ranked(
            self._event_noun(lemma) for words in lemmas.values() for lemma in words if lemma not in english_verbs
        )
        self.adjectives = {group: Ranked(words.split()) for group, words in english.ADJECTIVES.items()}
        self.adjectives["other"] = Ranked(self._adjective() for _ in range(6 * invented))
        self.manners = Ranked([*english.MANNERS.split(), *(self._adjective() for _ in range(2 * invented))])

    def _with_invented(self, words: Sequence[str]) -> list[str]:
        """The first four words stay in front; the rest and the invented ones are mixed."""
        invented = [self.namer.stem() for _ in range(self._invented)]
        return [*words[:4], *self._chance.shuffled([*words[4:], *invented])]

    def _groups(self, lemmas: dict[str, list[str]]) -> dict[str, tuple[str, list[str]]]:
        """group -> (class, nouns); some nouns are verbs too, some are agents of verbs: a dralk, a dralker."""
        groups = {}
        for cls, by_group in english.NOUNS.items():
            for group, words in by_group.items():
                invented = [self._noun(cls) for _ in range(self._invented)]
                known = words.split()
                groups[group] = cls, known[:4] + self._chance.shuffled(known[4:] + invented)
        names = list(groups)
        for row in _rows():
            invented = [lemma for lemma in lemmas[row[0]] if lemma not in row[-1].split()]
            for verb in self._chance.some(invented, len(invented) // 4):
                groups[self._chance.one_of(names)][1].append(verb)
            for verb in self._chance.some(invented, len(invented) // 4):
                maker = "tool" if row[0] in ("clean", "break", "carry") else "worker"
                groups[maker][1].append(agent(verb))
        return groups

    def _noun(self, cls: str) -> str:
        endings = {"person": "ist", "place": "stead", "org": "age", "work": "ade"}
        return self.namer.stem() + (endings.get(cls, "et") if self._chance.happens(0.25) else "")

    def _adjective(self) -> str:
        return self.namer.stem() + self._chance.one_of(("y", "ish", "ous", "al", "ic"))

    def _event_noun(self, lemma: str) -> str:
        """dralk -> dralking, dralkment, dralk."""
        return self._chance.one_of((gerund(lemma), lemma + "ment", lemma))

    def _relation_nouns(self, cls: str, words: list[str]) -> Ranked[Noun]:
        forms = words + [self._noun(cls) for _ in range(self._invented // 2)]
        return Ranked(Noun(form, cls, "relation", english.GENDERS.get(form, "")) for form in forms)

    def _verbs(self, lemmas: dict[str, list[str]], ambiguous: set[str]) -> dict[str, Ranked[Verb]]:
        seen: dict[str, int] = {}
        verbs = {}
        for name, words in lemmas.items():
            row = []
            for lemma in words:
                seen[lemma] = seen.get(lemma, 0) + 1
                sense = f"{lemma}%verb" if lemma in ambiguous else ""
                row.append(Verb(lemma, f"{seen[lemma]:02}", self.frames[name], sense))
            verbs[name] = Ranked(row)
        return verbs


def _rows() -> list[list[str]]:
    """The table of frames: name, subject, object, obliques, marks, verbs."""
    return [[cell.strip() for cell in line.split("|")] for line in english.FRAMES.strip().splitlines()]


def _frame(row: list[str]) -> Frame:
    name, subject, target, obliques, marks, _ = row
    slots = []
    for oblique in obliques.split():
        preposition, _, rest = oblique.partition("/")
        slots.append(_slot(rest, preposition))
    return Frame(name, _slot(subject), _slot(target) if target else None, tuple(slots), "*" in marks, "~" in marks)


def _slot(cell: str, preposition: str = "") -> Slot:
    label, _, classes = cell.partition(":")
    names = tuple(classes.split(","))
    return Slot(label, english.THING if names == ("thing",) else names, preposition)


def _nouns(groups: dict[str, tuple[str, list[str]]], ambiguous: set[str]):
    by_name: dict[str, list[Noun]] = {}
    hypernyms = {}
    for group, (cls, words) in groups.items():
        row = [Noun(w, cls, group, english.GENDERS.get(w, ""), f"{w}%{group}" if w in ambiguous else "") for w in words]
        by_name[group] = row
        hypernyms[group] = Noun(group, cls, group)
    for cls, by_group in english.NOUNS.items():
        if cls not in by_group:  # a class of several groups: one after another by rank
            rows = [by_name[group] for group in by_group]
            by_name[cls] = [row[rank] for rank in range(max(map(len, rows))) for row in rows if rank < len(row)]
    return {name: Ranked(row, flat=12) for name, row in by_name.items()}, hypernyms


def _ambiguous(groups: dict[str, tuple[str, list[str]]], lemmas: dict[str, list[str]]) -> set[str]:
    """The words with two senses: nouns of two groups, or a noun and a verb."""
    senses: dict[str, int] = {}
    for _, words in groups.values():
        for word in words:
            senses[word] = senses.get(word, 0) + 1
    verbs = {lemma for words in lemmas.values() for lemma in words}
    return {word for word, n in senses.items() if n > 1 or word in verbs}


def _english_words() -> set[str]:
    """Every English form that an invented word must not repeat, in lower case."""
    words = [*english.TAGS, *english.NAME_WORDS, *english.MONTHS, *english.WEEKDAYS, *english.NUMBERS]
    for by_group in [*english.NOUNS.values(), *english.RELATIONS.values(), english.ADJECTIVES]:
        words += [w for group in by_group.values() for w in group.split()]
    verbs = " ".join([*(row[-1] for row in _rows()), english.SPEECH_VERBS, english.CONTROL_VERBS, english.PRICE_VERBS])
    for verb in verbs.split():
        words += [verb, third(verb), past(verb), gerund(verb)]
    return {form.lower() for word in words for form in (word, plural(word))} | {"drink", "print", "grand", "gland"}
