"""Reproducible random draws: the same key gives the same sequence on every platform and every supported Python.

Only `random.Random.random()` is used, whose sequence is guaranteed; everything else is our own integer arithmetic
(the library's `shuffle` and `choices` may change, and the rounding of `sum` or `**` may differ between platforms).
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate
from random import Random
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Chance:
    """A stream of draws named by its key; streams of different keys are independent.

    Args:
        key: words and numbers, or another chance: whatever is made of that draws from the same stream.
    """

    def __init__(self, *key: object):
        if isinstance(key[0], Chance):
            self.random = key[0].random
        else:
            digest = hashlib.sha256("/".join(map(str, key)).encode()).digest()
            self.random = Random(int.from_bytes(digest[:8], "big")).random

    def below(self, n: int) -> int:
        """A number from 0 to n - 1."""
        return int(self.random() * n)

    def happens(self, probability: float) -> bool:
        return self.random() < probability

    def one_of(self, items: Sequence[T]) -> T:
        """One of the items, or of the words of a string."""
        words: Any = items.split() if isinstance(items, str) else items
        return words[self.below(len(words))]

    def weighted(self, weights: dict[T, int]) -> T:
        """A key, drawn with a probability proportional to its weight."""
        upto = list(accumulate(weights.values()))
        return list(weights)[bisect_right(upto, self.below(upto[-1]))]

    def shuffled(self, items: Iterable[T]) -> list[T]:
        """All items in random order (Fisher-Yates)."""
        result = list(items)
        for i in range(len(result) - 1, 0, -1):
            j = self.below(i + 1)
            result[i], result[j] = result[j], result[i]
        return result


class Ranked(Generic[T]):
    """A list whose first items are drawn most often: weights 1 / (rank + flat), close to Zipf's law."""

    def __init__(self, items: Iterable[T], flat: int = 8):
        self.items = tuple(items)
        self._upto = list(accumulate(10**9 // (rank + flat) for rank in range(1, len(self.items) + 1)))

    def draw(self, chance: Chance) -> T:
        return self.items[bisect_right(self._upto, chance.below(self._upto[-1]))]
