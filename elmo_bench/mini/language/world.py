"""The world of a seed: people, places, organisations and works, whose names do not reveal their class.

Most names (85 %) are shared by two of the classes (a bank named after its founder, a ship after a town), and most are
rare: the context tells which is meant.
"""

from __future__ import annotations

from dataclasses import dataclass

from elmo_bench.mini.language.chance import Chance, Ranked
from elmo_bench.mini.language.english import WORDS
from elmo_bench.mini.language.lexicon import Lexicon, Noun, opinion_words

TYPES = {"person": "PER", "place": "LOC", "org": "ORG", "work": "MISC"}
CLASSES = ("person", "person", "place", "org", "work")  # whose a name is: people have as many as two others


@dataclass(frozen=True, eq=False)
class Entity:
    """Someone or something with a name.

    Attributes:
        noun: what it is; its class gives the entity type.
        name: the words of the full name.
        short: the words of the short name, which may be the full one.
        gender: of a person "female" or "male", otherwise "".
        home: the place of a person or an organisation.
    """

    noun: Noun
    name: tuple[str, ...]
    short: tuple[str, ...]
    gender: str = ""
    home: Entity | None = None


class World:
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
        self._chance = chance = Chance("world", seed)
        self.lexicon = Lexicon(seed, invented)
        namer = self.lexicon.namer
        given = [namer.name() for _ in range(names // 8)]
        known = WORDS["name_words"].split()
        made = [namer.name() for _ in range(names - len(given) - len(known))]
        pool = chance.shuffled([*known, *made[: len(known) * 4]]) + made[len(known) * 4 :]
        bases: dict[str, list[str]] = {cls: [] for cls in TYPES}
        for base in pool:
            first = chance.one_of(CLASSES)
            bases[first].append(base)
            if chance.happens(0.85):
                bases[chance.one_of([cls for cls in TYPES if cls != first])].append(base)
        self._given = {"female": Ranked(given[::2], flat=60), "male": Ranked(given[1::2], flat=60)}
        self.entities: dict[str, Ranked[Entity]] = {}
        for cls in ("place", "person", "org", "work"):
            mine = [self._entity(cls, base) for base in bases[cls]]
            self.entities[cls] = Ranked(mine, flat=200)
            for group in WORDS["nouns"][cls]:
                self.entities[group] = Ranked((entity for entity in mine if entity.noun.group == group), flat=100)
        self.opinions = opinion_words(seed, namer, invented)

    def _entity(self, cls: str, base: str) -> Entity:
        chance = self._chance
        noun = self.lexicon.nouns[cls].draw(chance)
        if cls == "person":
            gender = noun.gender or chance.one_of(("female", "male"))
            name = (self._given[gender].draw(chance), base)
            return Entity(noun, name, name[1:], gender, self.entities["place"].draw(chance))
        patterns = WORDS["long_names"].get(noun.group) or WORDS["long_names"]["place"]
        long = chance.one_of(patterns.split(", ")) if chance.happens(0.3) else "{}"
        name = tuple(long.format(base).split())
        home = self.entities["place"].draw(chance) if cls == "org" else None
        return Entity(noun, name, name if cls == "place" else (base,), "", home)


class WorldSampler:
    """What draws from the world of a seed.

    Args:
        chance: the stream of draws.
        world: of the seed.
    """

    def __init__(self, chance: Chance, world: World):
        self.chance, self.world, self.lexicon = chance, world, world.lexicon
