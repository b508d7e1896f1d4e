"""What runs cost."""

from types import SimpleNamespace
from typing import Any

from elmo_bench.records.times import on_one_processor


def runs(*processors: str) -> list[Any]:
    return [SimpleNamespace(machine={"cpu": name}) for name in processors]


def test_times_are_compared_on_the_processor_that_all_have_and_most():
    first, second = runs("A", "A", "A", "B", "C"), runs("B", "C", "C", "D")
    assert on_one_processor(first, second) == ("C", [first[4:], second[1:3]])
    assert on_one_processor(first[:3], second) == ("", [first[:3], second])
