"""The world of a seed: people, places, organisations and works, and events among them.

Names do not reveal their class. Most (85 %) are shared by two of the classes (a bank named after its founder, a ship
after a town), and most are rare: the context tells which is meant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from elmo_bench.mini.language.chance import Chance, Ranked
from elmo_bench.mini.language.lexicon import Frame, Lexicon, Noun, Slot, Verb, opinion_words
from elmo_bench.mini.language.phrases import Phrase, Word, phrase
from elmo_bench.mini.language.words import GRAMMAR, THINGS, WORDS

TYPES = {"person": "PER", "place": "LOC", "org": "ORG", "work": "MISC"}
CLASSES = ("person", "person", "place", "org", "work")  # whose a name is: people have as many as two others
GENDERS = ("female", "male")
INDEFINITE = "some"  # a plural without determiner or number word: bakers


@dataclass(frozen=True, eq=False)
class Participant:
    """Someone or something: with a name, or without one, such as a young baker, three carts, the mayor of Tarvel.

    Attributes:
        noun: what it is; its class gives the entity type of a name.
        name: the words of the full name.
        short: the words of the short name, which may be the full one.
        gender: of a person "female" or "male".
        home: the place of a person or an organisation that has a name.
        adjectives: of what has no name.
        owner: whose it is, or for a noun of the group "relation" what the noun relates to.
        number: a number word or `INDEFINITE`; empty for the singular.
    """

    noun: Noun
    name: tuple[str, ...] = ()
    short: tuple[str, ...] = ()
    gender: str = ""
    home: Participant | None = None
    adjectives: tuple[str, ...] = ()
    owner: Participant | None = None
    number: str = ""

    @property
    def pronoun(self) -> str:
        """female, male, plural, or empty for "it"."""
        return "plural" if self.number else self.gender if self.noun.cls == "person" else ""

    @property
    def names(self) -> tuple[str, ...]:
        """The short name that is said for it: its own or its owner's; empty if there is none."""
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
    """All that is fixed for a seed before the first sentence.

    Args:
        seed: of the data set.
        names: the number of different names.
        invented: the number of invented words of a kind, see `Lexicon` and `opinion_words`.

    Attributes:
        lexicon: the words.
        entities: everyone and everything with a name, by class and by group, the most frequent first.
        opinions: see `opinion_words`.
    """

    def __init__(self, seed: int, names: int, invented: int):
        super().__init__("world", seed)
        self.lexicon = Lexicon(seed, invented)
        namer, known = self.lexicon.namer, WORDS["name_words"].split()
        given, made = ([namer.name() for _ in range(n)] for n in (names // 8, names - names // 8 - len(known)))
        pool = self.shuffled([*known, *made[: len(known) * 4]]) + made[len(known) * 4 :]
        bases: dict[str, list[str]] = {cls: [] for cls in TYPES}
        for base in pool:
            first = self.one_of(CLASSES)
            bases[first].append(base)
            if self.happens(0.85):
                bases[self.one_of([cls for cls in TYPES if cls != first])].append(base)
        self._given = {gender: Ranked(given[i::2], flat=60) for i, gender in enumerate(GENDERS)}
        self.entities: dict[str, Ranked[Participant]] = {}
        for cls in ("place", "person", "org", "work"):
            mine = [self._entity(cls, base) for base in bases[cls]]
            self.entities[cls] = Ranked(mine, flat=200)
            for group in WORDS["nouns"][cls]:
                self.entities[group] = Ranked((entity for entity in mine if entity.noun.group == group), flat=100)
        self.opinions = opinion_words(seed, namer, invented)

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
    """A verb with its participants and circumstances by role: a place is ARGM-LOC, a time (a phrase) ARGM-TMP.

    Attributes:
        style: how it is told.
    """

    style = Style()

    def __init__(self, verb: Verb, roles: Mapping[str, Any]):
        self.verb, self.frame = verb, verb.frame
        self.roles = {role: filler for role, filler in roles.items() if filler is not None}
        self.subject, self.time = self.roles[self.frame.subject.label], self.roles.get("ARGM-TMP")

    def having(self, role: str, filler: Any) -> Event:
        """With another filler of a role, or with none."""
        return Event(self.verb, {**self.roles, role: filler})

    @property
    def facts(self) -> dict[str, tuple[Any, ...]]:
        """What identifies who or what has each role."""
        return {role: filler.parts for role, filler in self.roles.items()}

    @property
    def grammatical(self) -> tuple[Slot, Participant]:
        """The slot and the participant of the grammatical subject."""
        slot = self.frame.slots[self.style.passive]
        return slot, self.roles[slot.label]


class Events(Chance):
    """Draws events, in which every slot has a participant of a class that the verb allows.

    Args:
        chance: the stream of draws.
        world: of the seed.
    """

    def __init__(self, chance: Chance, world: World):
        super().__init__(chance)
        self.world, self.lexicon = world, world.lexicon

    def event(self, frame: Frame | None = None, subject: Participant | None = None, plain: bool = False) -> Event:
        """An event, with the given frame and subject if any; `plain` leaves out time and place."""
        if frame is None:  # everyday actions are rarer
            known = self.lexicon.frames.values()
            fitting = [each for each in known if subject is None or subject.fits(each.subject.classes)]
            frame = self.weighted({each: 1 if "*" in each.marks else 3 for each in fitting})
        verb = self.lexicon.verbs[frame.name].draw(self)
        if verb.shared and subject is None:  # a name beside it could be anything
            subject = self.common(self.one_of(frame.subject.classes))
        roles: dict[str, Any] = {frame.subject.label: subject or self.filler(frame.subject.classes)}
        often = 0.6 if sum(bool(slot.preposition) for slot in frame.slots) == 1 else 0.45
        for slot in frame.slots[1:]:
            if not slot.preposition or self.happens(often):
                roles[slot.label] = self._other(slot.classes, roles)
        if not plain:
            placed = not frame.placed and roles[frame.subject.label].noun.cls != "place" and self.happens(0.3)
            roles["ARGM-LOC"] = self._other(("place",), roles) if placed else None
            roles["ARGM-TMP"] = self.time() if self.happens(0.4) else None
        return Event(verb, roles)

    def filler(self, classes: Sequence[str]) -> Participant:
        """Someone or something of one of the classes (or groups)."""
        wanted = self.one_of(classes)
        if self.happens(GRAMMAR["named"].get(wanted, 0.0)):
            return self.world.entities[wanted].draw(self)
        general = "thing" if {*THINGS} <= {*classes} else wanted
        if general not in ("person", "thing") or not self.happens(0.3):
            return self.common(wanted)
        owner = self.one_of(list(self.lexicon.relations))  # the mayor of a place, someone's grave
        noun = self.lexicon.relations[owner][general].draw(self)
        gender = noun.gender or self.one_of(GENDERS)
        return Participant(noun, gender=gender, owner=self.world.entities[owner].draw(self))

    def _other(self, classes: Sequence[str], roles: Mapping[str, Participant]) -> Participant:
        """A filler that is not among those of the roles and shares no name with them."""
        names = {each.names for each in roles.values()} - {()}
        while (filler := self.filler(classes)) in roles.values() or filler.names in names:
            pass
        return filler

    def common(self, wanted: str) -> Participant:
        """Someone or something of a class or group, without a name."""
        noun = self.lexicon.nouns[wanted].draw(self)
        adjectives = (self.adjective(noun),) if self.happens(0.3) else ()
        number = ""
        if noun.cls != "place" and self.happens(0.18):
            number = INDEFINITE if self.happens(0.5) else self.one_of(WORDS["numbers"])
        return Participant(noun, gender=noun.gender or self.one_of(GENDERS), adjectives=adjectives, number=number)

    def adjective(self, noun: Noun) -> str:
        """An adjective that fits the noun."""
        groups = WORDS["modifiers"]["thing" if noun.cls in THINGS else noun.cls].split()
        return self.lexicon.adjectives[self.one_of(groups)].draw(self)

    def time(self) -> Phrase:
        """in 1902, on Monday, in March, on 3 May, four years ago."""
        parts: list[Word | str] = []
        for part in reversed(self.weighted(GRAMMAR["times"]).split()):  # the month before its day
            tag, *drawn = GRAMMAR["dates"].get(part, [""])
            if len(drawn) == 2:
                part = str(self.one_of(range(*drawn)))
            elif drawn:
                part = self.one_of(WORDS[drawn[0]])
            parts.insert(0, Word(part, tag) if tag else part)
        return phrase(*parts)
