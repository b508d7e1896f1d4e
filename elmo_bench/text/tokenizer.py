"""Splits English text into words with their positions, and into sentences; makes rows of `predict`'s input.

Words follow the Penn Treebank conventions of NLTK's word tokenizer (contractions split, punctuation separate, O'Brien
and Qur'an whole), which also tokenized the open biLM's text, with three exceptions: cannot, gonna, more'n and the like
stay whole; 'Tis and 'Twas are an apostrophe and a word; and words joined by hyphens, dashes and slashes are split, so
that an answer such as "1,000" in "1,000-mile" consists of whole words. NLTK's tokenizer itself expects single sentences
and cuts decomposed accents; the tokenizers of the library `tokenizers` do not split contractions.

A text has the same words in Unicode's composed and decomposed forms (NFC and NFD).
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from elmo_bench.system.errors import UserError
from elmo_bench.text.tags import Span

_TITLES = "Mr|Mrs|Ms|Dr|Prof|Rev|Gen|Col|Lt|Sgt|Capt|Maj|Sen|Rep|Gov|Hon|St|Mt|Ft|Jr|Sr|Inc|Ltd|Co|Corp|vs|etc"
_ENDING = r"(?:s|re|ve|ll|d|m|S|RE|VE|LL|D|M)\b"
_MARK, _JOINER = "\U00010380", "\U00010381"  # Ugaritic letters, which English text does not contain
_MARKS = f"[{_MARK}{_JOINER}]*"


def _pattern(inside: str = "", after: str = "") -> re.Pattern[str]:
    """The pattern of a word; `inside` continues letters and digits, `after` follows a single character."""
    return re.compile(
        rf"""
        \b(?:{_TITLES})\.                          # Dr. and the like, where a word begins
        | (?:[^\W\d_]{_MARKS}\.){{2,}}                # U.S., a.m.
        | \d+(?:[.,:]\d+)+                         # 1,000  3.5  12:30
        | [^\W_]+?(?=[nN]['\u2019][tT]\b)               # do of don't
        | [nN]['\u2019][tT]\b
        | ['\u2019]{_ENDING}                        # 's of dog's
        | [^\W_]+{inside}                          # letters and digits of any script
        | \.{{2,}} | --+ | '' | ``
        | \S{after}                                # all else, one by one
        """,
        re.VERBOSE,
    )


_WHOLE = _pattern(
    inside=rf"(?:'(?!{_ENDING})[^\W_]+)*",  # O'Brien
    after=rf"(?:(?<=[\U0001F1E6-\U0001F1FF])[\U0001F1E6-\U0001F1FF])?{_MARKS}"  # a flag
    rf"(?:(?<={_JOINER})[^\w\s]{_MARKS})*",  # an emoji made of several
)
_APART = _pattern()
_CURLY = "\u201c\u201d\u201e\u201f", "\u2018\u2019\u201a\u201b"  # double, single
_STRAIGHT = str.maketrans("".join(_CURLY), "\"\"\"\"''''")  # one character each, so that positions stay the same
_ENDS = {".", "!", "?", "..", "...", "…"}
_CLOSERS = {'"', "'", "''", ")", "]", "}"}


class TextWord(NamedTuple):
    """A word, composed (NFC), with curly quotes made straight, and its characters [start, end) of the text."""

    form: str
    start: int
    end: int


def words(text: str, apart: bool = False) -> list[TextWord]:
    """The words of a text, in order; every character that is not white space belongs to one.

    Args:
        text: any text.
        apart: also split at apostrophes, decomposed accents and invisible characters inside a word, as the labelled
            texts of SQuAD and SNLI have been split so far.
    """
    if text.isascii():
        return [TextWord(match.group(), *match.span()) for match in (_APART if apart else _WHOLE).finditer(text)]
    if apart:
        return [TextWord(match.group().translate(_STRAIGHT), *match.span()) for match in _APART.finditer(text)]
    straight = seen = text.translate(_STRAIGHT)
    if marked := not _marks().isdisjoint(text):
        seen = "".join(map(_seen, straight))
    if marked or not unicodedata.is_normalized("NFC", text):
        spans = [match.span() for match in _WHOLE.finditer(seen)]
        return [TextWord(_form(straight[start:end]), start, end) for start, end in spans]
    return [TextWord(match.group(), *match.span()) for match in _WHOLE.finditer(straight)]


@cache
def _marks() -> frozenset[str]:
    """The characters that `_seen` replaces."""
    chars = map(chr, (*range(0x80, 0x20000), *range(0xE0000, 0xE01F0)))
    return frozenset(char for char in chars if _seen(char) != char)


def _seen(char: str) -> str:
    """A character as the pattern sees it: a modifier of the previous character counts as a letter."""
    if char in "\u200b\ufeff":  # zero-width spaces
        return " "
    if char == "\u200d":
        return _JOINER
    marks = unicodedata.category(char) in ("Mn", "Mc", "Me", "Cf") or "\U0001f3fb" <= char <= "\U0001f3ff"
    return _MARK if marks else char


def _form(piece: str) -> str:
    """A word without invisible characters such as soft hyphens, unless it consists of them."""
    visible = "".join(char for char in piece if unicodedata.category(char) != "Cf")
    return unicodedata.normalize("NFC", visible or piece)


def compounds(words: Sequence[TextWord], joints: Collection[str], clitics: bool) -> list[str]:
    """The words, with those connected by a hyphen or the like merged.

    Args:
        words: the words of a text.
        joints: words that connect their neighbours, if the neighbours touch them with a letter or digit.
        clitics: also connect to a word that begins with another character, such as 's.
    """
    joined: list[list[str]] = []
    for before, word, after in zip([None, *words], words, [*words[1:], None], strict=False):
        if before is not None and before.end == word.start:
            behind = before.form in joints and len(joined[-1]) > 1
            joint = word.form in joints and after is not None and after.start == word.end and after.form[0].isalnum()
            begun = before.form[-1].isalnum() and (clitics or joined[-1][0][0].isalnum())
            if behind or (joint and begun):
                joined[-1].append(word.form)
                continue
        joined.append([word.form])
    return ["".join(parts) for parts in joined]


def sentence_lengths(words: Sequence[TextWord]) -> list[int]:
    """The number of words of each sentence.

    A sentence ends at . ! ? and any closing quotes or brackets, if a space and then anything but a lower-case letter
    follow. The full stop of an abbreviation or an initial does not end a sentence.
    """
    lengths, begin = [], 0
    for i, word in enumerate(words):
        before = words[i - 1].form if i and words[i - 1].end == word.start else ""
        initial = word.form == "." and len(before) == 1 and before.isupper()  # as in "J. Smith"
        if word.form not in _ENDS or initial:
            continue
        stop = i + 1
        while stop < len(words) and words[stop].form in _CLOSERS and words[stop].start == words[stop - 1].end:
            stop += 1
        apart = stop < len(words) and words[stop].start > words[stop - 1].end
        if apart and not words[stop].form[0].islower() and stop > begin:
            lengths.append(stop - begin)
            begin = stop
    return [*lengths, len(words) - begin] if begin < len(words) else lengths


def covering(words: Sequence[TextWord], start: int, end: int) -> tuple[int, int, bool]:
    """The first and last word that overlap with the characters [start, end), and whether these are whole words.

    White space at either end of the characters is ignored.

    Raises:
        ValueError: no word overlaps.
    """
    first = bisect_right(words, start, key=lambda word: word.start) - 1
    if first < 0 or words[first].end <= start:
        first += 1  # between two words
    last = bisect_left(words, end, key=lambda word: word.start) - 1
    if last < first:
        raise ValueError("no word")
    return first, last, words[first].start >= start and words[last].end <= end


# Rows of `predict`'s input.

EXPECTED = 'expected {"tokens": [...]} or {"text": "..."}'


def tokens_of(raw: Mapping[str, Any]) -> list[str] | None:
    """The words of {"tokens": [...]}, unchanged, or separated by spaces as in CSV; None for {"text": "..."}."""
    if "tokens" not in raw:
        if not isinstance(raw.get("text"), str):
            raise UserError(EXPECTED)
        if not has_words(raw["text"]):
            raise UserError("the text has no words")
        return None
    tokens = raw["tokens"].split() if isinstance(raw["tokens"], str) else raw["tokens"]
    if not are_words(tokens):
        raise UserError('"tokens" must be a list of words')
    if not tokens:
        raise UserError("the sentence has no words")
    return tokens


def has_words(text: str) -> bool:
    """Whether a text has any word: white space and zero-width spaces (U+200B, U+FEFF) do not count."""
    return any(map(str.isalnum, text)) or bool(words(text))  # the first is fast


def are_words(value: Any) -> bool:
    """Whether this is a list of strings, none of them empty."""
    return isinstance(value, list) and all(isinstance(word, str) and word for word in value)


def sentence_of(raw: Mapping[str, Any]) -> dict[str, Any]:
    """A row with the "tokens" of one sentence; for text also the "text" and the "places" [start, end) of its words."""
    tokens = tokens_of(raw)
    if tokens is not None:
        return {"tokens": tokens}
    found = words(raw["text"])
    return {"tokens": [word.form for word in found], "text": raw["text"], "places": [[*word[1:]] for word in found]}


def document_of(text: str) -> dict[str, Any]:
    """A row with the "sentences" of a text, the "text" and the "places"; a newline also ends a sentence."""
    sentences, places = [], []
    for line in re.finditer(r"[^\r\n]+", text):
        found = words(line.group())
        places += [[line.start() + word.start, line.start() + word.end] for word in found]
        forms = iter(found)
        sentences += [[next(forms).form for _ in range(length)] for length in sentence_lengths(found)]
    return {"sentences": sentences, "text": text, "places": places}


def extent(row: Mapping[str, Any], tokens: list[str], start: int, end: int) -> dict[str, Any]:
    """The "text" of the words [start, end) of a row; for raw text the original spelling, with its "characters"."""
    if "places" not in row:
        return {"text": " ".join(tokens[start:end])}
    first, last = row["places"][start][0], row["places"][end - 1][1]
    return {"text": row["text"][first:last], "characters": [first, last]}


def labelled(row: Mapping[str, Any], span: Span) -> dict[str, Any]:
    """The "label" of a span of a row's "tokens", its words ["start", "end"), and their `extent`."""
    where = extent(row, row["tokens"], span.start, span.end)
    return {"label": span.type, "start": span.start, "end": span.end, **where}
