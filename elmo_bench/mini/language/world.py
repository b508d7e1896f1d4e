"""The world of a seed: people, places, organisations and works, and the events among them.

Names do not reveal their class. Most (85 %) are shared by two of the classes (a bank named after its founder, a ship
after a town), and most are rare: the context tells which is meant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from elmo_bench.mini.language.lexicon import THINGS, WORDS, Chance, Lexicon, Noun, Ranked, Slot, Verb, opinion_words

TYPES = {"person": "PER", "place": "LOC", "org": "ORG", "work": "MISC"}
CLASSES = ("person", "person", "place", "org", "work")  # whose a name is: people have as many as two others
GENDERS = ("female", "male")
INDEFINITE = "some"  # a plural without determiner or number word: bakers


@dataclass(frozen=True, eq=False)
class Participant:
    """Someone or something: with a name, or without one, such as a young baker, three carts, the mayor of Tarvel."""

    noun: Noun  # its class gives the entity type of a name
    name: tuple[str, ...] = ()  # the words of the full name
    short: tuple[str, ...] = ()  # those of the short name, which may be the full one
    gender: str = ""  # of a person "female" or "male"
    home: Participant | None = None  # the place of a person or an organisation that has a name
    adjectives: tuple[str, ...] = ()  # of what has no name
    owner: Participant | None = None  # or, for a noun of the group "relation", what it relates to
    number: str = ""  # a number word or `INDEFINITE`; empty for the singular

    @property
    def pronoun(self) -> str:
        """female, male, plural, or empty for "it"."""
        return "plural" if self.number else self.gender if self.noun.cls == "person" else ""

    @property
    def names(self) -> tuple[str, ...]:
        """The short name that stands for it: its own or its owner's; empty if there is none."""
        return self.owner.short if self.owner else self.short

    @property
    def parts(self) -> tuple[str, ...]:
        """What identifies it."""
        return self.short or (*self.adjectives, self.noun.form, *self.names)

    def fits(self, classes: Sequence[str]) -> bool:
        """Whether it is of one of the classes or groups."""
        if self.noun.cls == "thing":  # of an owner: his grave, its budget
            return {*THINGS} <= {*classes}
        return self.noun.cls in classes or self.noun.group in classes


class World(Chance):
    """All that is fixed for a seed before the first sentence: the words, and who and what has one of so many names."""

    def __init__(self, seed: int, names: int, invented: int):
        super().__init__("world", seed)
        self.lexicon = Lexicon(seed, invented)
        known = WORDS["name_words"].split()
        given, made = ([self.lexicon.name() for _ in range(n)] for n in (names // 8, names - names // 8 - len(known)))
        pool = self.shuffled([*known, *made[: len(known) * 4]]) + made[len(known) * 4 :]
        bases: dict[str, list[str]] = {cls: [] for cls in TYPES}
        for base in pool:
            first = self.one_of(CLASSES)
            bases[first].append(base)
            if self.happens(0.85):
                bases[self.one_of([cls for cls in TYPES if cls != first])].append(base)
        self._given = {gender: Ranked(given[i::2], flat=60) for i, gender in enumerate(GENDERS)}
        self.entities: dict[str, Ranked[Participant]] = {}  # by class and by group, the most frequent first
        for cls in ("place", "person", "org", "work"):
            mine = [self._entity(cls, base) for base in bases[cls]]
            self.entities[cls] = Ranked(mine, flat=200)
            for group in WORDS["nouns"][cls]:
                self.entities[group] = Ranked((entity for entity in mine if entity.noun.group == group), flat=100)
        self.opinions = opinion_words(self.lexicon, invented)

    def _entity(self, cls: str, base: str) -> Participant:
        noun = self.lexicon.nouns[cls].draw(self)
        if cls == "person":
            gender = noun.gender or self.one_of(GENDERS)
            name = (self._given[gender].draw(self), base)
            return Participant(noun, name, name[1:], gender, self.entities["place"].draw(self))
        patterns = WORDS["long_names"].get(noun.group) or WORDS["long_names"]["place"]
        long = self.one_of(patterns.split(", ")) if self.happens(0.3) else "{}"
        name = tuple(long.format(base).split())
        home = self.entities["place"].draw(self) if cls == "org" else None
        return Participant(noun, name, name if cls == "place" else (base,), home=home)


class Style(NamedTuple):
    """The form of a clause. Tenses: past, present, perfect, progressive, infinitive, or a modal verb."""

    tense: str = "past"
    passive: bool = False
    negated: bool = False
    fronted: bool = False  # whether the time comes first


class Event:
    """A verb with its participants and circumstances by role: a place is ARGM-LOC, a time (a phrase) ARGM-TMP."""

    style = Style()  # of its clause

    def __init__(self, verb: Verb, roles: Mapping[str, Any]):
        self.verb, self.frame = verb, verb.frame
        self.roles = {role: filler for role, filler in roles.items() if filler is not None}
        self.subject, self.time = self.roles[self.frame.subject.label], self.roles.get("ARGM-TMP")

    def having(self, role: str, filler: Any) -> Event:
        """With another filler of a role, or with none."""
        return Event(self.verb, {**self.roles, role: filler})

    @property
    def grammatical(self) -> tuple[Slot, Participant]:
        """The slot and the participant of the grammatical subject."""
        slot = self.frame.slots[self.style.passive]
        return slot, self.roles[slot.label]
