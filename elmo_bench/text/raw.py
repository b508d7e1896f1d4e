"""The words of a line of `predict`'s input, and the characters of its text at which they stand."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from elmo_bench.system.errors import UserError
from elmo_bench.text.tags import Span
from elmo_bench.text.tokenizer import sentence_lengths, words

EXPECTED = 'expected {"tokens": [...]} or {"text": "..."}'


def tokens_of(raw: Mapping[str, Any]) -> list[str] | None:
    """The words of {"tokens": [...]}, as they are, or between spaces as in CSV; None for {"text": "..."}."""
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
    """Whether a text has any: one of white space and of spaces without a width (U+200B, U+FEFF) has none."""
    return any(map(str.isalnum, text)) or bool(words(text))  # the first finds one fast


def are_words(value: Any) -> bool:
    """Whether this is a list of strings, none of them empty."""
    return isinstance(value, list) and all(isinstance(word, str) and word for word in value)


def sentence_of(raw: Mapping[str, Any]) -> dict[str, Any]:
    """A row with the "tokens" of one sentence; of text also the "text" and the "places" [start, end) of its words."""
    tokens = tokens_of(raw)
    if tokens is not None:
        return {"tokens": tokens}
    found = words(raw["text"])
    return {"tokens": [word.form for word in found], "text": raw["text"], "places": [[*word[1:]] for word in found]}


def document_of(text: str) -> dict[str, Any]:
    """A row with the "sentences" of a text, the "text" and the "places"; a sentence also ends where a line does."""
    sentences, places = [], []
    for line in re.finditer(r"[^\r\n]+", text):
        found = words(line.group())
        places += [[line.start() + word.start, line.start() + word.end] for word in found]
        forms = iter(found)
        sentences += [[next(forms).form for _ in range(length)] for length in sentence_lengths(found)]
    return {"sentences": sentences, "text": text, "places": places}


def extent(row: Mapping[str, Any], tokens: list[str], start: int, end: int) -> dict[str, Any]:
    """The "text" of the words [start, end) of a row; if it was made of text: as it stands there, and "characters"."""
    if "places" not in row:
        return {"text": " ".join(tokens[start:end])}
    first, last = row["places"][start][0], row["places"][end - 1][1]
    return {"text": row["text"][first:last], "characters": [first, last]}


def labelled(row: Mapping[str, Any], span: Span) -> dict[str, Any]:
    """The "label" of a span of a row's "tokens", its words ["start", "end"), and their `extent`."""
    where = extent(row, row["tokens"], span.start, span.end)
    return {"label": span.type, "start": span.start, "end": span.end, **where}
