"""The world of a seed: people, places, organisations and works, whose names do not reveal their class.

Half of the names are shared by two of the classes (a bank named after its founder, a ship after a town), and most names
are rare: the context tells which is meant.
"""

from __future__ import annotations

from dataclasses import dataclass

from elmo_bench.mini.language.chance import Chance, Ranked
from elmo_bench.mini.language.english import WORDS
from elmo_bench.mini.language.lexicon import Lexicon, Noun

TYPES = {"person": "PER", "place": "LOC", "org": "ORG", "work": "MISC"}
CLASSES = ("person", "person", "place", "org", "work")  # whose a name is: people have as many as two others


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
    """Everyone and everything with a name, by class and by group, the most frequent first.

    Args:
        seed: of the data set.
        lexicon: of the same seed.
        names: the number of different names.
    """

    def __init__(self, seed: int, lexicon: Lexicon, names: int):
        self._chance = chance = Chance("world", seed)
        self._lexicon = lexicon
        given = [lexicon.namer.name() for _ in range(names // 8)]
        known = WORDS["name_words"].split()
        invented = [lexicon.namer.name() for _ in range(names - len(given) - len(known))]
        pool = chance.shuffled([*known, *invented[: len(known) * 4]]) + invented[len(known) * 4 :]
        bases: dict[str, list[str]] = {cls: [] for cls in TYPES}
        for base in pool:
            first = chance.one_of(CLASSES)
            bases[first].append(base)
            if chance.happens(0.85):
                bases[chance.one_of([cls for cls in TYPES if cls != first])].append(base)
        self._given = {"female": Ranked(given[::2], flat=60), "male": Ranked(given[1::2], flat=60)}
        self.by_class: dict[str, Ranked[Entity]] = {}
        for cls in ("place", "person", "org", "work"):
            entities = [self._entity(cls, i, base) for i, base in enumerate(bases[cls])]
            self.by_class[cls] = Ranked(entities, flat=200)
            for group in WORDS["nouns"][cls]:
                mine = [entity for entity in entities if entity.noun.group == group]
                self.by_class[group] = Ranked(mine, flat=100)

    def _entity(self, cls: str, i: int, base: str) -> Entity:
        chance = self._chance
        noun = self._lexicon.nouns[cls].draw(chance)
        if cls == "person":
            gender = noun.gender or chance.one_of(("female", "male"))
            name = (self._given[gender].draw(chance), base)
            return Entity(f"person-{i}", noun, name, name[1:], gender, self.by_class["place"].draw(chance))
        patterns = WORDS["long_names"].get(noun.group) or WORDS["long_names"]["place"]
        long = chance.one_of(patterns.split(", ")) if chance.happens(0.3) else "{}"
        name = tuple(long.format(base).split())
        home = self.by_class["place"].draw(chance) if cls == "org" else None
        return Entity(f"{cls}-{i}", noun, name, name if cls == "place" else (base,), "", home)
