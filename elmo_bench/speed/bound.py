"""The bound of speed: the best rate of a matrix product on a device, and the operations that a batch needs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor
from torch.utils.benchmark import timer

from elmo_bench.bilm.encoder import SENTENCE_BEGIN, SENTENCE_END, character_table, used_characters
from elmo_bench.bilm.options import Options
from elmo_bench.speed.measuring import in_turn

# (rows, in, out): square ones, and the biLM's own (highway, projections' gradients).
SHAPES = ((1024, 1024, 1024), (2048, 2048, 2048), (512, 2048, 4096), (1280, 128, 4096))
LARGE = (8192, 8192, 8192)  # too much for a CPU, and what a GPU is fastest at
REPEATS = 7
CPU = torch.device("cpu")


@torch.no_grad()
def best_product(
    place: torch.device = CPU,
    dtype: torch.dtype = torch.float32,
    shapes: Sequence[tuple[int, int, int]] | None = None,
    clock: Callable[[], float] = timer,
) -> float:
    """Operations a second of the fastest of some matrix products, each repeated.

    Args:
        dtype: of the matrices; float32 without TF32.
        shapes: rows, in, out of each product; None: those of the device.
        clock: `time.process_time` for one thread on a busy machine.
    """

    def product(rows: int, inputs: int, outputs: int) -> Callable[[], Tensor]:
        x, y = torch.randn(rows, inputs, device=place), torch.randn(inputs, outputs, device=place)
        return partial(torch.mm, x.to(dtype), y.to(dtype))

    shapes = shapes or (SHAPES if place.type == "cpu" else (*SHAPES, LARGE))
    taken = in_turn({shape: product(*shape) for shape in shapes}, REPEATS, clock)
    return max(2 * math.prod(shape) / min(seconds) for shape, seconds in taken.items())


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
    n, p, k = options.char_cnn.n_filters, options.lstm.projection_dim, options.char_cnn.max_characters_per_token
    used = used_characters(character_table(words, k))
    total = 0.0
    for width, number in options.char_cnn.filters:
        windows = sum(min(int(characters) + 1, k - width + 1) for characters in used)
        total += 2 * windows * width * options.char_cnn.embedding.dim * number
    return total + len(words) * (options.char_cnn.n_highway * 4 * n * n + (2 * n * p if n != p else 0))


def lstm_flops(options: Options) -> float:
    """For one token, in all layers and both directions: input, recurrent and projection products."""
    p, c = options.lstm.projection_dim, options.lstm.dim
    return 2 * options.lstm.n_layers * 2 * (2 * p * 4 * c + c * p)
