"""The floating-point operations that a batch needs, whatever the implementation."""

from __future__ import annotations

from collections.abc import Sequence

from elmo_bench.bilm.characters import SENTENCE_BEGIN, SENTENCE_END, character_table, used_characters
from elmo_bench.bilm.options import Options


def batch_flops(options: Options, sentences: Sequence[Sequence[str]]) -> float:
    """The fewest operations for a batch: each distinct word encoded once, one LSTM step per token, no padding.

    The sentence marks count too: they are words to encode and steps of the LSTMs. Pointwise operations, a few per cent,
    are left out, which makes the bound a little stricter.
    """
    words = {word for sentence in sentences for word in sentence}
    if sentences:
        words |= {SENTENCE_BEGIN, SENTENCE_END}
    steps = sum(len(sentence) + 2 for sentence in sentences)
    return encoder_flops(options, sorted(words)) + steps * lstm_flops(options)


def encoder_flops(options: Options, words: Sequence[str]) -> float:
    """Convolutions over the windows with a character, and over one of padding only; highways; projection."""
    n, p, k = options.n_filters, options.projection_dim, options.max_characters
    used = used_characters(character_table(words, k))
    total = 0.0
    for width, number in options.filters:
        windows = sum(min(int(characters) + 1, k - width + 1) for characters in used)
        total += 2 * windows * width * options.char_dim * number
    return total + len(words) * (options.n_highway * 4 * n * n + (2 * n * p if n != p else 0))


def lstm_flops(options: Options) -> float:
    """For one token, in all layers and both directions: input, recurrent and projection products."""
    p, c = options.projection_dim, options.dim
    return 2 * options.n_layers * 2 * (2 * p * 4 * c + c * p)
