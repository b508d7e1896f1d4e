"""The next thing is made while this one is used."""

import threading

import pytest

from elmo_bench.nn.packing import ahead
from tests.conftest import PATIENCE


def test_the_next_one_is_made_while_this_one_is_used_and_only_that():
    made, third = [], threading.Event()

    def things():
        for number in range(4):
            made.append((number, threading.current_thread().name))
            if number == 2:
                third.set()
            yield number

    found = ahead(things())
    assert next(found) == 0
    assert next(found) == 1
    assert third.wait(PATIENCE)  # nobody has asked for it yet
    assert [*found] == [2, 3]
    assert [number for number, _ in made] == [0, 1, 2, 3]
    assert {thread for _, thread in made} == {"ahead_0"}


def test_an_error_comes_in_the_place_of_what_was_not_made():
    def things():
        yield 1
        raise ValueError("no more")

    found = ahead(things())
    assert next(found) == 1
    with pytest.raises(ValueError, match="no more"):
        next(found)
    assert [*ahead(iter(()))] == []


def test_whoever_stops_early_leaves_no_thread():
    found = ahead(iter(range(100)))
    assert next(found) == 0
    found.close()  # type: ignore[attr-defined]
    assert not [each for each in threading.enumerate() if each.name.startswith("ahead")]
