"""Noun phrases for participants: names, names with a noun (the baker Tarvel), descriptions, pronouns."""

from __future__ import annotations

from typing import Protocol

from elmo_bench.mini.language.events import BARE, Common, Filler
from elmo_bench.mini.language.lexicon import Noun
from elmo_bench.mini.language.phrases import CLOSING, Phrase, Word, phrase
from elmo_bench.mini.language.world import Entity

PRONOUNS = {  # gender -> subject, object, possessive
    "female": ("she", "her", "her"),
    "male": ("he", "him", "his"),
    "": ("it", "it", "its"),
    "plural": ("they", "them", "their"),
    "I": ("I", "me", "my"),
    "you": ("you", "you", "your"),
}
CASES = {"subject": 0, "object": 1, "possessive": 2}


class Voice(Protocol):
    """How a kind of text names its participants."""

    def refer(self, filler: Filler, case: str = "object") -> Phrase: ...

    def agreement(self, filler: Filler) -> str:
        """`singular`, `plural` or `I`: how a verb agrees with the filler as subject."""
        ...


def name(entity: Entity, full: bool = True) -> Phrase:
    """The name alone, as a named entity."""
    words = [Word(w, "CC" if w == "and" else "NNP") for w in (entity.name if full else entity.short)]
    return phrase(*words, entity=entity.type)


def noun(noun: Noun, plural: bool = False) -> Word:
    """The noun as a word, with its sense."""
    return Word(noun.plural, "NNS", noun.sense) if plural else Word(noun.form, "NN", noun.sense)


def adjective(form: str) -> Phrase | Word:
    """An adjective; a demonym is a named entity of its own: a Tarvelian baker."""
    return phrase(Word(form, "JJ"), entity="MISC") if form[0].isupper() else Word(form, "JJ")


def description(filler: Common, determiner: str = "a") -> Phrase:
    """a young baker, the baker, three bakers, bakers."""
    start = phrase(determiner)
    if filler.number and determiner == "a":
        start = phrase() if filler.number == BARE else Word(filler.number, "CD")
    return phrase(start, *map(adjective, filler.adjectives), noun(filler.noun, bool(filler.number)))


def possessive(owner: Phrase, filler: Common) -> Phrase:
    """Tarvel 's cart; her cart, if the owner is a pronoun."""
    mark = () if owner.parts and getattr(owner.parts[0], "tag", "") == "PRP$" else (phrase("'s"),)
    return phrase(phrase(owner, *mark), *map(adjective, filler.adjectives), noun(filler.noun, bool(filler.number)))


def related(owner: Phrase, filler: Common) -> Phrase:
    """the mayor of Tarvel."""
    return phrase("the", *map(adjective, filler.adjectives), noun(filler.noun, bool(filler.number)), "of", owner)


def pronoun(gender: str, case: str) -> Phrase:
    """she, them, its; I and you are genders here."""
    form = PRONOUNS[gender][CASES[case]]
    return phrase(Word(form, "PRP$" if case == "possessive" else "PRP"))


def with_kind(entity: Entity, named: Phrase) -> Phrase:
    """the baker Tarvel, the village of Tarvel."""
    of = phrase("of") if entity.noun.cls == "place" else phrase()
    return phrase("the", noun(entity.noun), of, named)


def titled(entity: Entity, title: str) -> Phrase:
    """Mrs. Tarvel; the title is not part of the entity."""
    return phrase(Word(title, "NNP"), name(entity, full=False))


def apposed(named: Phrase, explanation: Phrase) -> Phrase:
    """Tarvel , a baker from Morven ,"""
    return phrase(named, ",", explanation, CLOSING)


def mentioned(whole: Phrase, filler: Filler) -> Phrase:
    """The phrase as a mention of the filler."""
    return Phrase(whole.parts, whole.entity, filler.key, whole.roles)
