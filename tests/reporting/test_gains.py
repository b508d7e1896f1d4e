"""Gains, their intervals and tests: against brute force, by hand, and in simulation."""

from __future__ import annotations

import itertools
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from elmo_bench.metrics.f1 import precision_recall_f1
from elmo_bench.metrics.items import Items, smallest
from elmo_bench.records import items, store
from elmo_bench.reporting.statistics import evidence, resampling
from elmo_bench.reporting.statistics.gains import Gain, gain, holm, shown_by
from elmo_bench.reporting.statistics.groups import Group
from elmo_bench.reporting.statistics.intervals import Arm, interval
from elmo_bench.reporting.statistics.outcomes import Comparison
from elmo_bench.reporting.tables import comparisons
from elmo_bench.system.errors import UserError
from tests.records.test_records import at, fake

pytestmark = pytest.mark.usefixtures("first_versions", "plain_pair")

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
    """A record on disk with its items of both splits; its scores are theirs."""
    metrics = precision_recall_f1(scored.totals())
    record = fake(where, seed, metrics={"dev": metrics, "test": metrics}, **more)
    record.config["task"]["metric"] = METRIC
    path = at(folder, record)
    store.write(path, record, {items.path_of(path): items.packed({"dev": scored, "test": scored})})
    return store.read(path)


def arm(folder, where, seeds=(1, 2, 3), better=0.0, **shape):
    return Group([saved(folder, seed, sentences(seed, better, **shape), where) for seed in seeds], where)


def without_items(group):
    return Group([replace(record, path=None) for record in group.records], group.name)


def bounds(found: Gain) -> tuple[float, float]:
    assert found.low is not None
    assert found.high is not None
    return found.low, found.high


