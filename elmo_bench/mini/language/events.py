"""Events with their participants, drawn so that every slot gets a participant of a class that the verb allows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from elmo_bench.mini.language import english
from elmo_bench.mini.language.chance import Chance
from elmo_bench.mini.language.lexicon import Frame, Lexicon, Noun, Slot, Verb
from elmo_bench.mini.language.phrases import Phrase, Word, phrase
from elmo_bench.mini.language.world import Entity, World

BARE = "some"  # a plural without determiner or number word: bakers
NAMED = {
    "person": 0.7,
    "place": 0.85,
    "org": 0.8,
    "work": 0.75,
    "team": 1.0,
}  # the share of participants that have a name


@dataclass(frozen=True, eq=False)
class Common:
    """Someone or something without a name: a young baker, three carts, the mayor of Tarvel.

    Attributes:
        key: unique in a text.
        owner: the owner, or for a noun of the group "relation" what the noun relates to.
        number: a number word or `BARE`; empty for the singular.
    """

    key: str
    noun: Noun
    adjectives: tuple[str, ...] = ()
    owner: Entity | None = None
    number: str = ""
    gender: str = ""


Filler = Entity | Common


@dataclass(frozen=True, eq=False)
class Event:
    """A verb with its participants and circumstances."""

    verb: Verb
    subject: Filler
    object: Filler | None = None
    obliques: tuple[tuple[Slot, Filler], ...] = ()
    time: Phrase | None = None
    place: Filler | None = None
    at: str = ""  # the preposition of the place
    manner: str = ""

    @property
    def fillers(self) -> list[Filler]:
        """All participants and the place."""
        fillers = [self.subject, self.object, *(filler for _, filler in self.obliques), self.place]
        return [filler for filler in fillers if filler is not None]


def cls(filler: Filler) -> str:
    """person, place, org, work, animal, a class of things, or "thing"."""
    return filler.noun.cls


def preposition(place: Filler) -> str:
    """near the river, in the valley."""
    return "near" if place.noun.group == "waterway" else "in"


def fits(filler: Filler, classes: Sequence[str]) -> bool:
    """Whether the filler is of one of the classes or groups."""
    if cls(filler) == "thing":  # of an owner: his grave, its budget
        return set(english.THING) <= set(classes)
    return cls(filler) in classes or filler.noun.group in classes


class Events:
    """Draws events.

    Args:
        chance: the stream to draw from.
        lexicon: of the same seed.
        world: of the same seed.
    """

    def __init__(self, chance: Chance, lexicon: Lexicon, world: World):
        self.chance, self.lexicon, self.world = chance, lexicon, world
        self._frames: dict[tuple[str, str] | None, dict[str, int]] = {}  # by class and group of a subject
        self._keys = 0

    def event(self, frame: Frame | None = None, subject: Filler | None = None, plain: bool = False) -> Event:
        """An event, with the given frame and subject if any; `plain` leaves out time, place and manner."""
        chance = self.chance
        frame = frame or self.frame(subject)
        verb = self.lexicon.verbs[frame.name].draw(chance)
        taken: list[Filler] = [subject or self.filler(frame.subject.classes)]
        target = self.other(frame.object.classes, taken) if frame.object else None
        obliques = []
        for slot in frame.obliques:
            if chance.happens(0.6 if len(frame.obliques) == 1 else 0.45):
                obliques.append((slot, self.other(slot.classes, taken)))
        event = Event(verb, taken[0], target, tuple(obliques))
        return event if plain else self.circumstances(event, taken)

    def circumstances(self, event: Event, taken: list[Filler]) -> Event:
        chance = self.chance
        at_places = any(
            "place" in slot.classes for slot in (event.verb.frame.object, *event.verb.frame.obliques) if slot
        )
        placed = not at_places and cls(event.subject) != "place" and chance.happens(0.3)
        place = self.other(("place",), taken) if placed else None
        return replace(
            event,
            time=self.time() if chance.happens(0.4) else None,
            place=place,
            at="near" if chance.happens(0.25) else preposition(place) if place else "",
            manner=self.lexicon.manners.draw(chance) if cls(event.subject) == "person" and chance.happens(0.12) else "",
        )

    def frame(self, subject: Filler | None) -> Frame:
        """A frame that allows the filler as its subject; everyday actions are rarer."""
        kind = subject and (cls(subject), subject.noun.group)
        if kind not in self._frames:
            known = self.lexicon.frames.values()
            fitting = [frame for frame in known if subject is None or fits(subject, frame.subject.classes)]
            self._frames[kind] = {frame.name: 1 if frame.action else 4 for frame in fitting}
        return self.lexicon.frames[self.chance.weighted(self._frames[kind])]

    def filler(self, classes: Sequence[str]) -> Filler:
        """Someone or something of one of the classes (or groups)."""
        wanted = self.chance.one_of(classes)
        if self.chance.happens(NAMED.get(wanted, 0.0)):
            return self.world.by_class[wanted].draw(self.chance)
        general = "thing" if set(english.THING) <= set(classes) else wanted
        if general in ("person", "thing") and self.chance.happens(0.3):
            return self._related(general)
        return self.common(wanted)

    def other(self, classes: Sequence[str], taken: list[Filler]) -> Filler:
        """A filler that is not among those taken and shares no name with them; it is added to them."""
        names = {filler.short for filler in taken if isinstance(filler, Entity)}
        while True:
            filler = self.filler(classes)
            if filler not in taken and not (isinstance(filler, Entity) and filler.short in names):
                taken.append(filler)
                return filler

    def common(self, wanted: str) -> Common:
        """Someone or something of a class or group, without a name."""
        chance = self.chance
        if wanted == "role":
            return Common(self._key(), self.lexicon.nouns["person"].draw(chance))
        noun = self.lexicon.nouns[wanted].draw(chance)
        general = "thing" if noun.cls in english.THING else noun.cls
        adjectives = self._adjectives(general)
        number = ""
        if general != "place" and chance.happens(0.18):
            number = BARE if chance.happens(0.5) else chance.one_of(english.NUMBERS)
        return Common(self._key(), noun, adjectives, None, number, noun.gender or chance.one_of(("female", "male")))

    def _key(self) -> str:
        self._keys += 1
        return f"common-{self._keys}"

    def _related(self, general: str) -> Common:
        """The mayor of a place, someone's grave."""
        owner = self.chance.one_of(list(self.lexicon.relations))
        noun = self.lexicon.relations[owner][general].draw(self.chance)
        gender = noun.gender or self.chance.one_of(("female", "male"))
        return Common(self._key(), noun, owner=self.world.by_class[owner].draw(self.chance), gender=gender)

    def _adjectives(self, general: str) -> tuple[str, ...]:
        chance = self.chance
        adjectives = []
        if chance.happens(0.3):
            adjectives.append(self.lexicon.adjectives[chance.one_of(english.MODIFIERS[general])].draw(chance))
        if chance.happens(0.12):
            adjectives.append(self.lexicon.adjectives["other"].draw(chance))
        if chance.happens(0.12):
            adjectives.append(self.world.demonyms.draw(chance))
        return tuple(adjectives)

    def time(self) -> Phrase:
        """in 1902, on Monday, in March, on 3 May, last week, yesterday, after the dralkment."""
        chance = self.chance
        kind = chance.weighted({"year": 5, "day": 4, "month": 3, "date": 3, "last": 2, "ago": 2, "event": 4})
        if kind == "year":
            return phrase("in", self.year())
        if kind == "day":
            return phrase("on", Word(chance.one_of(english.WEEKDAYS), "NNP"))
        if kind == "month":
            return phrase("in", Word(chance.one_of(english.MONTHS), "NNP"))
        if kind == "date":
            return phrase("on", Word(str(chance.between(1, 28)), "CD"), Word(chance.one_of(english.MONTHS), "NNP"))
        if kind == "last":
            return phrase(Word("last", "JJ"), Word(chance.one_of(("week", "month", "year", "winter")), "NN"))
        if kind == "ago":
            return phrase(Word(chance.one_of(english.NUMBERS), "CD"), Word("years", "NNS"), Word("ago", "RB"))
        noun = Word(self.lexicon.events.draw(chance), "NN")
        return phrase(chance.one_of(("after", "before", "during")), "the", noun)

    def year(self) -> Word:
        return Word(str(self.chance.between(1850, 1999)), "CD")
