"""How texts refer to participants: by name, by name and noun (the baker Tarvel), by description, by pronoun."""

from __future__ import annotations

from collections.abc import Sequence

from elmo_bench.mini.language.chance import Chance
from elmo_bench.mini.language.phrases import CLOSING, ENTITY, MENTION, Phrase, Word, phrase
from elmo_bench.mini.language.words import GRAMMAR, WORDS, inflected
from elmo_bench.mini.language.world import INDEFINITE, TYPES, Participant


def name(entity: Participant, full: bool = True) -> Phrase:
    """The name alone, as a named entity."""
    words = [Word(word, "CC" if word == "and" else "NNP") for word in (entity.name if full else entity.short)]
    return phrase(*words).marked(ENTITY, TYPES[entity.noun.cls])


def _nominal(filler: Participant) -> Phrase:
    """young baker, bakers."""
    noun, tag = filler.noun, "NNS" if filler.number else "NN"
    head = Word(inflected(noun.form, tag), tag, noun.sense)
    return phrase(*(Word(form, "JJ") for form in filler.adjectives), head)


def description(filler: Participant, determiner: str = "a") -> Phrase:
    """a young baker, the baker, three bakers, bakers."""
    if not filler.number or determiner != "a":
        return phrase(determiner, _nominal(filler))
    return phrase("" if filler.number == INDEFINITE else Word(filler.number, "CD"), _nominal(filler))


def possessive(owner: Phrase, filler: Participant) -> Phrase:
    """Tarvel 's cart; her cart, if the owner is a pronoun."""
    return phrase(phrase(owner, "" if _is_pronoun(owner) else "'s"), _nominal(filler))


def _is_pronoun(owner: Phrase) -> bool:
    return getattr(owner.parts[0], "tag", "") == "PRP$"


def pronoun(filler: Participant, case: str) -> Phrase:
    """she, them, its."""
    return phrase(Word(GRAMMAR["pronouns"][filler.pronoun][case], "PRP$" if case == "possessive" else "PRP"))


def _with_kind(entity: Participant, named: Phrase) -> Phrase:
    """the baker Tarvel, the village of Tarvel."""
    return phrase("the", _nominal(entity), "of" if entity.noun.cls == "place" else "", named)


def _apposed(entity: Participant, named: Phrase) -> Phrase:
    """Tarvel , a baker from Morven ,"""
    home = phrase("from" if entity.gender else "in", name(entity.home)) if entity.home else ""
    return phrase(named, ",", description(entity), home, CLOSING)


class Voice:
    """Every sentence stands alone.

    Args:
        chance: the stream to draw from.
        naming: how often an entity is named in which way: a row of the table.
        definite: how often a description begins with "the".
    """

    def __init__(self, chance: Chance, naming: str = "plain", definite: float = 0.0):
        self.chance, self.ways, self.definite = chance, GRAMMAR["naming"][naming], definite

    def refer(self, filler: Participant, case: str = "object", classes: Sequence[str] = ()) -> Phrase:
        """A mention of the filler.

        Args:
            filler: the participant.
            case: subject, object or possessive.
            classes: what its place in the sentence is for; empty if anything goes.
        """
        return self.wording(filler, case, classes).marked(MENTION, filler)

    def wording(self, filler: Participant, case: str = "object", classes: Sequence[str] = ()) -> Phrase:
        """The words of a mention."""
        chance = self.chance
        if filler.owner:
            return self._owned(filler, name(filler.owner, full=chance.happens(0.3)).marked(MENTION, filler.owner))
        if not filler.name:
            return description(filler, "the" if chance.happens(self.definite) else "a")
        way = chance.weighted(self.ways)
        bare = name(filler, full=way == "full")
        if way == "title" and filler.gender:  # the title is not part of the entity
            return phrase(Word(chance.one_of(WORDS["titles"][filler.gender].split()), "NNP"), bare)
        told = {"kind": _with_kind, "apposition": _apposed}.get(way)
        return told(filler, bare) if told else bare

    def _owned(self, filler: Participant, owner: Phrase) -> Phrase:
        """Tarvel 's mayor, the mayor of Tarvel."""
        if _is_pronoun(owner) or self.chance.happens(0.5):
            return possessive(owner, filler)
        return phrase("the", _nominal(filler), "of", owner)


