"""How kinds of text refer to participants: news and scenes without context, stories depending on what came before."""

from __future__ import annotations

from elmo_bench.mini.language import english
from elmo_bench.mini.language.chance import Chance
from elmo_bench.mini.language.events import Common, Events, Filler, cls
from elmo_bench.mini.language.noun_phrases import (
    apposed,
    description,
    mentioned,
    name,
    possessive,
    pronoun,
    related,
    titled,
    with_kind,
)
from elmo_bench.mini.language.phrases import Phrase, phrase
from elmo_bench.mini.language.world import Entity

NAMING = {  # class -> ways to name an entity, with weights
    "person": {"full": 20, "short": 50, "title": 7, "kind": 7, "apposition": 8, "relation": 3},
    "place": {"full": 84, "kind": 8, "apposition": 5},
    "org": {"short": 55, "full": 25, "kind": 9, "apposition": 6},
    "work": {"short": 50, "full": 20, "kind": 18, "apposition": 6},
}


def gender(filler: Filler) -> str:
    """female, male, plural, or empty for "it"."""
    if isinstance(filler, Common) and filler.number:
        return "plural"
    return filler.gender if cls(filler) == "person" else ""


class SceneVoice:
    """Every participant is new: a young baker, a pie."""

    def agreement(self, filler: Filler) -> str:
        return "plural" if gender(filler) == "plural" else "singular"

    def refer(self, filler: Filler, case: str = "object") -> Phrase:
        assert isinstance(filler, Common)
        return mentioned(description(filler), filler)


class NewsVoice:
    """Every sentence stands alone: names, with or without a noun."""

    def __init__(self, events: Events):
        self.chance, self.events = events.chance, events

    def agreement(self, filler: Filler) -> str:
        return "plural" if gender(filler) == "plural" else "singular"

    def refer(self, filler: Filler, case: str = "object") -> Phrase:
        return mentioned(self.named(filler) if isinstance(filler, Entity) else self.described(filler), filler)

    def named(self, entity: Entity) -> Phrase:
        chance = self.chance
        way = chance.weighted(NAMING[entity.noun.cls])
        bare = name(entity, full=way == "full")
        if way == "title":
            return titled(entity, chance.one_of(english.TITLES[entity.gender]))
        if way == "kind":
            return with_kind(entity, bare)
        if way == "apposition":
            home = phrase("from" if entity.gender else "in", name(entity.home)) if entity.home else phrase()
            return apposed(bare, phrase(description(Common("", entity.noun)), home))
        if way == "relation":  # Tarvel , the mayor of Morven ,
            owner = self.events.world.by_class[chance.one_of(("place", "org", "work"))].draw(chance)
            what = Common("", self.events.lexicon.relations[cls(owner)]["person"].draw(chance))
            return apposed(bare, related(name(owner, full=False), what))
        return bare

    def described(self, filler: Common) -> Phrase:
        if filler.owner is None:
            return description(filler, "the" if self.chance.happens(0.4) else "a")
        owner = mentioned(name(filler.owner, full=self.chance.happens(0.3)), filler.owner)
        return possessive(owner, filler) if self.chance.happens(0.5) else related(owner, filler)


class StoryVoice:
    """Introduces new participants by name or description, and refers to known ones as she, Tarvel or the baker.

    A pronoun refers to the last subject of its gender in the sentences before, else to the last mention; a description
    is used only if it fits nothing else in the story. `new_sentence` must be called before each sentence.

    Args:
        chance: the stream to draw from.
    """

    def __init__(self, chance: Chance):
        self.chance = chance
        self.speaker: Filler | None = None
        self.addressee: Filler | None = None
        self._known: dict[str, Filler] = {}
        self._focus: dict[str, Filler] = {}
        self._spoken: list[tuple[Filler, str]] = []  # of this sentence

    def new_sentence(self, speaker: Filler | None = None, addressee: Filler | None = None) -> None:
        """Moves the focus to the participants of the last sentence, and sets the speaker and the addressee."""
        for filler, _ in reversed(self._spoken):
            self._focus[gender(filler)] = filler
        for filler, case in reversed(self._spoken):
            if case == "subject":
                self._focus[gender(filler)] = filler
        self._spoken = []
        self.speaker, self.addressee = speaker, addressee

    def agreement(self, filler: Filler) -> str:
        if filler is self.speaker:
            return "I"
        return "plural" if filler is self.addressee or gender(filler) == "plural" else "singular"

    def refer(self, filler: Filler, case: str = "object") -> Phrase:
        return mentioned(self._refer(filler, case), filler)

    def _refer(self, filler: Filler, case: str) -> Phrase:
        if filler is self.speaker or filler is self.addressee:
            return pronoun("I" if filler is self.speaker else "you", case)
        in_focus = self._focus.get(gender(filler)) is filler
        clash = any(gender(other) == gender(filler) and other is not filler for other, _ in self._spoken)
        if in_focus and not clash and (case == "possessive" or self.chance.happens(0.65)):
            self._spoken.append((filler, case))
            return pronoun(gender(filler), case)
        new = filler.key not in self._known
        self._spoken.append((filler, case))
        whole = self._introduced(filler) if new else self._again(filler)
        self._known[filler.key] = filler
        return whole

    def _introduced(self, filler: Filler) -> Phrase:
        if isinstance(filler, Entity):
            bare = name(filler)
            if self.chance.happens(0.4):
                kind = description(Common("", filler.noun))
                return apposed(bare, kind) if self.chance.happens(0.5) else with_kind(filler, bare)
            return bare
        return description(filler) if filler.owner is None else self._owned(filler)

    def _again(self, filler: Filler) -> Phrase:
        alike = [f for f in self._known.values() if f.noun.form == filler.noun.form and gender(f) == gender(filler)]
        if isinstance(filler, Entity):
            if len(alike) == 1 and self.chance.happens(0.4):
                return description(Common("", filler.noun), "the")
            return name(filler, full=self.chance.happens(0.15))
        if filler.owner is not None:
            return self._owned(filler)
        return description(filler, "the")

    def _owned(self, filler: Common) -> Phrase:
        assert filler.owner is not None
        owner = self.refer(filler.owner, "possessive")
        if getattr(owner.parts[0], "tag", "") == "PRP$" or self.chance.happens(0.5):
            return possessive(owner, filler)
        return related(owner, filler)
