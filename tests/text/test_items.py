"""Items of a split: their sums, their clusters, their order; and those of every metric of the project."""

import random

import numpy as np
import pytest

from elmo_bench.metrics.accuracy import Accuracy
from elmo_bench.metrics.items import Items, Tally, smallest
from tasks.coref.metric import CorefMetric
from tasks.ner.metric import NerMetric
from tasks.snli.metric import SnliMetric
from tasks.squad.metric import SquadMetric
from tasks.srl.metric import SrlMetric


def same(one: Items, other: Items) -> None:
    """Equal to the last bit, types of numbers included."""
    assert list(one.statistics) == list(other.statistics)
    arrays = [(*part.statistics.values(), part.rows, part.clusters) for part in (one, other)]
    for x, y in zip(*arrays, strict=True):
        assert x.dtype == y.dtype
        np.testing.assert_array_equal(x, y)
    assert one.names == other.names


def numbers(*values: int) -> np.ndarray:
    return np.array(values)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([True, False], np.uint8), ([70000, 3], np.uint32), ([-1, 200], np.int16), ([1.0, 255.0], np.uint8),
        ([0.5, 1], np.float64), ([], np.uint8), ([float("nan")], np.float64),
    ],
)  # fmt: skip
def test_the_smallest_type_that_holds_all_numbers(values, kind):
    found = smallest(values)
    assert found.dtype == kind
    np.testing.assert_array_equal(found, values)


@pytest.mark.parametrize(
    ("statistics", "rows", "clusters", "names", "message"),
    [
        ({"right": numbers(1)}, numbers(0, 1), numbers(0, 1), (), r"right of shape \(1,\) for 2 examples"),
        ({"right": np.array(["a", "b"])}, numbers(0, 1), numbers(0, 1), (), "right holds <U1"),
        ({"right": np.array([1.0, np.nan])}, numbers(0, 1), numbers(0, 1), (), "not finite"),
        ({"right": numbers(1, 0)}, numbers(0, 1), numbers(1, 0), (), "numbered from 0"),
        ({"right": numbers(1, 0)}, numbers(0, 1), numbers(0, 1), ("a",), "1 names of 2 clusters"),
    ],
)
def test_arrays_that_do_not_fit_together_are_refused(statistics, rows, clusters, names, message):
    with pytest.raises(ValueError, match=message):
        Items(statistics, rows, clusters, names)


def test_sums_are_rounded_once():
    items = Items({"f1": np.array([1e16, 1.0, -1e16, 0.1]), "n": np.full(4, 255, np.uint8)}, np.arange(4), np.arange(4))
    assert items.totals() == {"f1": 1.1, "n": 1020.0}
    assert all(type(value) is float for value in items.totals().values())


def test_items_are_put_in_the_order_of_the_rows():
    tally = Tally("x")
    for prediction, row in tally.pairs([10, 20, 30], [("b", 1), ("c", 2), ("a", 1)]):
        name, number = row
        for i in range(number):
            tally.add(prediction + i, cluster=name)
    items = tally.items()
    assert (items.rows.tolist(), items.clusters.tolist(), items.names) == ([0, 1, 1, 2], [0, 1, 1, 2], ("b", "c", "a"))
    items = items.in_row_order(numbers(1, 2, 0))  # row 1 of the split came first, row 0 last
    assert items.statistics["x"].tolist() == [30, 10, 20, 21]
    assert (items.rows.tolist(), items.clusters.tolist(), items.names) == ([0, 1, 2, 2], [0, 1, 2, 2], ("a", "b", "c"))


@pytest.mark.parametrize(
    ("keys", "clusters", "names"),
    [
        (["a", "b", "a"], [0, 1, 0], ("a", "b")),
        ([7, 7, 2], [0, 0, 1], ()),
        ([None, None, None], [0, 1, 2], ()),
        (["a", None, "a"], [0, 1, 0], ()),
        ([("the", "premise"), 3, ("the", "premise")], [0, 1, 0], ()),
    ],
)
def test_clusters_are_named_where_all_keys_are_strings(keys, clusters, names):
    tally = Tally("x")
    for key in keys:
        tally.add(1, cluster=key)
    assert (tally.items().clusters.tolist(), tally.items().names) == (clusters, names)


# The metrics of the tasks: a metric, predictions and rows, what is counted, and the clusters.


def frames(*spans: tuple[str, int, int]) -> dict:
    return {"frames": [{"arguments": [{"label": label, "start": start, "end": end} for label, start, end in spans]}]}


def proposition(tags: str, sentence: int) -> dict:
    return {"tags": [tags.split()], "sentence": sentence}


