"""Gains, their intervals and tests: against brute force, by hand, and in simulation."""

import math
import sys
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from elmo_bench.metrics.items import F1Metric, Items, smallest
from elmo_bench.records import items, store
from elmo_bench.reporting import gains, intervals, score_tables
from elmo_bench.reporting.findings import OPEN, verdict
from elmo_bench.reporting.gains import Comparison, Gain, Group, Outcome, gain, holm, of_models, shown_by
from elmo_bench.reporting.intervals import LEVEL, Spread, pool
from elmo_bench.reporting.section import Number, Section
from tests.fakes import cases, for_each, refuses
from tests.records.test_records import at, fake
from tests.simulate import Case, rates

METRIC = {"_target_": "tasks.ner.metric.NerMetric"}


def sentences(seed: int, better: float = 0.0, n: int = 150, size: int = 1) -> Items:
    """Counts of n sentences, `size` of which make a document; seeds and arms find hard what all find hard."""
    ease = np.random.default_rng(0).normal(0, 1, n)
    random = np.random.default_rng([seed, int(100 * better)])
    right = random.binomial(3, 1 / (1 + np.exp(-ease - better - random.normal(0, 0.1))))
    counts = {"tp": right, "fp": random.binomial(2, 0.3, n), "fn": 3 - right}
    arrays = {name: smallest(values) for name, values in counts.items()}
    return Items(arrays, smallest(np.arange(n)), smallest(np.arange(n) // size))


def saved(folder, seed, scored, where="none", **more):
    """A record on disk with its per-example results of both splits; its scores are theirs."""
    metrics = F1Metric.from_totals(scored.totals())
    record = fake(where, seed, metrics={"dev": metrics, "test": metrics}, **more)
    record.config["task"]["metric"] = METRIC
    path = at(folder, record)
    store.write(path, record, {items.path_of(path): items.packed({"dev": scored, "test": scored})})
    return store.read(path)


def arm(folder, where, seeds=(1, 2, 3), better=0.0, **shape):
    return Group([saved(folder, seed, sentences(seed, better, **shape), where) for seed in seeds], where)


def without_items(group):
    return Group([replace(record, path=None) for record in group.records], group.name)


def half(found: Gain) -> float:
    assert found.spread
    return found.spread.half


@pytest.fixture
def pair(tmp_path):
    return arm(tmp_path, "input", better=1.5), arm(tmp_path, "none")


# Clusters.


def test_what_clusters_add_has_the_variance_of_a_bootstrap():
    one = intervals.Evidence(sentences(1, n=120, size=3), F1Metric.from_totals, "f1")
    drawn = np.random.default_rng(1).multinomial(40, [1 / 40] * 40, 20_000) @ one.table
    assert one.influences.sum() == pytest.approx(0, abs=1e-9)
    assert (one.influences**2).sum() == pytest.approx(one.percent(drawn).var(), rel=0.05)


def test_a_metric_that_takes_numbers_alone_is_asked_for_one_resample_after_the_other():
    scored = sentences(1, n=12, size=3)
    for metric in (
        lambda sums: {"f1": sums["tp"] / (sums["fp"] or 1)},
        lambda sums: {"f1": math.sqrt(sums["tp"])},
        lambda sums: {"f1": 1.0},
    ):
        one = intervals.Evidence(scored, metric, "f1")
        each = [metric(dict(zip(scored.statistics, row, strict=True)))["f1"] for row in one.table.tolist()]
        assert one.percent(one.table).tolist() == each


# Intervals.


@for_each("degrees", "1.7 4 300")
def test_interval_and_p_are_students(degrees):
    spread = Spread(1.5, degrees)
    assert spread.around(2.0) == pytest.approx(stats.t.interval(0.95, degrees, 2.0, 1.5))
    assert spread.p(2.0) == spread.p(-2.0) == pytest.approx(2 * stats.t.sf(2.0 / 1.5, degrees))
    one = Spread.of_values([1.0, 2.0, 4.0])
    assert one
    expected: Any = stats.ttest_1samp([1.0, 2.0, 4.0], 0)
    assert one.p(7 / 3) == pytest.approx(expected.pvalue)
    assert Spread.of_values([1.0]) is None
    assert (Spread(0.0, 1).p(1.0), Spread(0.0, 1).p(0.0), Spread(0.0, 1).p(1.0, (2.0, 3.0))) == (0, 1, 0)


@pytest.mark.parametrize("bounds", [(0, np.inf), (-np.inf, 0.3), (-1, 1), (5.5, 25.5)])
def test_p_is_small_exactly_where_the_interval_lies_on_one_side_of_every_bound(bounds):
    draw = np.random.default_rng(7)
    seen = set()
    for value, error, degrees in zip(draw.normal(0, 9, 400), draw.gamma(1, 1, 400), draw.gamma(2, 8, 400), strict=True):
        spread = Spread(error, degrees)
        decided = verdict(*spread.around(value), bounds)
        assert (spread.p(value, bounds) < LEVEL) == (decided != OPEN)
        seen.add(decided)
    assert len(seen) == 3


@cases("""
    seeds | clusters
    3     | 10
    5     | 10
    3     | 200
    5     | 200
""")
def test_in_simulation_intervals_cover_and_show_nothing_that_is_not_there(seeds, clusters):
    """A small part of `tests.simulate`."""
    case = Case("", (seeds, seeds), clusters)
    nothing = rates(case, experiments=150)
    assert nothing.covered == pytest.approx(100 - nothing.rejected)
    assert nothing.covered >= 91
    assert nothing.shown <= 6
    gaining = rates(case, nothing.least, 150, seed=2)
    assert gaining.covered >= 91
    assert 70 <= gaining.shown <= 92  # four of five


def test_the_probability_to_lie_between_two_bounds_by_simulation():
    found, draw = Spread(0.3, 4), np.random.default_rng(5)
    values, errors = draw.normal(15.5, 0.3, 20_000), 0.3 * (draw.chisquare(4, 20_000) / 4) ** 0.5
    inside = np.abs(values - 15.5) + stats.t.ppf(0.975, 4) * errors < 1
    assert found.power_between((14.5, 16.5)) == pytest.approx(inside.mean(), abs=0.01)


def test_seeds_of_all_arms_give_one_variance_unless_they_vary_unequally():
    samples = ((1.0, 2.0, 3.0), (4.0, 6.0), (1.0, 1.5, 2.0, 4.0))
    variance = sum((len(each) - 1) * np.var(each, ddof=1) for each in samples) / 6
    assert pool(samples)[0] == pytest.approx((variance, 6))
    assert pool(((1.0, 2.0, 3.0),)) == (None, "")
    part, doubt = pool(((1.0, 1.01, 1.02, 1.01), (1.0, 9.0, 17.0, 30.0)))
    assert part is None
    assert "vary unequally" in doubt
    _, doubt = pool(tuple(tuple(base + np.array([0, 0.1, -0.1, 8, 8.1])) for base in range(4)))
    assert "two regimes" in doubt


def table(comparison: Comparison) -> Section:
    """The gains of a task that has this one alone."""
    outcome = Outcome([*comparison.control.records, *comparison.treated.records])
    outcome.comparisons = [comparison]
    return score_tables.gains_of(outcome)[0]


def test_a_gain_has_an_interval_and_tests(pair):
    found = gain(pair)
    means = [np.mean([record.metrics["test"]["f1"] for record in group.records]) for group in pair]
    assert found.mean == pytest.approx(means[0] - means[1])
    assert found.interval
    low, high = found.interval
    assert 0 < low < found.mean < high
    assert found.mean - low == pytest.approx(high - found.mean)
    assert [p is not None and p < 0.1 for p in of_models(*pair)] == [True] * 3
    assert found.p is not None
    assert found.p < LEVEL
    cell = table(Comparison(pair[0], pair[1], found, found)).rows[0][4]
    assert isinstance(cell, Number)
    assert cell.fold[0].startswith("p of these two models, seed by seed")
    assert found.seeds == (3, 3)
    assert found.note == ""
    assert gain(pair, split="dev").mean == pytest.approx(found.mean)


def test_seeds_alone_where_there_are_no_items(pair):
    found = gain((without_items(pair[0]), without_items(pair[1])))
    scores = [[record.metrics["test"]["f1"] for record in group.records] for group in pair]
    expected: Any = stats.ttest_ind(*scores, equal_var=False)
    interval = expected.confidence_interval()
    assert found.p == pytest.approx(expected.pvalue)
    assert found.interval == pytest.approx((interval.low, interval.high))
    assert of_models(without_items(pair[0]), pair[1]) == [None] * 3
    assert found.note == "over seeds alone (no per-example results in common)"


def test_what_is_lacking_for_an_interval_over_examples_is_named(pair, monkeypatch):
    record = pair[1].first
    items.path_of(record.path).unlink()
    assert f"{record.run}.items.npz with per-example results is not beside its record" in gain(pair).note
    monkeypatch.setattr(intervals.pages, "tasks", list)
    gains.gain.cache_clear()
    assert f"need the configuration file of {record.task}: give its folder as -cd FOLDER" in gain(pair).note


def test_one_seed_in_each_arm_is_about_the_items(tmp_path):
    one, other = arm(tmp_path, "input", [1], 0.8), arm(tmp_path, "none", [1])
    found = gain((one, other))
    added = [intervals.of_run(group.first, "test", "f1").influences for group in (one, other)]
    squares = (added[0] - added[1]) ** 2
    degrees = min(149, 3 * squares.sum() ** 2 / (squares**2).sum() - 1)
    assert half(found) == pytest.approx(stats.t.ppf(0.975, degrees) * (squares.sum() * 150 / 149) ** 0.5)
    assert found.p is None
    assert "over examples alone" in found.note
    nothing = gain((without_items(one), without_items(other)))
    assert nothing.interval is None
    assert nothing.note == "none (one seed, no per-example results in common)"


def test_the_cluster_that_carries_most_of_a_gain_by_brute_force(tmp_path):
    carried = sentences(1, size=10)
    carried.statistics["fn"][30:40] += carried.statistics["tp"][30:40]
    carried.statistics["tp"][30:40] = 0
    control = Group([saved(tmp_path, 1, carried, "none")], "none")
    treated = Group([saved(tmp_path, seed, sentences(1, size=10), "input") for seed in (1, 2)], "input")
    found = gain((treated, control))
    without = []
    for left_out in range(15):
        kept = np.arange(150) // 10 != left_out
        scores = [
            F1Metric.from_totals({name: float(values[kept].sum()) for name, values in scored.statistics.items()})["f1"]
            for scored in (sentences(1, size=10), carried)
        ]
        without.append(scores[0] - scores[1])
    assert found.clusters.startswith("15 sentences, 1.")
    assert without[3] == min(without)
    assert (
        found.carried == f"without 4 the gain is {without[3]:+.2f} ({100 * (1 - without[3] / found.mean):.0f} % less)"
    )
    remark = f"Row 1, of {found.clusters}: {found.carried}."
    assert remark in table(Comparison(treated, control, found, found)).remarks
    assert gain((control, control)).carried == ""


@pytest.mark.parametrize("other", [{"n": 151}, {"size": 2}])
def test_items_that_are_not_the_same_are_not_paired(tmp_path, other):
    pair = arm(tmp_path, "input"), arm(tmp_path, "none", **other)
    assert "over seeds alone" in gain(pair).note
    assert of_models(*pair) == [None] * 3


def test_items_of_another_version_of_the_metric_are_left_out(tmp_path, pair):
    treated, control = pair
    changed = treated.records[0]
    changed.metrics["test"]["f1"] += 1.0
    gains.gain.cache_clear()
    assert "over seeds alone" in gain((treated, control)).note
    unknown = control.records[0]
    for name in ("no.such.Metric", "tasks.ner.metric.NoSuch", "this.Poem"):
        unknown.config["task"]["metric"] = {"_target_": name}
        assert "over seeds alone" in gain((arm(tmp_path, "input"), control)).note
    assert "this" not in sys.modules  # no record has code imported that no file in conf names


def test_a_damaged_file_of_items_is_named(pair):
    path = items.path_of(pair[0].first.path)
    path.write_bytes(path.read_bytes()[:100])
    with refuses(r"items\.npz: not a readable file of per-example results"):
        gain(pair)


# Tables.


def test_holm_by_hand():
    def mains(*p: float | None) -> Any:
        return [SimpleNamespace(task=str(i), test=SimpleNamespace(p=each)) for i, each in enumerate(p)]

    corrected = {"3": 4 * 0.005, "0": 3 * 0.01, "2": 2 * 0.03, "1": 2 * 0.03}  # of 0.04, no less than of a smaller p
    assert holm(mains(0.01, 0.04, 0.03, 0.005, None)) == pytest.approx(corrected)
    assert holm(mains(0.9, 0.8)) == {"1": 1, "0": 1}
    assert holm([]) == {}


def test_equal_scores_of_all_seeds_give_no_interval(pair):
    """Three equal scores do not say that a fourth would be equal."""
    same = [Group([replace(record, metrics={"test": {"f1": f1}, "dev": {"f1": f1}}) for record in group.records], "")
            for group, f1 in zip(pair, (82.0, 80.0), strict=True)]  # fmt: skip
    found = gain((without_items(same[0]), without_items(same[1])))
    assert (found.mean, found.interval, found.p) == (2.0, None, None)
    assert found.note == "no interval: the seeds do not differ"


@pytest.mark.parametrize("seeds", [(2, 2), (3, 3), (3, 5), (5, 5)])
def test_what_seeds_can_show(seeds):
    """By the exact test of scipy, on arms as far apart as can be."""
    arms = np.arange(seeds[0]) + 100.0, np.arange(seeds[1]) * 1.0
    test: Any = stats.permutation_test(arms, lambda a, b: a.mean() - b.mean(), n_resamples=1000)
    assert (
        f"reaches p = {test.pvalue:.2g} at best, so that they {'can' if test.pvalue < 0.05 else 'cannot'}"
        in shown_by(seeds)
    )
    assert "nothing about other seeds" in shown_by((1, 1))
