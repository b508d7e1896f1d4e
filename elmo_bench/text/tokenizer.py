"""Splits English text into words with their positions, and into sentences.

Words follow the Penn Treebank conventions of NLTK's word tokenizer (contractions split, punctuation separate), which
also tokenized the open biLM's text; words joined by hyphens, dashes and slashes are split too, so that an answer such
as "1,000" in "1,000-mile" is made of whole words.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import NamedTuple

_TITLES = "Mr|Mrs|Ms|Dr|Prof|Rev|Gen|Col|Lt|Sgt|Capt|Maj|Sen|Rep|Gov|Hon|St|Mt|Ft|Jr|Sr|Inc|Ltd|Co|Corp|vs|etc"
_WORD = re.compile(
    rf"""
    \b(?:{_TITLES})\.                          # Dr. and the like, where a word begins
    | (?:[^\W\d_]\.){{2,}}                             # U.S., a.m.
    | \d+(?:[.,:]\d+)+                         # 1,000  3.5  12:30
    | [^\W_]+?(?=[nN]['\u2019][tT]\b)               # do of don't
    | [nN]['\u2019][tT]\b
    | ['\u2019](?:s|re|ve|ll|d|m|S|RE|VE|LL|D|M)\b  # 's of dog's
    | [^\W_]+                                  # letters and digits of any script
    | \.{{2,}} | --+ | '' | ``
    | \S                                       # all else, one by one
    """,
    re.VERBOSE,
)
_CURLY = "\u201c\u201d\u201e\u201f", "\u2018\u2019\u201a\u201b"  # double, single
_STRAIGHT = str.maketrans("".join(_CURLY), "\"\"\"\"''''")  # one character for one, so that positions stay the same
_ENDS = {".", "!", "?", "..", "...", "…"}
_CLOSERS = {'"', "'", "''", ")", "]", "}"}


class Word(NamedTuple):
    """A word, with curly quotes made straight, and the character of the text at which it begins."""

    form: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.form)


def words(text: str) -> list[Word]:
    """The words of a text, in order; every character that is not white space belongs to one."""
    return [Word(match.group().translate(_STRAIGHT), match.start()) for match in _WORD.finditer(text)]


def sentence_lengths(words: Sequence[Word]) -> list[int]:
    """How many words each sentence has.

    A sentence ends at . ! ? and any closing quotes or brackets, if a space and then anything but a lower-case letter
    follow. The full stop of an abbreviation or an initial does not end a sentence.
    """
    lengths, begin = [], 0
    for i, word in enumerate(words):
        if word.form not in _ENDS or (word.form == "." and _initial(words, i)):
            continue
        stop = i + 1
        while stop < len(words) and words[stop].form in _CLOSERS and words[stop].start == words[stop - 1].end:
            stop += 1
        apart = stop < len(words) and words[stop].start > words[stop - 1].end
        if apart and not words[stop].form[0].islower() and stop > begin:
            lengths.append(stop - begin)
            begin = stop
    return [*lengths, len(words) - begin] if begin < len(words) else lengths


def _initial(words: Sequence[Word], i: int) -> bool:
    """Whether the full stop at i follows a single capital letter, as in "J. Smith"."""
    before = words[i - 1] if i else None
    return before is not None and len(before.form) == 1 and before.form.isupper() and before.end == words[i].start


def covering(words: Sequence[Word], start: int, end: int) -> tuple[int, int, bool]:
    """The first and last word that the characters [start, end) touch, and whether these are whole words.

    White space at either end of the characters is ignored.

    Raises:
        ValueError: no word is touched.
    """
    first = bisect_right(words, start, key=lambda word: word.start) - 1
    if first < 0 or words[first].end <= start:
        first += 1  # between two words
    last = bisect_left(words, end, key=lambda word: word.start) - 1
    if last < first:
        raise ValueError("no word")
    return first, last, words[first].start >= start and words[last].end <= end
