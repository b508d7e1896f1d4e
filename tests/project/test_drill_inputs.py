"""A cut of the drill of inputs: mutated files of every kind end in a result or in one line."""

import random

import pytest

from tests.drill import inputs
from tests.drill.inputs import KINDS, TRIALS
from tests.drill.mutations import mutated
from tests.drill.trial import FAULT, ONE_LINE, RESULT

pytestmark = pytest.mark.slow

FEW, MANY = 25, 150  # of 20,000


@pytest.fixture(autouse=True)
def no_fingerprints(monkeypatch):
    """Of data sets, by which the library names files that nothing here writes: they take a third of the time."""
    monkeypatch.setattr("datasets.arrow_dataset.generate_fingerprint", lambda dataset: "")


@pytest.mark.parametrize("kind", TRIALS)
def test_mutated_files_end_in_a_result_or_in_one_line(kind):
    """A few, and more until both have come: the drill is neither too mild nor too rough."""
    seen = set()
    for number in range(MANY):
        outcome, told = TRIALS[kind](random.Random(f"{kind} {number}"))
        assert outcome != FAULT, told
        seen.add(outcome)
        if number >= FEW and len(seen) == 2:
            break
    assert seen == {RESULT, ONE_LINE}


def test_mutations_are_those_of_their_seed():
    content = str(KINDS["srl"].files["train.conll"]).encode()
    one, again, other = ([mutated(content, random.Random(seed + i)) for i in range(200)] for seed in (0, 0, 1000))
    assert one == again != other
    assert sum(each != content for each in one) > 180


def test_a_fault_is_told_with_what_was_read(monkeypatch):
    monkeypatch.setitem(KINDS, "text", KINDS["text"]._replace(read=lambda paths: 1 / 0))
    outcome, told = inputs.trial(KINDS["text"], random.Random(1))
    assert outcome == FAULT
    assert "text.txt" in told
    assert "ZeroDivisionError" in told
