"""Items of a split: their sums, their clusters, their order; and those of every metric of the project."""

import json
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
from tests.fakes import cases


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


@cases("""
    values        | kind
    [true, false] | uint8
    [70000, 3]    | uint32
    [-1, 200]     | int16
    [1.0, 255.0]  | uint8
    [0.5, 1]      | float64
    []            | uint8
    [NaN]         | float64
""")
def test_the_smallest_type_that_holds_all_numbers(values, kind):
    found = smallest(values)
    assert found.dtype == kind
    np.testing.assert_array_equal(found, values)


@cases(r"""
    right      | clusters | names | message
    [1]        | [0, 1]   | []    | right of shape \(1,\) for 2 examples
    ["a", "b"] | [0, 1]   | []    | right holds <U1
    [1.0, NaN] | [0, 1]   | []    | not finite
    [1, 0]     | [1, 0]   | []    | numbered from 0
    [1, 0]     | [0, 1]   | ["a"] | 1 names of 2 clusters
""")
def test_arrays_that_do_not_fit_together_are_refused(right, clusters, names, message):
    with pytest.raises(ValueError, match=message):
        Items({"right": np.array(right)}, np.arange(2), np.array(clusters), tuple(names))


def test_sums_are_rounded_once():
    items = Items({"f1": np.array([1e16, 1.0, -1e16, 0.1]), "n": np.full(4, 255, np.uint8)}, np.arange(4), np.arange(4))
    assert items.totals() == {"f1": 1.1, "n": 1020.0}
    assert all(type(value) is float for value in items.totals().values())


def places(items: Items) -> tuple[list[int], list[int], tuple[str, ...]]:
    return items.rows.tolist(), items.clusters.tolist(), items.names


def test_items_are_put_in_the_order_of_the_rows():
    tally = Tally("x")
    for prediction, row in tally.pairs([10, 20, 30], [("b", 1), ("c", 2), ("a", 1)]):
        name, number = row
        for i in range(number):
            tally.add(prediction + i, cluster=name)
    items = tally.items()
    assert places(items) == ([0, 1, 1, 2], [0, 1, 1, 2], ("b", "c", "a"))
    items = items.in_row_order(numbers(1, 2, 0))  # row 1 of the split came first, row 0 last
    assert items.statistics["x"].tolist() == [30, 10, 20, 21]
    assert places(items) == ([0, 1, 2, 2], [0, 1, 2, 2], ("a", "b", "c"))


@cases("""
    keys               | clusters  | names
    ["a", "b", "a"]    | [0, 1, 0] | ["a", "b"]
    [7, 7, 2]          | [0, 0, 1] | []
    [null, null, null] | [0, 1, 2] | []
    ["a", null, "a"]   | [0, 1, 0] | []
    [["the", "premise"], 3, ["the", "premise"]] | [0, 1, 0] | []
""")
def test_clusters_are_named_where_all_keys_are_strings(keys, clusters, names):
    tally = Tally("x")
    for key in keys:
        tally.add(1, cluster=tuple(key) if isinstance(key, list) else key)
    assert (tally.items().clusters.tolist(), [*tally.items().names]) == (clusters, names)


# The metrics of the tasks: a metric, predictions and rows, what is counted, and the clusters.


METRICS = {"ner": NerMetric, "srl": SrlMetric, "coref": CorefMetric, "squad": SquadMetric, "snli": SnliMetric,
           "sst5": Accuracy}  # fmt: skip
# Those of coreference are compared with what the reference scorer counts.
CASES = json.loads("""
{"ner": [[["B-X", "O"], ["O"], ["B-X", "B-Y"]],
         [{"tags": ["B-X", "B-Y"]}, {"tags": ["O"]}, {"tags": ["B-Y", "B-Y"]}],
         {"tp": [1, 0, 1], "fp": [0, 0, 1], "fn": [1, 0, 1]}, [0, 1, 2], []],
 "srl": [[{"frames": [{"arguments": [{"label": "A0", "start": 0, "end": 1}, {"label": "V", "start": 1, "end": 2}]}]},
          {"frames": [{"arguments": [{"label": "A0", "start": 0, "end": 1}]}]},
          {"frames": [{"arguments": []}]}],
         [{"tags": [["B-A0", "B-V"]], "sentence": 4}, {"tags": [["B-A1", "B-V"]], "sentence": 4},
          {"tags": [["B-V", "B-A1"]], "sentence": 9}],
         {"tp": [1, 0, 0], "fp": [0, 1, 0], "fn": [0, 1, 1]}, [0, 0, 1], []],
 "coref": [[{"clusters": [[[0, 0], [1, 1]]]}, {"clusters": []}, {"clusters": [[[0, 0], [1, 1], [2, 2]]]}],
           [{"clusters": [[[0, 0], [1, 1]]], "document": "a"}, {"clusters": [[[0, 0], [1, 1]]], "document": "b"},
            {"clusters": [[[0, 0], [1, 1]]], "document": "a"}],
           {}, [0, 1, 0], ["a", "b"]],
 "squad": [[{"answer": "Ida Bell"}, {"answer": "in May"}, {"answer": "Ida"}],
           [{"answers": ["Ida Bell"], "title": "One"}, {"answers": ["May", "June"], "title": "One"},
            {"answers": ["Bell"], "title": "Two"}],
           {"exact_match": [1, 0, 0], "f1": [1, 0.6666666666666666, 0], "questions": [1, 1, 1]}, [0, 0, 1],
           ["One", "Two"]],
 "snli": [["neutral", "neutral", "neutral"],
          [{"label": "neutral", "premise": ["a", "b"]}, {"label": "entailment", "premise": ["a"]},
           {"label": "neutral", "premise": ["a", "b"]}],
          {"right": [1, 0, 1], "total": [1, 1, 1]}, [0, 1, 0], []],
 "sst5": [[1, 2, 3], [{"label": 1}, {"label": 3}, {"label": 3}],
          {"right": [1, 0, 1], "total": [1, 1, 1]}, [0, 1, 2], []]}
""")


@pytest.mark.parametrize("case", CASES)
def test_what_each_metric_counts_of_an_item(case):
    predictions, rows, statistics, clusters, names = CASES[case]
    metric = METRICS[case]()
    metric.update(predictions[:2], rows[:2])
    metric.update(predictions[2:], rows[2:])
    items = metric.items()
    for name, values in statistics.items():
        assert items.statistics[name].tolist() == pytest.approx(values)
    assert places(items) == ([0, 1, 2], clusters, tuple(names))


@pytest.mark.parametrize("case", CASES)
def test_in_whatever_order_rows_come_items_and_metric_are_the_same_to_the_last_bit(case):
    make, (predictions, rows, *_) = METRICS[case], CASES[case]
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
    make, (predictions, rows, *_) = METRICS[case], CASES[case]
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
    frames = [{"arguments": [{"label": "A0", "start": 0, "end": 1}]}, {"arguments": []}]
    metric.update([{"frames": frames}], [{"tags": [["B-A0", "O"], ["O", "B-A0"]]}])
    items = metric.items()
    assert (items.rows.tolist(), items.clusters.tolist()) == ([0, 0], [0, 1])  # without the sentence's number


@pytest.mark.parametrize("case", CASES)
def test_of_nothing_the_metric_is_zero(case):
    metric = METRICS[case]()
    assert len(metric.items()) == 0
    assert set(metric.compute().values()) == {0.0}
