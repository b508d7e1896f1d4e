"""Gains, their intervals and tests: against brute force, by hand, and in simulation."""

import itertools
import math
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from elmo_bench.metrics.items import F1Metric, Items, smallest
from elmo_bench.records import items, store
from elmo_bench.reporting.section import Number
from elmo_bench.reporting.statistics import evidence, gains, resampling
from elmo_bench.reporting.statistics.findings import OPEN, verdict
from elmo_bench.reporting.statistics.gains import Gain, error_reduction, gain, of_models, shown_by
from elmo_bench.reporting.statistics.groups import Group
from elmo_bench.reporting.statistics.intervals import LEVEL, Arm, Spread, spread
from elmo_bench.reporting.statistics.outcomes import Comparison, holm
from elmo_bench.reporting.tables import comparisons
from elmo_bench.system.errors import UserError
from tests.drill.intervals import rates
from tests.records.test_records import at, fake

pytestmark = pytest.mark.usefixtures("first_versions")

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


@pytest.fixture
def few_draws(monkeypatch):
    monkeypatch.setattr(resampling, "DRAWS", 300)
    resampling.cluster_draws.cache_clear()
    yield
    resampling.cluster_draws.cache_clear()


# Resampling.


def test_a_draw_of_clusters_is_scored_from_the_sums_of_its_items():
    scored = sentences(1, n=12, size=3)
    one = evidence.Evidence(scored, F1Metric.from_totals, "f1")
    for draw, value in list(zip(resampling.cluster_draws(4), one.drawn, strict=True))[:50]:
        chosen = [i for cluster, times in enumerate(draw) for _ in range(times) for i in range(12) if i // 3 == cluster]
        totals = {name: float(values[chosen].sum()) for name, values in scored.statistics.items()}
        assert value == F1Metric.from_totals(totals)["f1"]


def test_a_metric_that_takes_numbers_alone_is_asked_for_one_resample_after_the_other():
    scored = sentences(1, n=12, size=3)
    for metric in (
        lambda sums: {"f1": sums["tp"] / (sums["fp"] or 1)},
        lambda sums: {"f1": math.sqrt(sums["tp"])},
        lambda sums: {"f1": 1.0},
    ):
        one = evidence.Evidence(scored, metric, "f1")
        each = [metric(dict(zip(scored.statistics, row, strict=True)))["f1"] for row in one.table.tolist()]
        assert one.percent(one.table).tolist() == each


def test_the_permutation_test_agrees_with_all_permutations():
    draw = np.random.default_rng(3)
    one, other = (np.stack([draw.integers(0, 4, 6) for _ in range(3)], axis=1).astype(float) for _ in range(2))

    def f1(sums):
        return np.array([F1Metric.from_totals(dict(zip(("tp", "fp", "fn"), row, strict=True)))["f1"] for row in sums])

    def difference(swapped):
        a, b = np.where(swapped[:, None], other, one), np.where(swapped[:, None], one, other)
        return (f1(a.sum(0)[None]) - f1(b.sum(0)[None]))[0]

    differences = np.array([difference(np.array(swap)) for swap in itertools.product([False, True], repeat=6)])
    higher, lower = (differences >= differences[0] - 1e-9).mean(), (differences <= differences[0] + 1e-9).mean()
    exact = min(1, 2 * min(higher, lower))
    assert 0.05 < exact < 0.95
    assert resampling.permutation_p(one, other, f1) == pytest.approx(exact, abs=0.05)
    assert resampling.permutation_p(one, one, f1) == 1
    assert resampling.permutation_p(one, np.concatenate([other[:1], one[1:]]), f1) == 1


# Intervals.


@pytest.mark.parametrize("degrees", [1.7, 4, 300])
def test_interval_and_p_are_students(degrees):
    spread = Spread(1.5, degrees)
    assert spread.around(2.0) == pytest.approx(stats.t.interval(0.95, degrees, 2.0, 1.5))
    assert spread.p(2.0) == spread.p(-2.0) == pytest.approx(2 * stats.t.sf(2.0 / 1.5, degrees))
    assert Spread.of_interval(*spread.around(2.0), degrees) == pytest.approx(spread)
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


@pytest.mark.usefixtures("few_draws")
@pytest.mark.parametrize(("seeds", "clusters"), [(3, 10), (5, 10), (3, 200), (5, 200)])
def test_in_simulation_intervals_cover_and_show_nothing_that_is_not_there(seeds, clusters):
    """A small part of `tests.drill --area intervals`."""
    nothing = rates(np.random.default_rng([seeds, clusters]), seeds, clusters, 0.0, 150)
    assert nothing.covered == pytest.approx(100 - nothing.rejected)
    assert nothing.covered >= 91
    assert nothing.shown <= 6
    gaining = rates(np.random.default_rng([seeds, clusters, 1]), seeds, clusters, nothing.least, 150)
    assert gaining.covered >= 91
    assert 70 <= gaining.shown <= 90  # four of five


def test_a_gain_has_an_interval_and_tests(pair):
    found = gain(*pair)
    means = [np.mean([record.metrics["test"]["f1"] for record in group.records]) for group in pair]
    assert found.mean == pytest.approx(means[0] - means[1])
    assert found.interval
    low, high = found.interval
    assert 0 < low < found.mean < high
    assert found.mean - low == pytest.approx(high - found.mean)
    assert [p is not None and p < 0.1 for p in of_models(*pair)] == [True] * 3
    assert found.p is not None
    assert found.p < LEVEL
    cell = comparisons._row(Comparison(pair[0], pair[1], found, found))[4]
    assert isinstance(cell, Number)
    assert cell.fold[0].startswith("p of these two models, seed by seed")
    assert found.seeds == (3, 3)
    assert found.note == ""
    assert gain(*pair) == found
    assert gain(*pair, split="dev").mean == pytest.approx(found.mean)


def test_seeds_alone_where_there_are_no_items(pair):
    found = gain(without_items(pair[0]), without_items(pair[1]))
    scores = [[record.metrics["test"]["f1"] for record in group.records] for group in pair]
    expected: Any = stats.ttest_ind(*scores, equal_var=False)
    interval = expected.confidence_interval()
    assert found.p == pytest.approx(expected.pvalue, rel=0.2)
    assert found.interval == pytest.approx((interval.low, interval.high), abs=0.6)
    assert of_models(without_items(pair[0]), pair[1]) == []
    assert found.note == "over seeds alone (no per-example results in common)"


def test_what_is_lacking_for_an_interval_over_examples_is_named(pair, monkeypatch):
    record = pair[1].first
    items.path_of(record.path).unlink()
    assert f"{record.run}.items.npz with per-example results is not beside its record" in gain(*pair).note
    monkeypatch.setattr(evidence.pages, "tasks", list)
    assert f"need the configuration file of {record.task}: give its folder as -cd FOLDER" in gain(*pair).note


@pytest.mark.usefixtures("few_draws")
def test_the_spread_of_an_error_reduction_is_that_of_the_ratio(pair, monkeypatch):
    """By resampling the ratio itself: seeds of either arm, whose deviations grow by sqrt(n/(n - 1)), and clusters."""
    draw = np.random.default_rng(5)
    of_items = draw.normal(0, 1.0, resampling.DRAWS)  # of either arm alike
    scores = [np.array([88.0, 90.5, 91.0]), np.array([78.0, 80.0, 80.5])]
    one, other = (Arm(each, each[:, None] + share * of_items, 60) for each, share in zip(scores, (1, 2), strict=True))
    monkeypatch.setattr(gains, "_arms", lambda *_: (one, other))
    found = error_reduction(*pair)
    assert found
    assert found.spread
    assert found.mean == pytest.approx(100 - 100 * (100 - scores[0].mean()) / (100 - scores[1].mean()))
    drawn = [each[draw.integers(0, 3, (20_000, 3))].mean(1) - each.mean() for each in scores]
    items = draw.choice(of_items, 20_000)
    first, second = (
        each.mean() + 1.5**0.5 * noise + (60 / 59) ** 0.5 * share * items
        for each, noise, share in zip(scores, drawn, (1, 2), strict=True)
    )
    assert found.spread.error == pytest.approx((100 * (first - second) / (100 - second)).std(), rel=0.1)
    divided = spread(one, other)
    assert divided
    assert found.spread.error != pytest.approx(100 * divided.error / (100 - scores[1].mean()), rel=0.1)


def test_one_seed_in_each_arm_is_about_the_items(tmp_path):
    one, other = arm(tmp_path, "input", [1], 0.8), arm(tmp_path, "none", [1])
    found = gain(one, other)
    drawn = [evidence.of_run(group.first, "test", "f1").drawn for group in (one, other)]
    deviation = (drawn[0] - drawn[1]).std(ddof=1)
    assert half(found) == pytest.approx(stats.t.ppf(0.975, 149) * deviation * (150 / 149) ** 0.5)
    assert found.p is None
    assert "over examples alone" in found.note
    nothing = gain(without_items(one), without_items(other))
    assert nothing.interval is None
    assert nothing.note == "none (one seed, no per-example results in common)"


def test_a_single_seed_is_taken_to_vary_as_the_other_arm_does(tmp_path):
    many, single = arm(tmp_path, "input", better=1.5), arm(tmp_path, "none", [2])
    found = gain(without_items(many), without_items(single))
    deviation = np.std([record.metrics["test"]["f1"] for record in many.records], ddof=1)
    expected = stats.t.ppf(0.975, 2) * deviation * (1 / 3 + 1) ** 0.5
    assert half(found) == pytest.approx(expected, rel=0.05)
    assert found.note.endswith("is taken to vary as the other arm's")
    assert [p is None for p in of_models(many, single)] == [True, False, True]


def test_the_cluster_that_carries_most_of_a_gain_by_brute_force(tmp_path):
    carried = sentences(1, size=10)
    carried.statistics["fn"][30:40] += carried.statistics["tp"][30:40]
    carried.statistics["tp"][30:40] = 0
    control = Group([saved(tmp_path, 1, carried, "none")], "none")
    treated = Group([saved(tmp_path, seed, sentences(1, size=10), "input") for seed in (1, 2)], "input")
    found = gain(treated, control)
    without = []
    for left_out in range(15):
        kept = np.arange(150) // 10 != left_out
        scores = [
            F1Metric.from_totals({name: float(values[kept].sum()) for name, values in scored.statistics.items()})["f1"]
            for scored in (sentences(1, size=10), carried)
        ]
        without.append(scores[0] - scores[1])
    assert found.influence is not None
    assert found.clusters == "15 sentences"
    assert found.influence.name == "4"
    assert found.influence.without == pytest.approx(without[3], abs=1e-9) == pytest.approx(min(without), abs=1e-9)
    assert found.influence.share == pytest.approx(1 - without[3] / found.mean)
    row = comparisons._influences([Comparison(treated, control, found, found)])
    assert row == [f"Row 1, of 15 sentences: without 4 the gain is {without[3]:+.2f} (100 % less)."]
    assert gain(control, control).influence is None


@pytest.mark.parametrize("other", [{"n": 151}, {"size": 2}])
def test_items_that_are_not_the_same_are_not_paired(tmp_path, other):
    pair = arm(tmp_path, "input"), arm(tmp_path, "none", **other)
    assert "over seeds alone" in gain(*pair).note
    assert of_models(*pair) == []


def test_items_of_another_version_of_the_metric_are_left_out(tmp_path, pair):
    treated, control = pair
    changed = treated.records[0]
    changed.metrics["test"]["f1"] += 1.0
    assert "over seeds alone" in gain(treated, control).note
    unknown = control.records[0]
    for name in ("no.such.Metric", "tasks.ner.metric.NoSuch", "this.Poem"):
        unknown.config["task"]["metric"] = {"_target_": name}
        assert "over seeds alone" in gain(arm(tmp_path, "input"), control).note
    assert "this" not in sys.modules  # no record has code imported that no file in conf names


def test_a_damaged_file_of_items_is_named(pair):
    path = items.path_of(pair[0].first.path)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(UserError, match=r"items\.npz: not a readable file of per-example results"):
        gain(*pair)


# Tables.


def test_holm_by_hand(pair):
    def mains(*errors: float, seeds: tuple[int, int] = (3, 3)) -> list[Comparison]:
        made = [Gain(1.0, Spread(error, 9), seeds, "") for error in errors]
        groups = [Group([replace(pair[0].first, task=f"{seeds}{i}")], "") for i in range(len(errors))]
        return [Comparison(group, group, each, each) for group, each in zip(groups, made, strict=True)]

    asked = mains(0.30, 0.45, 0.40, 0.25)
    p = [each.test.p or 0 for each in asked]
    assert list(holm(asked + mains(0.1, seeds=(1, 3))).values()) == pytest.approx(
        [4 * p[3], 3 * p[0], 2 * p[2], max(2 * p[2], p[1])]
    )
    assert list(holm(mains(9.0, 8.0)).values()) == [1, 1]
    assert holm([]) == {}


def test_equal_scores_of_all_seeds_give_no_interval(pair):
    """Three equal scores do not say that a fourth would be equal."""
    same = [Group([replace(record, metrics={"test": {"f1": f1}, "dev": {"f1": f1}}) for record in group.records], "")
            for group, f1 in zip(pair, (82.0, 80.0), strict=True)]  # fmt: skip
    found = gain(without_items(same[0]), without_items(same[1]))
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
