"""Whole trainings on a device: the same tests on a CPU and, where there is one, on a GPU."""

import csv
import json
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import pytest
import torch

from elmo_bench.bilm.pretraining.recipe import Recipe
from elmo_bench.bilm.pretraining.trainer import Trainer
from elmo_bench.speed.measuring import read_sentences
from tests.fakes import for_each

PLACES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
OPTIONS = json.loads("""
{"lstm": {"dim": 16, "projection_dim": 8, "n_layers": 2, "cell_clip": 3, "proj_clip": 3},
 "char_cnn": {"embedding": {"dim": 4}, "filters": [[1, 4], [2, 8]], "max_characters_per_token": 50}}
""")

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("without_tf32")]


def pretrained(folder: Path, place: str, compile: bool = False, bfloat16: bool = False) -> list[float]:
    """The loss that the log of a short pretraining names."""
    sentences, _ = read_sentences(None, 60)
    folder.mkdir()
    (folder / "text.txt").write_text("".join(" ".join(sentence) + "\n" for sentence in sentences))
    recipe = Recipe(
        options=OPTIONS, text=[("text.txt", None)], heldout=[], vocabulary=50, tokens=50 * 4 * 5, rows=4, steps=5,
        negatives=8, bfloat16=bfloat16,
    )  # fmt: skip
    Trainer(recipe, folder, folder / "run", 1e9, compile, device=torch.device(place)).fit()
    with open(folder / "run" / "log.csv") as file:
        return [float(row["loss"]) for row in csv.DictReader(file)]


@pytest.fixture(scope="module")
def eager(tmp_path_factory) -> Callable[[str], list[float]]:
    """The losses of a place without compilation and in 32 bits."""
    return cache(lambda place: pretrained(tmp_path_factory.mktemp("eager") / place, place))


@pytest.mark.gpu
def test_a_pretraining_is_the_cpus(eager):
    assert len(eager("cpu")) == 1
    assert eager("cuda") == pytest.approx(eager("cpu"), rel=1e-3)


@pytest.mark.parametrize("place", PLACES)
def test_a_compiled_pretraining_is_the_eager_one(place, eager, tmp_path, monkeypatch):
    """On a CPU by Dynamo alone: the derivatives and the C++ of torch's own backend take long to compile."""
    if place == "cpu":
        monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="eager"))
    assert pretrained(tmp_path / "found", place, compile=True) == pytest.approx(eager(place), rel=1e-3)


@pytest.mark.parametrize("place", PLACES)
def test_a_pretraining_in_bfloat16_is_near(place, eager, tmp_path):
    assert pretrained(tmp_path / "found", place, bfloat16=True) == pytest.approx(eager(place), rel=0.03)


@pytest.mark.gpu
def test_a_run_from_data_to_record_is_the_cpus(bench, stand_in):
    """The command's whole way: cache, training, checkpoints, scores."""
    expected, record = (
        bench.train(f"trainer.accelerator={each}", f"results_root={bench.folder}/{each}", "task.head.dropout=0.0",
                    "elmo.dropout=0.0")
        for each in ("cpu", "gpu")
    )  # fmt: skip
    assert record.machine["accelerator"] == "cuda"
    assert record.history["loss"] == pytest.approx(expected.history["loss"], rel=1e-3)
    assert record.run == expected.run


@for_each("precision", "bf16-mixed 16-mixed")
@pytest.mark.gpu
def test_a_run_in_16_bits_learns(precision, bench, stand_in):
    record = bench.train("trainer.accelerator=gpu", f"trainer.precision={precision}")
    assert record.history["loss"][-1] < record.history["loss"][0]
