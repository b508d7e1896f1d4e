"""The drill itself: what counts as a fault, trials that hang or die, going on; and a small cut of it on our code."""

import os
import random
import signal
import sys
import time

import pytest

from elmo_bench.system.errors import UserError
from tests.command import Fork
from tests.conftest import clean_environment
from tests.damage import damage
from tests.drill.__main__ import main
from tests.drill.tally import SHOWN
from tests.drill.trial import EQUAL, FAULT, ONE_LINE, Area, chance, conduct, of_error

pytestmark = pytest.mark.slow


def equal(draw):
    return EQUAL, str(draw.random())


def mixed(draw):
    """A fault in a third of the trials, more or less."""
    return draw.choice(((EQUAL, ""), (ONE_LINE, "error"), (FAULT, "other numbers")))


def hangs(draw):
    time.sleep(60)
    return EQUAL, ""


def dies(draw):
    print("the last words", flush=True)
    os.kill(os.getpid(), signal.SIGKILL)


def raises(draw):
    return EQUAL, {}["absent"]


AREAS = [
    Area("sound", 100, equal),
    Area("mixed", 12, mixed),
    Area("hangs", 2, hangs, 0.5),
    Area("dies", 2, dies),  # type: ignore[arg-type]
    Area("raises", 2, raises),
]


@pytest.fixture
def drill(capsys):
    """Runs the areas of this module; returns the exit status and what was printed."""

    def run(*arguments: str) -> tuple[int, str]:
        capsys.readouterr()
        return main(["--jobs", "2", *arguments], AREAS), capsys.readouterr().out

    return run


def row(printed: str, area: str) -> list[int]:
    """Trials, equal, one line and anything else of an area."""
    (line,) = [line for line in printed.splitlines() if line.split("│")[1:2] and line.split("│")[1].strip() == area]
    return [int(cell) for cell in line.split("│")[2:-1]]


def test_every_outcome_has_its_column_and_a_fault_its_command(drill):
    status, printed = drill()
    assert status == 1
    assert row(printed, "sound") == [100, 100, 0, 0]
    trials, *outcomes = row(printed, "mixed")
    expected = [conduct(AREAS[1], 1, number)[0] for number in range(12)]
    assert (trials, outcomes) == (12, [expected.count(outcome) for outcome in (EQUAL, ONE_LINE, FAULT)])
    for number in [n for n, outcome in enumerate(expected) if outcome == FAULT][:SHOWN]:
        assert f"python -m tests.drill --seed 1 --area mixed --trial {number}\n" in printed
    for area, told in (("hangs", "did not end"), ("dies", "the last words"), ("raises", "KeyError: 'absent'")):
        assert row(printed, area) == [2, 0, 0, 2]
        assert f"{area}, trial 1:" in printed
        assert told in drill("--area", area, "--trial", "1")[1]


def test_a_trial_is_its_seeds_alone():
    assert chance(1, "a", 2).random() == chance(1, "a", 2).random()
    assert len({chance(*each).random() for each in ((1, "a", 2), (2, "a", 2), (1, "b", 2), (1, "a", 3))}) == 4


def test_one_line_for_the_user_is_no_fault_and_a_traceback_is_one():
    assert of_error(UserError("damaged; make it again", "file")) == (ONE_LINE, "file: damaged; make it again")
    assert of_error(UserError("damaged:", faults=["one", "two"]))[0] == FAULT
    assert of_error(KeyError("absent"))[0] == FAULT


def test_damage_always_changes_the_file_and_never_its_time(tmp_path):
    path = tmp_path / "file"
    for number in range(200):
        path.write_bytes(bytes(number + 1))
        before = path.stat().st_mtime_ns
        assert damage(path, random.Random(number)).startswith("file: ")
        assert path.read_bytes() != bytes(number + 1)
        assert path.stat().st_mtime_ns == before


def test_a_small_cut_of_the_drill_finds_nothing():
    """In a fork, which has one thread before it forks. With this seed, each area has a trial."""
    names = "kills:cache signals:cache disks:cache at-once:cache flips:resumed".split()
    cut = ["--seed", "3959", "--fraction", "0.04", "--jobs", "1", "--area", *names]
    status, out, said = Fork(lambda: sys.exit(main(cut)), clean_environment()).finish()
    assert status == 0, out + said
    assert all(row(out, name)[0] for name in names)
