"""Events with their participants, drawn so that every slot gets a participant of a class that the verb allows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from elmo_bench.mini.language.english import GRAMMAR, THINGS, WORDS
from elmo_bench.mini.language.lexicon import Frame, Noun, Slot, Verb
from elmo_bench.mini.language.phrases import Phrase, Word, phrase
from elmo_bench.mini.language.world import Entity, WorldSampler

INDEFINITE = "some"  # a plural without determiner or number word: bakers


@dataclass(frozen=True, eq=False)
class Common:
    """Someone or something without a name: a young baker, three carts, the mayor of Tarvel.

    Attributes:
        owner: the owner, or for a noun of the group "relation" what the noun relates to.
        number: a number word or `INDEFINITE`; empty for the singular.
    """

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

    @property
    def frame(self) -> Frame:
        return self.verb.frame

    def filled(self) -> list[tuple[Slot, Filler]]:
        """The participants with their slots; a passive has the second as its grammatical subject."""
        target = [(self.frame.object, self.object)] if self.frame.object and self.object else []
        return [(self.frame.subject, self.subject), *target, *self.obliques]


def gender(filler: Filler) -> str:
    """female, male, plural, or empty for "it"."""
    if isinstance(filler, Common) and filler.number:
        return "plural"
    return filler.gender if filler.noun.cls == "person" else ""


def fits(filler: Filler, classes: Sequence[str]) -> bool:
    """Whether the filler is of one of the classes or groups."""
    if filler.noun.cls == "thing":  # of an owner: his grave, its budget
        return set(THINGS) <= set(classes)
    return filler.noun.cls in classes or filler.noun.group in classes


def _named(filler: Filler) -> tuple[str, ...]:
    """The name that is said for the filler: its own or its owner's; empty if there is none."""
    entity = filler if isinstance(filler, Entity) else filler.owner
    return entity.short if entity else ()


class Events(WorldSampler):
    """Draws events."""

    def event(self, frame: Frame | None = None, subject: Filler | None = None, plain: bool = False) -> Event:
        """An event, with the given frame and subject if any; `plain` leaves out time and place."""
        chance = self.chance
        frame = frame or self._frame(subject)
        verb = self.lexicon.verbs[frame.name].draw(chance)
        if verb.shared and subject is None:  # a name beside it could be anything
            subject = self.common(chance.one_of(frame.subject.classes))
        taken: list[Filler] = [subject or self.filler(frame.subject.classes)]
        target = self._other(frame.object.classes, taken) if frame.object else None
        often = 0.6 if len(frame.obliques) == 1 else 0.45
        obliques = [(slot, self._other(slot.classes, taken)) for slot in frame.obliques if chance.happens(often)]
        event = Event(verb, taken[0], target, tuple(obliques))
        if plain:
            return event
        placed = not frame.placed and event.subject.noun.cls != "place" and chance.happens(0.3)
        place = self._other(("place",), taken) if placed else None
        return replace(event, time=self.time() if chance.happens(0.4) else None, place=place)

    def _frame(self, subject: Filler | None) -> Frame:
        """A frame that allows the filler as its subject; everyday actions are rarer."""
        known = self.lexicon.frames.values()
        fitting = [frame for frame in known if subject is None or fits(subject, frame.subject.classes)]
        return self.chance.weighted({frame: 1 if frame.action else 3 for frame in fitting})

    def filler(self, classes: Sequence[str]) -> Filler:
        """Someone or something of one of the classes (or groups)."""
        wanted = self.chance.one_of(classes)
        if self.chance.happens(GRAMMAR["named"].get(wanted, 0.0)):
            return self.world.entities[wanted].draw(self.chance)
        general = "thing" if set(THINGS) <= set(classes) else wanted
        if general in ("person", "thing") and self.chance.happens(0.3):
            return self._related(general)
        return self.common(wanted)

    def _other(self, classes: Sequence[str], taken: list[Filler]) -> Filler:
        """A filler that is not among those taken and shares no name with them; it is added to them."""
        names = {*map(_named, taken)} - {()}
        while (filler := self.filler(classes)) in taken or _named(filler) in names:
            pass
        taken.append(filler)
        return filler

    def common(self, wanted: str) -> Common:
        """Someone or something of a class or group, without a name."""
        chance = self.chance
        noun = self.lexicon.nouns[wanted].draw(chance)
        adjectives = (self.adjective(noun),) if chance.happens(0.3) else ()
        number = ""
        if noun.cls != "place" and chance.happens(0.18):
            number = INDEFINITE if chance.happens(0.5) else chance.one_of(WORDS["numbers"].split())
        return Common(noun, adjectives, None, number, noun.gender or chance.one_of(("female", "male")))

    def adjective(self, noun: Noun) -> str:
        """An adjective that fits the noun."""
        groups = WORDS["modifiers"]["thing" if noun.cls in THINGS else noun.cls].split()
        return self.lexicon.adjectives[self.chance.one_of(groups)].draw(self.chance)

    def _related(self, general: str) -> Common:
        """The mayor of a place, someone's grave."""
        owner = self.chance.one_of(list(self.lexicon.relations))
        noun = self.lexicon.relations[owner][general].draw(self.chance)
        gender = noun.gender or self.chance.one_of(("female", "male"))
        return Common(noun, owner=self.world.entities[owner].draw(self.chance), gender=gender)

    def time(self) -> Phrase:
        """in 1902, on Monday, in March, on 3 May, four years ago."""
        chance = self.chance
        kind = chance.weighted(GRAMMAR["times"])
        if kind == "year":
            return phrase("in", Word(str(chance.between(1850, 1999)), "CD"))
        if kind == "day":
            return phrase("on", Word(chance.one_of(WORDS["weekdays"].split()), "NNP"))
        if kind == "ago":
            return phrase(Word(chance.one_of(WORDS["numbers"].split()), "CD"), Word("years", "NNS"), "ago")
        month = Word(chance.one_of(WORDS["months"].split()), "NNP")
        return phrase("in", month) if kind == "month" else phrase("on", Word(str(chance.between(1, 28)), "CD"), month)
