"""What the layers of a sweep cost: its first run fills the cache, and the others read it."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from elmo_bench.bilm import BiLM
from elmo_bench.layers.bilm import BilmLayers
from elmo_bench.layers.cache import ActivationCache
from elmo_bench.speed.text import Sentence

POINTS = 4
BATCH = 32
ROUNDS = 3


def cost(bilm: BiLM, sentences: Sequence[Sentence], folder: Path) -> dict[str, Any]:
    """The time of a four-point sweep from an empty cache, in terms of what it cannot do without.

    A point is one epoch here, the fewest that a run has, so that writing the cache counts most. Medians of ROUNDS, with
    both ways in turn.

    Returns:
        seconds of an epoch that computes its layers, of one that reads them, and of the sweep; the last one divided by
        one epoch of the first kind and three of the second.
    """
    seconds: dict[str, list[float]] = {"compute": [], "read": [], "sweep": []}
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory(dir=folder) as place:
            bilm.forget_words()
            seconds["compute"].append(_seconds(lambda: _epoch(bilm.layers, sentences)))
            bilm.forget_words()
            points = [_seconds(lambda: _point(bilm, sentences, Path(place))) for _ in range(POINTS)]
        seconds["sweep"].append(sum(points))
        seconds["read"].append(median(points[1:]))
    took = {name: median(times) for name, times in seconds.items()}
    expected = took["compute"] + (POINTS - 1) * took["read"]
    return {"seconds": took, "times_expected": took["sweep"] / expected}


def _point(bilm: BiLM, sentences: Sequence[Sentence], folder: Path) -> None:
    """What a run does with its layers: opens the cache, writes what it lacks, and reads an epoch."""
    cache = ActivationCache(BilmLayers.of(bilm), folder)
    cache.console.quiet = True
    cache.prepare(sentences)
    _epoch(cache.layers, sentences)


def _epoch(layers: Callable[[Sequence[Sentence]], Any], sentences: Sequence[Sentence]) -> None:
    for start in range(0, len(sentences), BATCH):
        layers(sentences[start : start + BATCH])


def _seconds(way: Callable[[], None]) -> float:
    started = time.perf_counter()
    way()
    return time.perf_counter() - started