class Discourse(Voice):
    """Introduces participants, and refers to known ones as she, Tarvel or the baker.

    A pronoun stands for the only participant of the sentence before that has its gender and that the verb allows in
    this place ("The firm sold a cart. It rusted."), or for the subject of that sentence; later in its own sentence, it
    stands for the only one of its gender. "The baker" stands for a named person only after "the baker Tarvel" or the
    like, and only if no other baker is there. `new_sentence` must be called before each sentence.

    Args:
        chance: the stream to draw from.

    Attributes:
        clear: whether a reader knows, so far in this sentence, who is meant.
    """

    def __init__(self, chance: Chance):
        super().__init__(chance)
        self._known: dict[Participant, bool] = {}  # those so far, and whether the noun of a name was said
        self._before: list[tuple[Participant, str]] = []  # participants of the sentence before, with their cases
        self._spoken: list[tuple[Participant, str]] = []  # of this sentence

    def new_sentence(self) -> None:
        if self._spoken:
            self._before, self._spoken = self._spoken, []
        self._earlier, self.clear = dict(self._known), True

    def take_back(self) -> None:
        """As if this sentence had not been said."""
        self._known, self._spoken, self.clear = dict(self._earlier), [], True

    def wording(self, filler: Participant, case: str = "object", classes: Sequence[str] = ()) -> Phrase:
        same = {other for other, _ in self._spoken if other.pronoun == filler.pronoun}
        again = filler in same
        certain = same <= {filler} and (again or self._antecedent(filler.pronoun, classes) is filler)
        self._spoken.append((filler, case))
        if certain and self.chance.happens(1.0 if again or case == "possessive" else 0.7):
            return pronoun(filler, case)
        known = filler in self._known
        self.clear &= not again and not self._is_vague(filler, known)
        self._known.setdefault(filler, False)
        if filler.name:
            return self._again(filler) if known else self._introduced(filler, case)
        if filler.owner is not None:
            return self._owned(filler, self.refer(filler.owner, "possessive"))
        return description(filler, "the" if known else "a")

    def _antecedent(self, wanted: str, classes: Sequence[str]) -> Participant | None:
        """Whom a pronoun here would stand for; None if that is not clear."""
        alike = {filler for filler, _ in self._before if filler.pronoun == wanted}
        fitting = {filler for filler in alike if not classes or filler.fits(classes)}
        for found in (fitting, {filler for filler in fitting if (filler, "subject") in self._before}):
            if len(found) == 1:
                return found.pop()
        return None

    def _is_vague(self, filler: Participant, known: bool) -> bool:
        """Whether its short name or its description fits another known participant."""
        others = [other for other in self._known if other is not filler]
        if filler.name:
            return any(other.short == filler.short for other in others)
        alike = [other for other in others if other.noun.form == filler.noun.form]
        return (known or filler.owner is not None) and any(self._fits(filler, other) for other in alike)

    def _fits(self, filler: Participant, other: Participant) -> bool:
        """Whether a description of the filler is true of another one with its noun."""
        if other.name:
            return self._known[other] and not filler.adjectives and filler.owner is None
        same = other.owner is filler.owner and bool(other.number) == bool(filler.number)
        return same and {*filler.adjectives} <= {*other.adjectives}

    def _introduced(self, entity: Participant, case: str) -> Phrase:
        if case == "possessive" or self.chance.happens(0.5):
            return name(entity)
        self._known[entity] = True
        return (_with_kind if self.chance.happens(0.5) else _apposed)(entity, name(entity))

    def _again(self, entity: Participant) -> Phrase:
        alike = [known for known in self._known if known.noun.form == entity.noun.form]
        if self._known[entity] and len(alike) == 1 and self.chance.happens(0.6):
            return description(entity, "the")
        return name(entity, full=self.chance.happens(0.15))
