"""Character ids as in the released biLMs (bilm-tf's `UnicodeCharsVocabulary`).

A token becomes its UTF-8 bytes between a begin and an end mark, truncated and padded to a fixed length. Every id is
shifted by one, so that 0 can mean "no token".
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

BOS, EOS = 256, 257  # begin and end of sentence: tokens of one "character"
WORD_BEGIN, WORD_END, PADDING = 258, 259, 260
N_CHARACTERS = 262  # 0 (masking) and 261 shifted ids

SENTENCE_BEGIN, SENTENCE_END = "<S>", "</S>"  # the release's names; a token with this spelling is read as the mark
MARKS = {SENTENCE_BEGIN: BOS, SENTENCE_END: EOS}


def character_table(tokens: Iterable[str], length: int = 50) -> np.ndarray:
    """Ids of tokens.

    Args:
        tokens: any strings; what UTF-8 cannot encode (lone surrogates) is left out, as in the release.
        length: ids per token, including marks and padding.

    Returns:
        (n, length) int16, never 0.
    """
    tokens = list(tokens)
    encoded = [b"?" if token in MARKS else token.encode("utf-8", "ignore")[: length - 2] for token in tokens]
    lengths = np.fromiter(map(len, encoded), dtype=np.int64, count=len(encoded))
    rows = np.repeat(np.arange(len(encoded)), lengths)
    places = np.arange(len(rows)) - np.repeat(np.cumsum(lengths) - lengths, lengths)  # within the token
    ids = np.full((len(encoded), length), PADDING + 1, dtype=np.int16)
    ids[:, 0] = WORD_BEGIN + 1
    ids[rows, 1 + places] = np.frombuffer(b"".join(encoded), dtype=np.uint8).astype(np.int16) + 1
    ids[np.arange(len(encoded)), 1 + lengths] = WORD_END + 1
    for row, token in enumerate(tokens):
        if token in MARKS:
            ids[row, 1] = MARKS[token] + 1
    return ids


def used_characters(ids: np.ndarray) -> np.ndarray:
    """(n,) number of ids in each row that are not padding, including marks."""
    return (ids != PADDING + 1).sum(axis=1)
