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
from tests.drill import inputs
from tests.drill.__main__ import main
from tests.drill.inputs import KINDS, TRIALS
from tests.drill.mutations import mutated
from tests.drill.trial import EQUAL, FAULT, ONE_LINE, RESULT, SHOWN, Area, chance, conduct, of_error

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


# A cut of the drill of inputs.


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
