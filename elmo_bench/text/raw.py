"""The words of a sentence in the input of `predict`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from elmo_bench.system.errors import UserError


def words_of(
    raw: Mapping[str, Any],
    split: Callable[[str], list[str]] = str.split,
    expected: str = 'expected {"tokens": [...]} or {"text": "words between spaces"}',
) -> list[str]:
    """The words of {"tokens": [...]}, or of {"text": "..."} as `split` cuts it.

    Args:
        raw: an object with one of the two keys.
        split: splits the text; by default at white space only.
        expected: the error message if neither key is there.

    Raises:
        UserError: neither key, anything but words, no words at all.
    """
    if "tokens" in raw:
        tokens = raw["tokens"]
    elif isinstance(raw.get("text"), str):
        tokens = split(raw["text"])
    else:
        raise UserError(expected)
    if not are_words(tokens):
        raise UserError('"tokens" must be a list of words')
    if not tokens:
        raise UserError("the sentence has no words")
    return tokens


def are_words(value: Any) -> bool:
    """Whether this is a list of strings, none of them empty."""
    return isinstance(value, list) and all(isinstance(word, str) and word for word in value)
