"""The world of a seed: people, places, organisations and works, whose names do not reveal their class.

A third of the organisations and works and a quarter of the places share their name with someone or something of another
class (a bank named after its founder, a club after its town): only the context tells which is meant.
"""

from __future__ import annotations

from dataclasses import dataclass

from elmo_bench.mini.language import english
from elmo_bench.mini.language.chance import Chance, Ranked
from elmo_bench.mini.language.lexicon import Lexicon, Noun
from elmo_bench.mini.language.morphology import demonym

TYPES = {"person": "PER", "place": "LOC", "org": "ORG", "work": "MISC"}


@dataclass(frozen=True, eq=False)
class Entity:
    """Someone or something with a name.

    Attributes:
        key: unique in the world.
        noun: what it is; its class gives the entity type.
        name: the words of the full name.
        short: the words of the short name, which may be the full one.
        gender: of a person "female" or "male", otherwise "".
        home: the place of a person or an organisation.
    """

    key: str
    noun: Noun
    name: tuple[str, ...]
    short: tuple[str, ...]
    gender: str = ""
    home: Entity | None = None

    @property
    def type(self) -> str:
        return TYPES[self.noun.cls]


class World:
    """Everyone and everything with a name, the most frequent first.

    Args:
        seed: of the data set.
        lexicon: of the same seed.
        names: the number of different names, shared by the classes.
    """

    def __init__(self, seed: int, lexicon: Lexicon, names: int):
        self._chance = chance = Chance("world", seed)
        self._lexicon = lexicon
        pool = [lexicon.namer.name() for _ in range(names)]
        known: list[str] = chance.shuffled(english.NAME_WORDS)
        cut = names * 3 // 8, names * 9 // 16, names * 3 // 4, names * 7 // 8
        surnames = self._mixed(known[:30], pool[: cut[0]])
        place_names = self._mixed(known[20:36], pool[cut[0] : cut[1]])
        org_names = self._mixed(known[10:20], pool[cut[1] : cut[2]])
        work_names = self._mixed(known[30:], pool[cut[2] : cut[3]])
        given_names = pool[cut[3] :]
        places = self._some(place_names, surnames, 4, english.PLACE_NAMES, "place")
        self.places = Ranked(places, flat=120)
        people = [self._person(i, surname, given_names) for i, surname in enumerate(surnames * 2)]
        orgs = self._some(org_names, surnames + place_names, 3, english.ORG_NAMES, "org", self.places)
        works = self._some(work_names, surnames + place_names + org_names, 3, english.WORK_NAMES, "work")
        self.by_class = {
            "person": Ranked(people, flat=200),
            "place": self.places,
            "org": Ranked(orgs, flat=120),
            "work": Ranked(works, flat=120),
            "team": Ranked([org for org in orgs if org.noun.group == "team"], flat=40),
        }
        self.demonyms = Ranked((demonym(place.short[0]) for place in places if len(place.short) == 1), flat=120)

    def _mixed(self, known: list[str], invented: list[str]) -> list[str]:
        """Invented names, with the English words that are names too spread over the first half."""
        rest = invented[len(invented) // 2 :]
        return self._chance.shuffled(known + invented[: len(invented) // 2]) + rest

    def _person(self, i: int, surname: str, given_names: list[str]) -> Entity:
        chance = self._chance
        half = len(given_names) // 2
        gender, mine = ("female", given_names[:half]) if chance.happens(0.5) else ("male", given_names[half:])
        noun = self._lexicon.nouns["person"].draw(chance)
        name = Ranked(mine, flat=60).draw(chance), surname
        return Entity(f"person-{i}", noun, name, name[1:], gender, self.places.draw(chance))

    def _some(self, own, others, share: int, patterns, cls: str, homes: Ranked[Entity] | None = None) -> list[Entity]:
        """Entities with names of their own, and others, one in `share`, that have the name of something else."""
        chance = self._chance
        bases = list(own) + chance.some(others, len(own) // (share - 1))
        result = []
        for i, base in enumerate(chance.shuffled(bases)):
            long = chance.happens(0.3)
            name = tuple((chance.one_of(patterns) if long else "{}").format(base).split())
            short = name if cls == "place" else (base,)
            noun = self._lexicon.nouns[cls].draw(chance)
            result.append(Entity(f"{cls}-{i}", noun, name, short, "", homes.draw(chance) if homes else None))
        return result
