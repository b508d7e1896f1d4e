"""How texts refer to participants: by name, by name and noun (the baker Tarvel), by description, by pronoun."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from elmo_bench.mini.language.chance import Chance
from elmo_bench.mini.language.english import WORDS
from elmo_bench.mini.language.events import INDEFINITE, Common, Filler, fits, gender
from elmo_bench.mini.language.lexicon import Noun
from elmo_bench.mini.language.phrases import CLOSING, Phrase, Word, phrase
from elmo_bench.mini.language.world import Entity

PRONOUNS = {  # gender -> subject, object, possessive
    "female": ("she", "her", "her"),
    "male": ("he", "him", "his"),
    "": ("it", "it", "its"),
    "plural": ("they", "them", "their"),
}
CASES = {"subject": 0, "object": 1, "possessive": 2}
# Ways to name an entity, with weights: the full or the short name, a title, a noun before the name or after it.
NEWS = {"full": 25, "short": 55, "title": 6, "kind": 5, "apposition": 5}
PLAIN = {"full": 30, "short": 70}


def name(entity: Entity, full: bool = True) -> Phrase:
    """The name alone, as a named entity."""
    words = [Word(w, "CC" if w == "and" else "NNP") for w in (entity.name if full else entity.short)]
    return phrase(*words, entity=entity.type)


def noun(noun: Noun, plural: bool = False) -> Word:
    """The noun as a word, with its sense."""
    return Word(noun.plural, "NNS", noun.sense) if plural else Word(noun.form, "NN", noun.sense)


def description(filler: Common, determiner: str = "a") -> Phrase:
    """a young baker, the baker, three bakers, bakers."""
    start = phrase(determiner)
    if filler.number and determiner == "a":
        start = phrase() if filler.number == INDEFINITE else phrase(Word(filler.number, "CD"))
    return phrase(start, *_nominal(filler))


def possessive(owner: Phrase, filler: Common) -> Phrase:
    """Tarvel 's cart; her cart, if the owner is a pronoun."""
    mark = phrase() if getattr(owner.parts[0], "tag", "") == "PRP$" else phrase("'s")
    return phrase(phrase(owner, mark), *_nominal(filler))


def related(owner: Phrase, filler: Common) -> Phrase:
    """the mayor of Tarvel."""
    return phrase("the", *_nominal(filler), "of", owner)


def pronoun(gender: str, case: str) -> Phrase:
    """she, them, its."""
    return phrase(Word(PRONOUNS[gender][CASES[case]], "PRP$" if case == "possessive" else "PRP"))


def with_kind(entity: Entity, named: Phrase) -> Phrase:
    """the baker Tarvel, the village of Tarvel."""
    return phrase("the", noun(entity.noun), "of" if entity.noun.cls == "place" else "", named)


def apposed(entity: Entity, named: Phrase) -> Phrase:
    """Tarvel , a baker from Morven ,"""
    home = phrase("from" if entity.gender else "in", name(entity.home)) if entity.home else phrase()
    return phrase(named, ",", description(Common("", entity.noun)), home, CLOSING)


def mentioned(whole: Phrase, filler: Filler) -> Phrase:
    """The phrase as a mention of the filler."""
    return Phrase(whole.parts, whole.entity, filler.key, whole.roles)


def _nominal(filler: Common) -> list[Word]:
    return [*(Word(form, "JJ") for form in filler.adjectives), noun(filler.noun, bool(filler.number))]


