"""English inflection and derivation, and invented stems and names.

Invented verbs and nouns are regular, so that a character-based model can recognise a past tense or an agent noun of an
unseen stem. Names of people, places, organisations and works use the same syllables, so the form of a name says nothing
about its class.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from elmo_bench.mini.language.chance import Chance
from elmo_bench.mini.language.english import WORDS

IRREGULAR_VERBS = {
    lemma: forms for lemma, *forms in map(str.split, WORDS["irregular_verbs"].split(";"))
}  # lemma -> past, participle
IRREGULAR_PLURALS = WORDS["irregular_plurals"]
VOWELS = "aeiou"


def plural(noun: str) -> str:
    """baker -> bakers, fisherman -> fishermen, city -> cities."""
    if noun in IRREGULAR_PLURALS:
        return IRREGULAR_PLURALS[noun]
    return noun[:-2] + "en" if noun.endswith("man") else third(noun)


def third(verb: str) -> str:
    """mend -> mends, watch -> watches, carry -> carries, go -> goes."""
    if verb.endswith(("s", "x", "z", "ch", "sh", "o")):
        return verb + "es"
    if verb.endswith("y") and verb[-2] not in VOWELS:
        return verb[:-1] + "ies"
    return verb + "s"


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


def _suffixed(verb: str, suffix: str) -> str:
    """The verb with a suffix that begins with a vowel, with the usual spelling changes."""
    if verb.endswith("y") and verb[-2] not in VOWELS:
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
    """Makes words out of syllables, none of them in `taken` and all of them different."""

    ONSETS = "b br d dr f g gr h k kl l m n p pl r s sk st t tr v w".split()
    VOWELS = "a e i o u a e o".split()
    MIDDLES = "l m n r s t v d b k l n r ll nd rn st ld mb".split()
    NAME_ENDS = "n l r s m t nd rk ck th n l r".split()
    STEM_ENDS = "nt lk sk mp rn st nd ft lm rb ck sp lt ng".split()
    # Offensive strings that no word may contain.
    AVOIDED = tuple(
        (
            "nig fag naz rap sex tit kunt slut turd pen anal pis fuck suck dick dik cock kock wank sod bast porn arse "
            "shit piss puss bum tard hoe"
        ).split()
    )

    def __init__(self, chance: Chance, taken: set[str]):
        self._chance = chance
        self._taken = taken
        self.made: list[str] = []  # in the order in which they were made, in lower case

    def stem(self) -> str:
        """A lower-case stem of one or two syllables: drask, vemp, stallen."""
        if self._chance.happens(0.6):
            return self._new(lambda: self._part(self.ONSETS) + self._part(self.STEM_ENDS, ""))
        return self._new(lambda: self._part(self.ONSETS) + self._part(self.MIDDLES, "e") + self._pick("nr"))

    def name(self) -> str:
        """A capitalised name of two or three syllables: Tarvel, Skanedo."""
        syllables = 2 if self._chance.happens(0.7) else 3
        return self._new(lambda: self._name(syllables)).capitalize()

    def _name(self, syllables: int) -> str:
        start = self._part(self.ONSETS) + "".join(self._part(self.MIDDLES) for _ in range(syllables - 1))
        return start if self._chance.happens(0.3) else start + self._pick(self.NAME_ENDS)

    def _part(self, consonants: Sequence[str], vowel: str | None = None) -> str:
        """Consonants and a vowel, which is drawn if not given."""
        return self._pick(consonants) + (self._pick(self.VOWELS) if vowel is None else vowel)

    def _pick(self, items: Sequence[str]) -> str:
        return self._chance.one_of(items)

    def _new(self, make: Callable[[], str]) -> str:
        while True:
            word = make()
            if len(word) > 3 and word not in self._taken and not any(part in word for part in self.AVOIDED):
                self._taken.add(word)
                self.made.append(word)
                return word
