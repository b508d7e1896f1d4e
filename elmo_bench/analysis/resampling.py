"""Scores of layers and their differences, with the interval that gains have (`reporting.statistics.intervals`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from elmo_bench.records.studies import StudyCell
from elmo_bench.reporting.statistics.evidence import influences
from elmo_bench.reporting.statistics.intervals import Arm, spread

Statistic = Callable[[np.ndarray], np.ndarray]  # sums (D, C) -> (D,)


class Score:
    """A score, computed from what each cluster of examples adds to some sums.

    Args:
        counts: (seeds, S, C), what each sentence adds to each sum; the last sum is of the examples.
        documents: of the sentences; None: it stands alone.
        statistic: the score from the sums.
    """

    def __init__(self, counts: np.ndarray, documents: Sequence[str | None], statistic: Statistic):
        tables = [by_document(table, documents) for table in counts]
        tables = [table[tables[0][:, -1] > 0] for table in tables]
        scores = np.array([statistic(table.sum(0)[None])[0] for table in tables])
        self.items, self.clusters = int(tables[0][:, -1].sum()), len(tables[0])
        several = self.clusters > 1
        added = [influences(statistic, table) if several else np.zeros(0) for table in tables]
        self.arm = Arm(scores, np.stack(added))

    def cell(self, source: str, quantity: str, layer: int | None = None, paper: float | None = None) -> StudyCell:
        """The score with its interval."""
        return self._cell([self.arm], StudyCell(source, quantity, 0.0, layer, paper=paper))

    def minus(self, other: Score, one: StudyCell, less: StudyCell) -> StudyCell:
        """The difference of two layers on the same examples."""
        paper = None if one.paper is None or less.paper is None else one.paper - less.paper
        return self._cell(
            [self.arm, other.arm.scaled(-1)],
            StudyCell(one.source, one.quantity, 0.0, one.layer, less.layer, paper=paper),
        )

    def _cell(self, arms: Sequence[Arm], about: StudyCell) -> StudyCell:
        value, found = float(sum(arm.scores.mean() for arm in arms)), spread(*arms)
        given = vars(about) | {"value": value, "n": self.items, "clusters": self.clusters}
        if found is not None:
            low, high = found.around(value)
            given |= {"low": low, "high": high, "degrees": found.degrees}
        return StudyCell(**given)


def by_document(table: np.ndarray, documents: Sequence[str | None]) -> np.ndarray:
    """(S, C) counts of sentences -> (K, C) of documents, and of the sentences that are in none."""
    names = [(i, None) if name is None else name for i, name in enumerate(documents)]
    number = {name: k for k, name in enumerate(dict.fromkeys(names))}
    summed = np.zeros((len(number), table.shape[1]))
    np.add.at(summed, [number[name] for name in names], table)
    return summed


def clusters(documents: Sequence[str | None]) -> str:
    """What the clusters of an interval are."""
    return "sentences" if None in documents else "documents"
