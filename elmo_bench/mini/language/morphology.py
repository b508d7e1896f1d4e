"""English inflection and derivation, and invented stems and names.

Invented verbs and nouns are regular, so that a character-based model can recognise a past tense or an agent noun of an
unseen stem. Names of people, places, organisations and works use the same syllables, so the form of a name says nothing
about its class.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from elmo_bench.mini.language.chance import Chance
from elmo_bench.mini.language.english import WORDS

IRREGULAR_VERBS = {lemma: forms for lemma, *forms in map(str.split, WORDS["irregular_verbs"].split(";"))}
SYLLABLES = {kind: parts.split() for kind, parts in WORDS["syllables"].items()}
VOWELS = "aeiou"


def plural(noun: str) -> str:
    """baker -> bakers, fisherman -> fishermen, city -> cities."""
    regular = noun[:-2] + "en" if noun.endswith("man") else third(noun)
    return WORDS["irregular_plurals"].get(noun, regular)


def third(verb: str) -> str:
    """mend -> mends, watch -> watches, carry -> carries, go -> goes."""
    if verb.endswith(("s", "x", "z", "ch", "sh", "o")):
        return verb + "es"
    return verb[:-1] + "ies" if _ends_in_y(verb) else verb + "s"


def past(verb: str) -> str:
    """mend -> mended, scrub -> scrubbed, go -> went."""
    return IRREGULAR_VERBS[verb][0] if verb in IRREGULAR_VERBS else _suffixed(verb, "ed")


def participle(verb: str) -> str:
    """mend -> mended, go -> gone."""
    return IRREGULAR_VERBS[verb][1] if verb in IRREGULAR_VERBS else _suffixed(verb, "ed")


def gerund(verb: str) -> str:
    """mend -> mending, scrub -> scrubbing, make -> making."""
    return _suffixed(verb, "ing")


def adverb(adjective: str) -> str:
    """quick -> quickly, happy -> happily, simple -> simply."""
    if adjective.endswith("y"):
        return adjective[:-1] + "ily"
    return adjective[:-1] + "y" if adjective.endswith("le") else adjective + "ly"


def article(following: str) -> str:
    """The indefinite article before a word."""
    return "an" if following[0].lower() in VOWELS and not following.lower().startswith("uni") else "a"


def capitalised(text: str) -> str:
    """With a capital as its first letter, wherever that stands: (2 the) -> (2 The)."""
    return re.sub("[A-Za-z]", lambda letter: letter[0].upper(), text, count=1)


def _ends_in_y(verb: str) -> bool:
    return verb.endswith("y") and verb[-2] not in VOWELS


def _suffixed(verb: str, suffix: str) -> str:
    """The verb with a suffix that begins with a vowel, with the usual spelling changes."""
    if _ends_in_y(verb):
        return (verb if suffix == "ing" else verb[:-1] + "i") + suffix
    if verb.endswith("e"):
        return (verb if verb.endswith("ee") and suffix == "ing" else verb[:-1]) + suffix
    return (verb + verb[-1] if _doubles(verb) else verb) + suffix


def _doubles(verb: str) -> bool:
    """Whether the final consonant is doubled: after a single vowel as in scrub and drag, and in admit or refer."""
    if verb in ("admit", "outbid"):
        return True
    one_vowel = len([letter for letter in verb if letter in VOWELS]) == 1 and verb[0] not in VOWELS
    return len(verb) > 2 and one_vowel and verb[-2] in VOWELS and verb[-1] not in VOWELS + "wxy"


class Inventor:
    """Makes words out of syllables (the table `syllables`), none of them in `taken` and all of them different.

    Args:
        chance: the stream to draw from.
        taken: words that are not made.
    """

    def __init__(self, chance: Chance, taken: set[str]):
        self._chance, self._taken = chance, set(taken)
        self.made: list[str] = []  # in the order in which they were made, in lower case

    def stem(self) -> str:
        """A lower-case stem of one or two syllables: drask, vemp, stallen."""
        if self._chance.happens(0.6):
            return self._new(lambda: self._some("onsets", "vowels", "stem_ends"))
        return self._new(lambda: self._some("onsets", "vowels", "middles") + "e" + self._chance.one_of("nr"))

    def name(self) -> str:
        """A capitalised name of two or three syllables: Tarvel, Skanedo."""
        middles = ["middles", "vowels"] * (1 if self._chance.happens(0.7) else 2)

        def make() -> str:
            start = self._some("onsets", "vowels", *middles)
            return start if self._chance.happens(0.3) else start + self._some("name_ends")

        return self._new(make).capitalize()

    def _some(self, *kinds: str) -> str:
        """Parts of a word, one of each kind."""
        return "".join(self._chance.one_of(SYLLABLES[kind]) for kind in kinds)

    def _new(self, make: Callable[[], str]) -> str:
        while len(word := make()) <= 3 or word in self._taken or any(part in word for part in SYLLABLES["avoided"]):
            pass
        self._taken.add(word)
        self.made.append(word)
        return word