CASES = {
    "ner": (
        NerMetric,
        [["B-X", "O"], ["O"], ["B-X", "B-Y"]],
        [{"tags": ["B-X", "B-Y"]}, {"tags": ["O"]}, {"tags": ["B-Y", "B-Y"]}],
        {"tp": [1, 0, 1], "fp": [0, 0, 1], "fn": [1, 0, 1]}, [0, 1, 2], (),
    ),
    "srl": (
        SrlMetric,
        [frames(("A0", 0, 1), ("V", 1, 2)), frames(("A0", 0, 1)), frames()],
        [proposition("B-A0 B-V", 4), proposition("B-A1 B-V", 4), proposition("B-V B-A1", 9)],
        {"tp": [1, 0, 0], "fp": [0, 1, 0], "fn": [0, 1, 1]}, [0, 0, 1], (),
    ),
    "coref": (
        CorefMetric,
        [{"clusters": [[[0, 0], [1, 1]]]}, {"clusters": []}, {"clusters": [[[0, 0], [1, 1], [2, 2]]]}],
        [
            {"clusters": [[[0, 0], [1, 1]]], "document": "a"},
            {"clusters": [[[0, 0], [1, 1]]], "document": "b"},
            {"clusters": [[[0, 0], [1, 1]]], "document": "a"},
        ],
        {}, [0, 1, 0], ("a", "b"),  # its counts are compared with those of the reference scorer
    ),
    "squad": (
        SquadMetric,
        [{"answer": "Ida Bell"}, {"answer": "in May"}, {"answer": "Ida"}],
        [
            {"answers": ["Ida Bell"], "title": "One"},
            {"answers": ["May", "June"], "title": "One"},
            {"answers": ["Bell"], "title": "Two"},
        ],
        {"exact_match": [1, 0, 0], "f1": [1, 2 / 3, 0], "questions": [1, 1, 1]}, [0, 0, 1], ("One", "Two"),
    ),
    "snli": (
        SnliMetric,
        ["neutral", "neutral", "neutral"],
        [
            {"label": "neutral", "premise": ["a", "b"]},
            {"label": "entailment", "premise": ["a"]},
            {"label": "neutral", "premise": ["a", "b"]},
        ],
        {"right": [1, 0, 1], "total": [1, 1, 1]}, [0, 1, 0], (),
    ),
    "sst5": (
        Accuracy, [1, 2, 3], [{"label": 1}, {"label": 3}, {"label": 3}],
        {"right": [1, 0, 1], "total": [1, 1, 1]}, [0, 1, 2], (),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_each_metric_counts_of_an_item(case):
    make, predictions, rows, statistics, clusters, names = CASES[case]
    metric = make()
    metric.update(predictions[:2], rows[:2])
    metric.update(predictions[2:], rows[2:])
    items = metric.items()
    for name, values in statistics.items():
        assert items.statistics[name].tolist() == pytest.approx(values)
    assert (items.rows.tolist(), items.clusters.tolist(), items.names) == ([0, 1, 2], clusters, names)


@pytest.mark.parametrize("case", CASES)
def test_in_whatever_order_rows_come_items_and_metric_are_the_same_to_the_last_bit(case):
    make, predictions, rows, *_ = CASES[case]
    rng, expected = random.Random(case), make()
    expected.update(predictions * 20, rows * 20)
    order = rng.sample(range(20 * len(rows)), 20 * len(rows))
    shuffled = make()
    for i in order:
        shuffled.update([predictions[i % len(rows)]], [rows[i % len(rows)]])
    assert shuffled.compute() == expected.compute()
    same(shuffled.items().in_row_order(np.array(order)), expected.items().in_row_order(np.arange(20 * len(rows))))


@pytest.mark.parametrize("case", CASES)
def test_the_metric_of_many_sums_is_that_of_the_rows_of_each(case):
    """Items drawn with repetition, as a bootstrap does, against a metric that sees the drawn rows."""
    make, predictions, rows, *_ = CASES[case]
    metric = make()
    metric.update(predictions, rows)
    draws = np.random.default_rng(1).integers(0, 4, (50, len(metric.items())))
    draws[0] = 0  # nothing at all
    many = make.from_totals({name: draws @ values.astype(float) for name, values in metric.items().statistics.items()})
    for i, draw in enumerate(draws):
        drawn = make()
        for number, prediction, row in zip(draw, predictions, rows, strict=True):
            drawn.update([prediction] * number, [row] * number)
        assert {name: values[i] for name, values in many.items()} == pytest.approx(drawn.compute(), abs=1e-9)


def test_several_propositions_of_a_row_are_several_items():
    metric = SrlMetric()
    answer = {"frames": [*frames(("A0", 0, 1))["frames"], *frames()["frames"]]}
    metric.update([answer], [{"tags": [["B-A0", "O"], ["O", "B-A0"]]}])
    items = metric.items()
    assert (items.rows.tolist(), items.clusters.tolist()) == ([0, 0], [0, 1])  # without the sentence's number


@pytest.mark.parametrize("case", CASES)
def test_of_nothing_the_metric_is_zero(case):
    metric = CASES[case][0]()
    assert len(metric.items()) == 0
    assert set(metric.compute().values()) == {0.0}
