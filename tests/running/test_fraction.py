"""Training on a fraction of the data: which items, how many updates, and one clear line where it is too small."""

import json
import random
from itertools import pairwise

import pytest

from elmo_bench.running.data import passes
from elmo_bench.system.errors import UserError
from elmo_bench.text.part import WHOLE, Part
from tests import toy
from tests.fakes import cases, for_each, refuses

pytestmark = pytest.mark.slow

FRACTIONS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)


def test_a_fraction_is_not_rounded_down_by_one_item():
    assert all(len(Part(k / 100).of(range(100), "items")) == k for k in range(1, 101))


@for_each("seed", "1 2 77")
def test_smaller_parts_are_in_larger_ones_and_keep_the_order(seed):
    items = list(range(1000))
    parts = [Part(fraction, seed).of(items, "items") for fraction in FRACTIONS]
    assert [len(part) for part in parts] == [3, 10, 30, 100, 300, 1000]
    for smaller, larger in pairwise(parts):
        assert set(smaller) < set(larger)
    assert all(part == sorted(part) for part in parts)


def test_seeds_draw_different_parts_that_cover_the_data_evenly():
    drawn = [Part(0.1, seed).of(range(1000), "items") for seed in range(50)]
    assert len({tuple(part) for part in drawn}) == 50
    means = [sum(part) / len(part) for part in drawn]
    assert 470 < sum(means) / len(means) < 530


def test_the_order_of_a_seed_never_changes():
    """Or a recorded run could not be repeated."""
    assert Part(0.1, 1).of(range(50), "items") == [1, 7, 10, 17, 30]


def test_a_part_too_small_for_a_batch_names_the_smallest_fraction():
    with refuses(r"^fraction=0\.001: 0 of 300 sentences give 0 examples, fewer than a batch "
                       r"of 8; the smallest fraction is 0\.027$"):  # fmt: skip
        Part(0.001, 1, least=8).of(range(300), "sentences")
    with refuses("the smallest fraction is 1$"):
        Part(0.5, 1, least=400).of(range(300), "sentences")
    assert WHOLE._replace(least=400).of(range(300), "sentences") == list(range(300))


@pytest.mark.parametrize("trial", range(40))
def test_the_smallest_fraction_is_enough_and_a_smaller_one_is_not(trial):
    draw = random.Random(trial)
    examples = [draw.randint(0, 6) for _ in range(draw.randint(20, 3000))]
    least = draw.randint(1, 40)

    def enough(fraction):
        try:
            kept = Part(fraction, trial, least).of(examples, "sentences", int)
        except UserError as error:
            return float(str(error).split()[-1])
        assert sum(kept) >= least
        return None

    smallest = enough(1e-9)
    assert smallest is not None
    assert enough(smallest) is None
    assert enough(smallest * 0.9) is not None


@cases("""
    fraction | batches | least | expected
    1.0  | 100  | 1000 | 1
    0.1  | 10   | 1000 | 10
    0.01 | 1    | 1000 | 100
    0.5  | 500  | 1000 | 1
    0.1  | 1000 | 1000 | 1
    0.01 | 5    | 1000 | 50
    0.01 | 5    | 0    | 1
""")
def test_an_epoch_passes_over_a_small_part_several_times(bench, fraction, batches, least, expected):
    """Of 4 epochs: until there are `least` updates, or those of all the data."""
    run = bench.validated(f"fraction={fraction}", f"task.fit.least_updates={least}")
    assert passes(run, batches) == expected


@pytest.mark.usefixtures("stand_in")
def test_a_run_on_a_fraction_trains_on_it_alone(bench):
    changed = json.dumps(toy.read(bench.data / "toy" / "train.txt"))
    record = bench.train("fraction=0.5", "seed=3")
    assert record.settings["fraction"] == 0.5
    assert record.variant == {"fraction": 0.5}
    assert record.history["updates"] == [6, 12, 18, 24]  # two passes over 20 sentences in batches of 8
    kept = Part(0.5, 3).of(json.loads(changed), "sentences")
    assert record.history["tokens"] == [2 * sum(len(row["tokens"]) for row in kept)] * 4


@pytest.mark.usefixtures("stand_in")
def test_a_reader_that_knows_no_parts_still_reads_everything(bench, monkeypatch):
    whole = toy.ToyReader.load
    monkeypatch.setattr(toy.ToyReader, "load", lambda self: whole(self))
    assert bench.train("task.fit.epochs=1").updates == 5
    with refuses("the reader of task=toy can only read all"):
        bench.train("fraction=0.5")