def half(found: Gain) -> float:
    low, high = bounds(found)
    return (high - low) / 2


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
    one = evidence.Evidence(scored, precision_recall_f1, "f1")
    for draw, value in list(zip(resampling.cluster_draws(4), one.drawn, strict=True))[:50]:
        chosen = [i for cluster, times in enumerate(draw) for _ in range(times) for i in range(12) if i // 3 == cluster]
        totals = {name: float(values[chosen].sum()) for name, values in scored.statistics.items()}
        assert value == precision_recall_f1(totals)["f1"]


def test_resampled_seeds_vary_as_new_ones_do():
    scores = np.array([60.0, 62.0, 65.0])
    noise = resampling.seed_noise(scores, 3, 0)
    assert noise.mean() == pytest.approx(0, abs=0.1)
    assert noise.var() == pytest.approx(scores.var(ddof=1) / 3, rel=0.06)
    assert not resampling.seed_noise(scores[:1], 1, 0).any()
    assert np.corrcoef(noise, resampling.seed_noise(scores, 3, 1))[0, 1] == pytest.approx(0, abs=0.1)


def test_the_permutation_test_is_exact_where_it_can_be():
    draw = np.random.default_rng(3)
    one, other = (np.stack([draw.integers(0, 4, 6) for _ in range(3)], axis=1).astype(float) for _ in range(2))

    def f1(sums):
        return np.array([precision_recall_f1(dict(zip(("tp", "fp", "fn"), row, strict=True)))["f1"] for row in sums])

    def difference(swapped):
        a, b = np.where(swapped[:, None], other, one), np.where(swapped[:, None], one, other)
        return (f1(a.sum(0)[None]) - f1(b.sum(0)[None]))[0]

    differences = np.array([difference(np.array(swap)) for swap in itertools.product([False, True], repeat=6)])
    higher, lower = (differences >= differences[0] - 1e-9).mean(), (differences <= differences[0] + 1e-9).mean()
    assert resampling.permutation_p(one, other, f1) == pytest.approx(min(1, 2 * min(higher, lower)))
    assert resampling.permutation_p(one, one, f1) == 1
    assert resampling.permutation_p(one, np.concatenate([other[:1], one[1:]]), f1) == 1


# Intervals.


def same_arms(random: np.random.Generator, noise: float, seeds: int = 3, clusters: int = 60) -> list[Arm]:
    """Two arms that do not differ, scored by F1 on the same random items.

    An item has a difficulty of its own for all runs, for each arm and for each run, a run a random effect of deviation
    `noise`; all in logits.
    """
    spans, ease = random.integers(1, 4, clusters), random.normal(0, 1.5, clusters)
    ease = ease + random.normal(0, 0.5, (2, 1, clusters)) + random.normal(0, 0.5, (2, seeds, clusters))
    logits = ease + random.normal(0, noise, (2, seeds, 1))
    right = random.binomial(spans, 1 / (1 + np.exp(-logits)))  # (2, seeds, clusters)
    spurious = random.binomial(spans, 0.5 / (1 + np.exp(logits)))
    made = []
    for tables in np.stack([right, spurious, spans - right], axis=-1).astype(float):  # (seeds, clusters, 3)
        drawn = np.stack([f1_of(resampling.resampled_sums(table)) for table in tables])
        made.append(Arm(f1_of(tables.sum(1)), drawn, clusters))
    return made


def f1_of(sums: np.ndarray) -> np.ndarray:
    """(n, 3) true positives, false positives, false negatives -> (n,) percent."""
    return 200 * sums[:, 0] / np.maximum(2 * sums[:, 0] + sums[:, 1] + sums[:, 2], 1)


@pytest.mark.slow
@pytest.mark.usefixtures("few_draws")
@pytest.mark.parametrize(("noise", "most"), [(0.0, 1), (0.05, 1), (0.2, 1), (0.5, 0.98)])
def test_without_a_difference_the_intervals_of_three_seeds_hold_0(noise, most):
    """As often as they say, and where seeds vary much not much more often."""
    random = np.random.default_rng([3, 60, int(1000 * noise)])
    found = [interval(*same_arms(random, noise)) for _ in range(300)]
    held = [low is not None and high is not None and low <= 0 <= high for low, high in found]
    assert 0.93 <= np.mean(held) <= most


def test_a_gain_has_an_interval_and_tests(pair):
    found = gain(*pair)
    means = [np.mean([record.metrics["test"]["f1"] for record in group.records]) for group in pair]
    assert found.mean == pytest.approx(means[0] - means[1])
    low, high = bounds(found)
    assert 0 < low < found.mean < high
    assert found.mean - low == pytest.approx(high - found.mean)
    assert [p is not None and p < 0.1 for p in found.p_items] == [True] * 3
    assert found.seeds == (3, 3)
    assert found.note == ""
    assert gain(*pair) == found
    assert gain(*pair, split="dev").mean == pytest.approx(found.mean)


def test_welch_and_seeds_alone_where_there_are_no_items(pair):
    found = gain(without_items(pair[0]), without_items(pair[1]))
    scores = [[record.metrics["test"]["f1"] for record in group.records] for group in pair]
    expected: Any = stats.ttest_ind(*scores, equal_var=False)
    interval = expected.confidence_interval()
    assert found.p_seeds == pytest.approx(expected.pvalue)
    assert found.low == pytest.approx(interval.low, abs=0.6)
    assert found.high == pytest.approx(interval.high, abs=0.6)
    assert found.p_items == [None] * 3
    assert found.smallest is None
    assert "over seeds alone (no items recorded)" in found.note


def test_one_seed_in_each_arm_is_about_the_items(tmp_path):
    one, other = arm(tmp_path, "input", [1], 0.8), arm(tmp_path, "none", [1])
    found = gain(one, other)
    drawn = [evidence.of_run(group.first, "test", "f1").drawn for group in (one, other)]
    deviation = (drawn[0] - drawn[1]).std(ddof=1)
    assert half(found) == pytest.approx(stats.t.ppf(0.975, 149) * deviation)
    assert found.smallest == pytest.approx((stats.norm.ppf(0.975) + stats.norm.ppf(0.8)) * deviation)
    assert found.p_seeds is None
    assert "over items alone" in found.note
    nothing = gain(without_items(one), without_items(other))
    assert (nothing.low, nothing.high) == (None, None)
    assert nothing.note == "none (one seed, no items recorded)"


def test_a_single_seed_is_taken_to_vary_as_the_other_arm_does(tmp_path):
    many, single = arm(tmp_path, "input", better=1.5), arm(tmp_path, "none", [2])
    found = gain(without_items(many), without_items(single))
    deviation = np.std([record.metrics["test"]["f1"] for record in many.records], ddof=1)
    expected = stats.t.ppf(0.975, 2) * deviation * (1 / 3 + 1) ** 0.5
    assert half(found) == pytest.approx(expected, rel=0.05)
    assert found.note.endswith("is taken to vary as the other arm's")
    assert [p is None for p in gain(many, single).p_items] == [True, False, True]


def test_clusters_widen_an_interval(tmp_path):
    wide = [Group([_alike(tmp_path / str(size), where, size)], where) for size in (1, 8) for where in ("input", "none")]
    sizes = [half(found) for found in (gain(wide[0], wide[1]), gain(wide[2], wide[3]))]
    assert sizes[1] > 1.5 * sizes[0]


def _alike(folder, where, size):
    """A run on documents of eight sentences, on all of which it does equally well; told apart by `size`."""
    right = np.repeat(np.random.default_rng(where == "input").integers(0, 4, 15), 8)
    counts = {"tp": right, "fp": 0 * right, "fn": 3 - right}
    arrays = {name: smallest(values) for name, values in counts.items()}
    return saved(folder, 1, Items(arrays, smallest(np.arange(120)), smallest(np.arange(120) // size)), where)


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
            precision_recall_f1({name: float(values[kept].sum()) for name, values in scored.statistics.items()})["f1"]
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
    found = gain(arm(tmp_path, "input"), arm(tmp_path, "none", **other))
    assert "over seeds alone" in found.note
    assert found.p_items == [None] * 3


def test_items_of_another_version_of_the_metric_are_left_out(tmp_path, pair):
    treated, control = pair
    changed = treated.records[0]
    changed.metrics["test"]["f1"] += 1.0
    assert "over seeds alone" in gain(treated, control).note
    unknown = control.records[0]
    for name in ("no.such.Metric", "tasks.ner.metric.NoSuch", "this.Poem"):
        unknown.config["task"]["metric"] = {"_target_": name}
        assert "over seeds alone" in gain(arm(tmp_path, "input"), control).note
    assert "this" not in sys.modules  # no record has code imported that no page names


def test_a_damaged_file_of_items_is_named(pair):
    path = items.path_of(pair[0].first.path)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(UserError, match=r"items\.npz: not a readable file of items"):
        gain(*pair)


def test_equal_seeds_have_no_welch(pair):
    equal: Any = {"test": {"f1": 50.0}}
    flat = [Group([replace(record, metrics=equal) for record in group.records], "flat") for group in pair]
    found = gain(flat[0], flat[1])
    assert (found.mean, found.low, found.high, found.p_seeds) == (0, 0, 0, None)


# Tables.


def with_p(*p_seeds):
    return [Gain(1.0, 0.0, 2.0, [], p, None, None, (3, 3), "") for p in p_seeds]


def test_holm_by_hand():
    corrected = [each.p_holm for each in holm(with_p(0.01, 0.04, None, 0.03, 0.005))]
    assert corrected == pytest.approx([0.03, 0.06, None, 0.06, 0.02])
    assert [each.p_holm for each in holm(with_p(0.7, 0.9))] == [1, 1]
    single = Gain(1.0, None, None, [0.02], None, None, None, (1, 1), "")
    assert [each.p_holm for each in holm([single, *with_p(0.5)])] == [0.04, 0.5]


def test_what_seeds_can_show():
    assert "cannot go below p = 0.25" in shown_by(3)
    assert "cannot go below p = 0.062" in shown_by(5)
    assert "they cannot show" in shown_by(5)
    assert "they can show" in shown_by(6)
    assert "nothing about other seeds" in shown_by(1)
