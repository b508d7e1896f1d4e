"""The cluster of test examples on which a gain depends most: how large would the gain be without it?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from elmo_bench.reporting.statistics.evidence import Evidence

LARGE = 0.25  # of the gain: a reader should know the cluster that carries more


class Influence(NamedTuple):
    """What a gain owes to one cluster.

    Attributes:
        name: of the cluster, or its number from 1 if it has no name.
        share: of the gain that is gone without it; above 1 if the gain then has the other sign.
        without: the gain in percent points on all other clusters.
    """

    name: str
    share: float
    without: float


def most_influential(treated: Sequence[Evidence], control: Sequence[Evidence]) -> Influence | None:
    """The cluster with the largest share of the mean gain over seeds; None for no gain, or for a single cluster.

    Args:
        treated, control: the evidence of each run of either arm, all of the same examples.
    """
    gain = float(np.mean([each.value for each in treated]) - np.mean([each.value for each in control]))
    if not gain or len(treated[0].table) < 2:
        return None
    without = np.mean([each.without for each in treated], axis=0) - np.mean([each.without for each in control], axis=0)
    shares = 1 - without / gain  # (K,)
    first = int(shares.argmax())
    names = treated[0].names
    return Influence(names[first] if names else str(first + 1), float(shares[first]), float(without[first]))


def in_words(found: Influence) -> str:
    """A sentence's end: "without NAME the gain is +0.95 (62 % less)"."""
    return f"without {found.name} the gain is {found.without:+.2f} ({100 * found.share:.0f} % less)"