class Voice:
    """Every sentence stands alone.

    Args:
        chance: the stream to draw from.
        ways: how often an entity is named in which way.
        definite: how often a description begins with "the".
    """

    def __init__(self, chance: Chance, ways: Mapping[str, int], definite: float = 0.0):
        self.chance, self.ways, self.definite = chance, dict(ways), definite

    def refer(self, filler: Filler, case: str = "object", classes: Sequence[str] = ()) -> Phrase:
        """A mention of the filler.

        Args:
            filler: the participant.
            case: subject, object or possessive.
            classes: what its place in the sentence is for; empty if anything goes.
        """
        if isinstance(filler, Entity):
            return mentioned(self.named(filler, self.chance.weighted(self.ways)), filler)
        if filler.owner is not None:
            return mentioned(self.owned(filler, name(filler.owner, full=self.chance.happens(0.3))), filler)
        the = self.chance.happens(self.definite)
        return mentioned(description(filler, "the" if the else "a"), filler)

    def named(self, entity: Entity, way: str) -> Phrase:
        bare = name(entity, full=way == "full")
        if way == "title" and entity.gender:  # the title is not part of the entity
            title = self.chance.one_of(WORDS["titles"][entity.gender].split())
            return phrase(Word(title, "NNP"), bare)
        if way == "kind":
            return with_kind(entity, bare)
        return apposed(entity, bare) if way == "apposition" else bare

    def owned(self, filler: Common, owner: Phrase) -> Phrase:
        assert filler.owner is not None
        by = mentioned(owner, filler.owner)
        if getattr(owner.parts[0], "tag", "") == "PRP$" or self.chance.happens(0.5):
            return possessive(by, filler)
        return related(by, filler)


class Discourse(Voice):
    """Introduces participants, and refers to known ones as she, Tarvel or the baker.

    A pronoun stands for the only participant of the sentence before that has its gender and that the verb allows in
    this place ("The firm sold a cart. It rusted."), or for the subject of that sentence. "The baker" stands for a named
    person only after "the baker Tarvel" or the like, and only if no other baker is there. `new_sentence` must be called
    before each sentence.

    Args:
        chance: the stream to draw from.
    """

    def __init__(self, chance: Chance):
        super().__init__(chance, PLAIN)
        self._known: list[Filler] = []
        self._announced: set[str] = set()  # keys of the entities whose noun was said
        self._before: list[tuple[Filler, str]] = []  # participants of the sentence before, with their cases
        self._spoken: list[tuple[Filler, str]] = []  # of this sentence

    def new_sentence(self) -> None:
        if self._spoken:
            self._before, self._spoken = self._spoken, []

    def refer(self, filler: Filler, case: str = "object", classes: Sequence[str] = ()) -> Phrase:
        clash = any(gender(other) == gender(filler) and other is not filler for other, _ in self._spoken)
        likely = 1.0 if case == "possessive" else 0.7
        if not clash and self._antecedent(gender(filler), classes) is filler and self.chance.happens(likely):
            whole = pronoun(gender(filler), case)
            self._spoken.append((filler, case))
        else:
            self._spoken.append((filler, case))
            whole = self._again(filler) if filler in self._known else self._introduced(filler)
        return mentioned(whole, filler)

    def _antecedent(self, wanted: str, classes: Sequence[str]) -> Filler | None:
        """Whom a pronoun here would stand for; None if that is not clear."""
        alike = [(filler, case) for filler, case in self._before if gender(filler) == wanted]
        fitting = [(filler, case) for filler, case in alike if not classes or fits(filler, classes)]
        if len({filler.key for filler, _ in fitting}) > 1:
            fitting = [(filler, case) for filler, case in fitting if case == "subject"]
        return fitting[0][0] if len({filler.key for filler, _ in fitting}) == 1 else None

    def _introduced(self, filler: Filler) -> Phrase:
        self._known.append(filler)
        if isinstance(filler, Common):
            return description(filler) if filler.owner is None else self._with_owner(filler)
        if self.chance.happens(0.5):
            return name(filler)
        self._announced.add(filler.key)
        return with_kind(filler, name(filler)) if self.chance.happens(0.5) else apposed(filler, name(filler))

    def _again(self, filler: Filler) -> Phrase:
        if isinstance(filler, Common):
            return description(filler, "the") if filler.owner is None else self._with_owner(filler)
        alike = [known for known in self._known if known.noun.form == filler.noun.form]
        if filler.key in self._announced and len(alike) == 1 and self.chance.happens(0.6):
            return description(Common("", filler.noun), "the")
        return name(filler, full=self.chance.happens(0.15))

    def _with_owner(self, filler: Common) -> Phrase:
        assert filler.owner is not None
        return self.owned(filler, self.refer(filler.owner, "possessive"))
