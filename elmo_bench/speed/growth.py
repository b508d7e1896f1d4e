"""How costs grow: CPU seconds at four sizes, each twice the one before, and the slope of their logarithms.

A slope of 1 is a cost that grows as the size does; a fixed part makes it smaller, and work repeated for nothing larger.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable
from functools import partial
from itertools import cycle
from timeit import timeit
from typing import Any

import numpy as np

from elmo_bench.bilm import BiLM
from elmo_bench.configuration import pages, schema
from elmo_bench.identity.identity import Identity
from elmo_bench.layers.bilm import BilmLayers
from elmo_bench.layers.cache import ActivationCache
from elmo_bench.speed.inputs import Sentence, generated

SIZES = 4
ROUNDS = 3


def measured(bilm: BiLM, least: int) -> dict[str, Any]:
    """Of each size: its values, CPU seconds (the least of some rounds) and the slope.

    "tokens" are computed by `encode` in sentences as long as English ones; "words a sentence" in sentences of equal
    length, as many of each; "vocabulary" counts distinct words to encode; "corpus, sentences" are written into the
    cache and read once; "points of a sweep" are composed and given their ids.
    """
    sentences = generated(least << SIZES, random.Random(3))
    lengths = [sum(map(len, sentences[: least << i])) for i in range(SIZES)]
    ways = {
        "tokens": (lengths, lambda tokens: _encode(bilm, sentences[: least << lengths.index(tokens)])),
        "words a sentence": (_doubled(8), lambda words: _encode(bilm, _of_length(sentences, words, least))),
        "vocabulary": (_doubled(8 * least), lambda words: _encode(bilm, [[f"word{i}" for i in range(words)]])),
        "corpus, sentences": (_doubled(least), lambda number: _cached(bilm, sentences[:number])),
        "points of a sweep": (_doubled(max(least // 2, 1)), _points),
    }
    return {name: _grown(sizes, way) for name, (sizes, way) in ways.items()}


def slope(sizes: list[int], seconds: list[float]) -> float:
    """The slope of the straight line through the logarithms, by least squares."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def _doubled(least: int) -> list[int]:
    return [least << i for i in range(SIZES)]


def _grown(sizes: list[int], way: Callable[[int], Any]) -> dict[str, Any]:
    way(sizes[0])  # a warm-up
    clock = time.process_time  # of all threads: other programs on the machine count little
    rounds = [[timeit(partial(way, size), timer=clock, number=1) for size in sizes] for _ in range(ROUNDS)]
    seconds = [min(times) for times in zip(*rounds, strict=True)]
    return {"sizes": sizes, "seconds": seconds, "slope": slope(sizes, seconds)}


def _encode(bilm: BiLM, sentences: list[Sentence]) -> None:
    bilm.forget_words()
    bilm.encode(sentences)


def _of_length(sentences: list[Sentence], words: int, number: int) -> list[Sentence]:
    """A number of sentences of this length, from the words of others."""
    flat = [word for sentence in sentences for word in sentence]
    return [[flat[(i * words + k) % len(flat)] for k in range(words)] for i in range(number)]


def _cached(bilm: BiLM, sentences: list[Sentence]) -> None:
    bilm.forget_words()
    with tempfile.TemporaryDirectory() as folder:
        cache = ActivationCache(BilmLayers.of(bilm), folder)
        cache.console.quiet = True
        cache.prepare(sentences)
        for start in range(0, len(sentences), 32):
            cache.layers(sentences[start : start + 32])


def _points(number: int) -> None:
    arms = cycle(("baseline", "elmo"))
    for seed in range(number):
        Identity(schema.typed(pages.compose(["task=ner", f"arm={next(arms)}", f"seed={seed}"])))
