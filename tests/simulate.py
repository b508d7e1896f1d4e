"""Intervals in simulation: `python -m tests.simulate` prints how often they cover the truth, and show what is not.

Each experiment has new seeds and new clusters of examples, scored by F1, and a true difference that is known.
"""

from typing import NamedTuple

import numpy as np

from elmo_bench.reporting.findings import CONTRADICTED, SHOWN, WEIGHTS, verdict
from elmo_bench.reporting.intervals import ABOVE_ZERO, LEVEL, Arm, Spread, pool, smallest, spread

EXPERIMENTS = 1000
BASE, SPURIOUS = 0.6, 0.2  # a run's shares of spans found, and of spans that are none
SEED = 0.01  # the deviation of that share over seeds
NOMINAL = 100 * (1 - LEVEL)
HEADER = ("experiments", "covers 0", "p < 0.05", "covers a difference", "shows it", "in doubt", "why it is not 95 %")
WIDE = "wide: the larger of two variances of seeds counts"


class Case(NamedTuple):
    """Experiments of one kind.

    Attributes:
        title: in words.
        seeds: of the two arms that are compared, then of the task's others.
        clusters: of examples.
        tail: the exponent of the clusters' sizes by Pareto's distribution; None: 5 to 15 spans.
        differs: the exponent of a cluster's size in the deviation of its own difference between the arms.
        unequal: the deviation of the first arm's seeds, as a multiple of the others'.
        regimes: by how many deviations a third of the seeds fall below the others.
        bilms: how many the first arm has, each with as many seeds; they vary three times as much as seeds.
        why: what is to say where it is not nominal.
    """

    title: str
    seeds: tuple[int, ...]
    clusters: int = 200
    tail: float | None = None
    differs: float = 0.0
    unequal: float = 1.0
    regimes: float = 0.0
    bilms: int = 1
    why: str = ""


OTHERS = (3,) * 6
CASES = [
    *(Case(f"{n} and {n} seeds, {k} documents", (n, n), k) for n in (2, 3, 5, 10) for k in (10, 200)),
    Case("3 and 2 seeds", (3, 2)),
    Case("3 and 3 seeds, 6 other arms", (3, 3, *OTHERS), why=WIDE),
    Case("5 and 5 seeds, 6 other arms", (5, 5, *OTHERS), why=WIDE),
    Case("a few heavy documents (sizes by Pareto, 1.3)", (5, 5), 300, 1.3),
    Case("the same, and heavy ones differ more", (5, 5), 300, 1.3, 0.5, why="fewer degrees of freedom repair a part"),
    Case("3 and 5 seeds, the 3 vary three times as much", (3, 5), unequal=3),
    Case("2 and 3 seeds, the 2 vary three times as much", (2, 3), unequal=3, why="two seeds do not tell it"),
    Case("the same among 6 other arms", (2, 3, *OTHERS), unequal=3, why="two seeds do not tell it"),
    Case("two regimes of seeds, 3 and 3", (3, 3), regimes=10, why="wide: seeds of both regimes look far apart"),
    Case("two regimes of seeds, 5 and 5, 6 other arms", (5, 5, *OTHERS), regimes=10),
    Case("3 biLMs with 3 seeds each against 5 seeds", (3, 5), bilms=3, why="narrow: three tell their variance roughly"),
]  # fmt: skip


class Rates(NamedTuple):
    """Percentages of experiments, except `least`: the median of the differences that they promise to show in 80 %."""

    covered: float
    rejected: float
    shown: float
    doubted: float
    least: float


def rates(case: Case, difference: float = 0.0, experiments: int = EXPERIMENTS, seed: int = 1) -> Rates:
    """What the rule says in experiments with a true difference in points of F1."""
    draw, said = np.random.default_rng([seed, case.clusters, *case.seeds]), []
    for _ in range(experiments):
        value, found, doubt = experiment(draw, case, difference)
        low, high = found.around(value)
        shown = verdict(low, high, ABOVE_ZERO) == SHOWN
        said.append((low <= difference <= high, found.p(value) < LEVEL, shown, bool(doubt), found.least))
    *of_all, least = zip(*said, strict=True)
    covered, rejected, shown, doubted = (100 * np.mean(of_all, axis=1)).tolist()
    return Rates(covered, rejected, shown, doubted, float(np.median(least)))


