"""A cut of the drill of inputs: mutated files of every kind end in a result or in one line."""

from __future__ import annotations

import random

import pytest

from tests.drill import inputs
from tests.drill.inputs import KINDS, TRIALS
from tests.drill.mutations import mutated
from tests.drill.trial import FAULT, ONE_LINE, RESULT

pytestmark = pytest.mark.slow

CUT = 150  # of 20,000


@pytest.fixture(autouse=True)
def no_fingerprints(monkeypatch):
    """Of data sets, by which the library names files that nothing here writes: they take a third of the time."""
    monkeypatch.setattr("datasets.arrow_dataset.generate_fingerprint", lambda dataset: "")


@pytest.mark.parametrize("kind", TRIALS)
def test_mutated_files_end_in_a_result_or_in_one_line(kind):
    outcomes = [TRIALS[kind](random.Random(f"{kind} {number}")) for number in range(CUT)]
    assert [told for outcome, told in outcomes if outcome == FAULT] == []
    assert {outcome for outcome, _ in outcomes} == {RESULT, ONE_LINE}  # the drill is neither too mild nor too rough


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
