"""The tables of the language, English inflection and derivation, and invented stems and names.

Invented words are regular, so that a character-based model can recognise a past tense or a plural of an unseen stem.
Names of people, places, organisations and works use the same syllables, so the form of a name says nothing about its
class.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from elmo_bench.mini.language.chance import Chance
from elmo_bench.system.storage import yaml_text


def table(name: str) -> dict[str, Any]:
    """The tables of a file in this folder. A string is a list of words: use `str.split`."""
    content: Any = OmegaConf.to_container(yaml_text.read(Path(__file__).with_name(f"{name}.yaml")))
    return content


WORDS, GRAMMAR, REVIEWS = map(table, ("words", "grammar", "reviews"))
TAGS = {word: tag for tag, words in WORDS["tags"].items() for word in words.split()}
THINGS = tuple(WORDS["things"].split())
SYLLABLES = {kind: parts.split() for kind, parts in WORDS["syllables"].items()}


@cache
def inflected(word: str, tag: str) -> str:
    """The form of a lemma that has this tag: mend, VBD -> mended; one without endings, such as JJ, is the lemma.

    RB is the adverb of an adjective. Irregular forms come from the table `irregular`, the others from `endings`.
    """
    if tag == "VBN" and word not in WORDS["irregular"]["VBN"]:
        tag = "VBD"
    if word in WORDS["irregular"].get(tag, ()):
        return WORDS["irregular"][tag][word]
    for pattern, ending in WORDS["endings"].get(tag, {}).items():
        if re.search(pattern, word):
            return re.sub(pattern, ending, word)
    return word


def forms(word: str) -> set[str]:
    """A lemma with all that it can become."""
    return {word, *(inflected(word, tag) for tag in WORDS["endings"])}


def article(following: str) -> str:
    """The indefinite article before a word."""
    return "an" if following[0].lower() in "aeiou" and not following.lower().startswith("uni") else "a"


def capitalised(text: str) -> str:
    """With a capital as its first letter, wherever that stands: (2 the) -> (2 The)."""
    return re.sub("[A-Za-z]", lambda letter: letter[0].upper(), text, count=1)


class Inventor(Chance):
    """Makes words out of syllables (the table `syllables`), all of them different. Neither they nor their other forms
    are in `taken` or offensive.

    Args:
        chance: the stream to draw from.
        taken: words that are not made.
    """

    def __init__(self, chance: Chance, taken: set[str]):
        super().__init__(chance)
        self._taken = set(taken)
        self.made: list[str] = []  # in the order in which they were made, in lower case

    def stem(self, suffix: str = "") -> str:
        """A lower-case stem of one or two syllables, with the suffix if any: drask, vemp, stallen, gundous."""
        ending = "stem_ends" if self.happens(0.6) else "middles e liquids"
        return self._new(f"onsets vowels {ending}", suffix)

    def name(self) -> str:
        """A capitalised name of two or three syllables: Tarvel, Skanedo."""
        return self._new("onsets vowels" + " middles vowels" * (1 if self.happens(0.7) else 2)).capitalize()

    def _new(self, pattern: str, suffix: str | None = None) -> str:
        """A word of parts of these kinds; a name, without suffix, may have an ending."""
        while True:
            parts = re.sub(r"\w\w+", lambda kind: self.one_of(SYLLABLES[kind[0]]), pattern)
            stem = parts.replace(" ", "")
            if suffix is None and not self.happens(0.3):
                stem += self.one_of(SYLLABLES["name_ends"])
            made = stem + (suffix or "")
            if len(stem) > 3 and not any(
                form in self._taken or any(part in form for part in SYLLABLES["avoided"])
                for form in {stem, *forms(made)}
            ):
                self._taken |= {stem, made}
                self.made.append(made)
                return made