def experiment(draw: np.random.Generator, case: Case, difference: float) -> tuple[float, Spread, str]:
    """The difference of the first two arms, its spread, and the doubt of it."""
    spans = _sizes(draw, case)
    f1 = 2 * BASE / (BASE + SPURIOUS + 1) + difference / 100
    shares = [f1 * (1 + SPURIOUS) / (2 - f1), *[BASE] * (len(case.seeds) - 1)]  # the shares that have these F1
    ease, heavy = draw.uniform(-0.15, 0.15, len(spans)), (spans / spans.mean()) ** case.differs
    scores, arms = [], []
    for i, (share, seeds) in enumerate(zip(shares, case.seeds, strict=True)):
        apart = ease + draw.normal(0, 0.05, len(spans)) * heavy
        bilms = []
        for _ in range(case.bilms if i == 0 else 1):
            moved = draw.normal(0, SEED, seeds) * (case.unequal if i == 0 else 1)
            moved = moved - case.regimes * SEED * ((draw.random(seeds) < 1 / 3) - 1 / 3)
            moved = moved + (draw.normal(0, 3 * SEED) if i == 0 and case.bilms > 1 else 0)
            each = share + apart + moved[:, None] + draw.normal(0, 0.03, (seeds, len(spans)))
            tables = [_table(draw, one, spans) for one in np.clip(each, 0, 1)]
            found = np.array([_f1(table.sum(0)[None])[0] for table in tables])
            of_clusters = np.stack([_influences(table) for table in tables]) if i < 2 else np.zeros((seeds, 0))
            bilms.append(Arm(found, of_clusters))
        scores.append(tuple(bilms[0].scores.tolist()))
        arms.append(bilms)
    part, doubt = pool(tuple(scores))
    (one, *others), (less,) = arms[:2]
    more = one._replace(pooled=part)
    if others:
        means = [(arm.scores.mean(), arm.influences.mean(0)) for arm in arms[0]]
        more = Arm(np.array([score for score, _ in means]), np.stack([added for _, added in means]))
    found = spread(more, less._replace(pooled=part).scaled(-1))
    assert found is not None
    return float(more.scores.mean() - less.scores.mean()), found, doubt


def _sizes(draw: np.random.Generator, case: Case) -> np.ndarray:
    if case.tail is None:
        return draw.integers(5, 16, case.clusters)
    return np.ceil(3 * (1 + draw.pareto(case.tail, case.clusters))).clip(max=3000).astype(int)


def _table(draw: np.random.Generator, share: np.ndarray, spans: np.ndarray) -> np.ndarray:
    """(K, 3) of each cluster the spans found, answered and there."""
    right = draw.binomial(spans, share)
    return np.stack([right, right + draw.binomial(spans, SPURIOUS), spans], axis=1).astype(float)


def _influences(table: np.ndarray) -> np.ndarray:
    """(K, 3) counts of each cluster -> (K,) what each adds to F1, in percent: the derivative by its weight."""
    found, places = table[:, 0], table[:, 1] + table[:, 2]
    return (200 * found - 200 * found.sum() / places.sum() * places) / places.sum()


def _f1(sums: np.ndarray) -> np.ndarray:
    """(n, 3) spans found, answered and there -> (n,) percent."""
    return 200 * sums[:, 0] / (sums[:, 1] + sums[:, 2])


def equivalence(seeds: int, error: float, bound: float, truth: float) -> tuple[float, float]:
    """How often a difference is shown to lie within a bound, in percent, and how often `power_between` says it is."""
    draw, said = np.random.default_rng([seeds, 2]), []
    for _ in range(20 * EXPERIMENTS):
        values = draw.normal(truth, error * seeds**0.5, seeds).tolist()
        found, bounds = Spread.of_values(values), (-bound, bound)
        assert found is not None
        said.append(verdict(*found.around(float(np.mean(values))), bounds) == SHOWN)
    return float(100 * np.mean(said)), 100 * Spread(error, seeds - 1).power_between((-bound, bound))


def weights(seeds: int, truth: list[float], deviation: float) -> tuple[float, float]:
    """How often three weights of layers show the first to weigh most, and contradict it, in percent."""
    draw, said = np.random.default_rng([seeds, 3]), []
    for _ in range(10 * EXPERIMENTS):
        runs = draw.normal(truth, deviation, (seeds, len(truth))).tolist()
        columns = [*zip(*(WEIGHTS["first_layer"](run) for run in runs), strict=True)]
        least, found = smallest(columns)
        assert found is not None
        said.append(verdict(*found.around(least), ABOVE_ZERO))
    return tuple(100 * said.count(each) / len(said) for each in (SHOWN, CONTRADICTED))  # type: ignore[return-value]


def row(case: Case, experiments: int = EXPERIMENTS) -> str:
    """The rates of a case, as a row of a Markdown table; it says why if the interval covers 2 points off 95 %."""
    nothing = rates(case, experiments=experiments)
    there = rates(case, nothing.least, experiments, seed=2)
    numbers = [nothing.covered, nothing.rejected, there.covered, there.shown, nothing.doubted]
    farthest = max(nothing.covered, there.covered, key=lambda covered: abs(covered - NOMINAL))
    off = abs(farthest - NOMINAL) > 2
    why = (case.why or ("wide: few of either" if farthest > NOMINAL else "narrow")) if off else ""
    return _row(case.title, *(f"{number:.1f} %" for number in numbers), why)


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def table() -> str:
    """The rates of all cases, and of tests of another kind, as Markdown."""
    lines = [_row(*HEADER), _row(*["---"] * len(HEADER)), *map(row, CASES), ""]
    for seeds in (3, 5, 10):
        wrong, (right, promised) = equivalence(seeds, 0.4, 1, 1)[0], equivalence(seeds, 0.25, 1, 0)
        lines.append(
            f"- {seeds} seeds, within one point: shown in {wrong:.1f} % where the truth is one point; of 0, in "
            f"{right:.1f} % (promised: {promised:.1f} %)."
        )
    for seeds in (3, 5):
        shown, contradicted = weights(seeds, [1 / 3] * 3, 0.02)
        lines.append(
            f"- {seeds} seeds, three layers of equal weight: that the first weighs most is shown in {shown:.1f} % and "
            f"contradicted in {contradicted:.1f} %."
        )
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
