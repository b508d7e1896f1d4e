"""How costs grow: CPU seconds at four sizes, each twice the one before, and the slope of their logarithms.

A slope of 1 is a cost that grows as the size does; a fixed part makes it smaller, and work repeated for nothing larger.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable
from functools import partial
from itertools import cycle, islice
from typing import Any

import numpy as np

from elmo_bench.bilm import BiLM
from elmo_bench.configuration import composing
from elmo_bench.identity.settings import Identity
from elmo_bench.layers.bilm import BilmLayers
from elmo_bench.layers.cache import ActivationCache
from elmo_bench.speed.inputs import Sentence, generated, read_sentences
from elmo_bench.speed.measuring import in_turn
from elmo_bench.system.machine import peak_mib

SIZES = 4
ROUNDS = 3


def measured(bilm: BiLM, least: int) -> list[dict[str, Any]]:
    """Of each cost: the sizes, CPU seconds (the least of some rounds) and the slope.

    "tokens" are computed by `encode` in sentences as long as English ones; "words a sentence" in sentences of equal
    length, as many of each; "vocabulary" counts distinct words to encode; "corpus, sentences" are written into the
    cache and read once; "points of a sweep" are composed and given their ids.
    """
    sentences = generated(least << SIZES, random.Random(3))
    words = [word for sentence in sentences for word in sentence]

    def of_length(length: int) -> list[Sentence]:
        return [[words[(i * length + k) % len(words)] for k in range(length)] for i in range(least)]

    costs: dict[str, tuple[int, Callable[[int], Any]]] = {
        "tokens": (least, lambda size: _encode(bilm, sentences[:size])),
        "words a sentence": (8, lambda size: _encode(bilm, of_length(size))),
        "vocabulary": (8 * least, lambda size: _encode(bilm, [[f"word{i}" for i in range(size)]])),
        "corpus, sentences": (least, lambda size: _cached(bilm, sentences[:size])),
        "points of a sweep": (max(least // 2, 1), _points),
    }
    rows = []
    for name, (smallest, work) in costs.items():
        ways = {smallest << i: partial(work, smallest << i) for i in range(SIZES)}
        seconds = [min(taken) for taken in in_turn(ways, ROUNDS, time.process_time).values()]  # of all threads
        sizes = [sum(map(len, sentences[:size])) for size in ways] if name == "tokens" else list(ways)
        rows.append({"cost": name, "sizes": sizes, "cpu_seconds": seconds, "slope": slope(sizes, seconds)})
    return rows


def slope(sizes: list[int], seconds: list[float]) -> float:
    """The slope of the straight line through the logarithms, by least squares."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def peak_of_corpus(options: str, weights: str, data_root: str | None, number: int) -> float:
    """Peak MiB of this process after it has computed the layers of a number of sentences, of which it keeps none."""
    sentences, _ = read_sentences(data_root, number)
    for _ in BiLM.from_files(options, weights).batches(list(islice(cycle(sentences), number))):
        pass
    return peak_mib()


def _encode(bilm: BiLM, sentences: list[Sentence]) -> None:
    bilm.forget_words()
    bilm.encode(sentences)


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
        Identity(composing.run_config(["task=ner", f"arm={next(arms)}", f"seed={seed}"]))
