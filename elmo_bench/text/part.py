"""The part of the training data that a run reads: all of it, or a random subset for a learning curve (section 5.4)."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import NamedTuple, TypeVar

from elmo_bench.system.errors import UserError

T = TypeVar("T")


class Part(NamedTuple):
    """A fraction of the training data.

    The items are put in a random order that depends on the seed, and the first ones are used. So for one seed, every
    part is contained in every larger part.

    Attributes:
        fraction: above 0, at most 1.
        seed: the seed of the run.
        least: minimum number of examples for training: one batch.
    """

    fraction: float = 1.0
    seed: int = 1
    least: int = 1

    def of(self, items: Sequence[T], unit: str, examples: Callable[[T], int] = lambda item: 1) -> list[T]:
        """The items of this part, in the order of the file.

        Args:
            items: all items of the training data.
            unit: their name in messages, such as "sentences".
            examples: the number of training examples of an item.
        """
        if self.fraction == 1:
            return list(items)

        def place(item: int) -> bytes:  # random order of the items, the same on every machine
            return hashlib.blake2b(f"{self.seed} {item}".encode(), digest_size=16).digest()

        order = sorted(range(len(items)), key=place)
        number = math.floor(round(self.fraction * len(items), 6))  # 0.29 * 100 is 28.999...
        totals = list(accumulate(examples(items[i]) for i in order))
        if not number or totals[number - 1] < self.least:
            found = totals[number - 1] if number else 0
            raise UserError(
                f"fraction={self.fraction}: {number} of {len(items)} {unit} give {found} examples, fewer than a batch "
                f"of {self.least}; the smallest fraction is {self._smallest(totals)}"
            )
        return [items[i] for i in sorted(order[:number])]

    def _smallest(self, totals: Sequence[int]) -> float:
        """The smallest fraction, with two digits, whose items fill a batch, from the running totals of examples."""
        needed = sum(total < self.least for total in totals) + 1
        if needed > len(totals):
            return 1
        share = needed / len(totals)
        digit = 10.0 ** (math.floor(math.log10(share)) - 1)
        return min(float(f"{math.ceil(share / digit) * digit:.2g}"), 1)

    def mend(self, advice: str) -> str:
        """The remedy for training data that lack something; `advice` applies to the complete data."""
        return advice if self.fraction == 1 else "take a larger fraction, or another seed"


WHOLE = Part()
