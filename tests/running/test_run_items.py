"""The per-example results of a run: their file, and what a run leaves of them."""

import json
import re
import time
from pathlib import Path

import numpy as np
import pytest

from elmo_bench.metrics.accuracy import Accuracy
from elmo_bench.metrics.items import Items, smallest
from elmo_bench.records import items as run_items
from elmo_bench.records import store
from elmo_bench.records.items import DEV, PREDICTIONS
from elmo_bench.records.record import Record
from tests import toy
from tests.damage import refusals
from tests.fakes import cases, refuses, table
from tests.text.test_items import same

pytestmark = pytest.mark.slow


def some(n: int = 50, named: bool = False) -> Items:
    draw = np.random.default_rng(n)
    clusters = smallest(np.arange(n) // 4)
    return Items(
        {"right": smallest(draw.integers(0, 2, n)), "total": np.ones(n, np.uint8), "f1": draw.random(n)},
        smallest(np.arange(n) // 2),
        clusters,
        tuple(f"article {i} é" for i in range(int(clusters.max()) + 1)) if named else (),
    )


def alone(n: int) -> Items:
    """Each row an example, each example a cluster."""
    return Items({"right": np.ones(n, np.uint8)}, smallest(np.arange(n)), smallest(np.arange(n)))


# The file.


def test_items_come_back_as_they_were(tmp_path):
    path = run_items.path_of(tmp_path / "open" / "ner" / "abc-1.json")
    assert path == tmp_path / "open" / "ner" / "abc-1.items.npz"
    written = {"dev": some(300, named=True), "test": some(7)}
    run_items.write(path, written)
    read = run_items.read(path)
    assert list(read) == ["dev", "test"]
    for split in written:
        same(read[split], written[split])
    assert [file.name for file in path.parent.iterdir()] == ["abc-1.items.npz"]


def test_what_only_counts_takes_no_room(tmp_path):
    run_items.write(tmp_path / "x.items.npz", {"dev": alone(70000), "test": alone(70000)})
    assert (tmp_path / "x.items.npz").stat().st_size < 2000
    items = run_items.read(tmp_path / "x.items.npz")["test"]
    assert items.clusters.tolist() == items.rows.tolist() == list(range(70000))


def test_equal_items_are_equal_bytes_at_any_time(tmp_path, monkeypatch):
    first, second = tmp_path / "first", tmp_path / "second"
    run_items.write(first, {"dev": some(), "test": some(9, named=True)})
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 1e6)
    run_items.write(second, {"dev": some(), "test": some(9, named=True)})
    assert first.read_bytes() == second.read_bytes()


def test_no_damage_changes_the_items_that_are_read(tmp_path):
    path = tmp_path / "x.items.npz"
    run_items.write(path, {"dev": some(), "test": some()})
    size = path.stat().st_size
    said = refusals(path, lambda: run_items.packed(run_items.read(path)), 200, (0, size // 2, size - 1))
    assert len(said) > 120
    assert all(
        re.search(r"x\.items\.npz: not a readable file of per-example results .* run again", line) for line in said
    )


def test_a_file_of_something_else_is_named(tmp_path):
    path = tmp_path / "x.items.npz"
    with refuses(r"x\.items\.npz: no such file of per-example results"):
        run_items.read(path)
    path.write_text("{}")
    with refuses(r"x\.items\.npz: not a readable file of per-example results .* run again"):
        run_items.read(path)
    for arrays, message in table("""
        {"a": [0, 1, 2]}                                                   | not a readable file of per-example results
        {"format": 9}                                                      | format 9, written by another version
        {"format": 1, "dev/rows": [0, 1, 2]}                               | not a readable file of per-example results
        {"format": 1, "dev/statistics/x": [0, 1, 2], "dev/rows": [0, 1]}   | shape
        {"format": 1, "dev/statistics/x": [{}]}                            | not a readable file of per-example results
    """):
        with open(path, "wb") as file:
            np.savez(file, **{name: np.array(value) for name, value in arrays.items()})  # type: ignore[arg-type]
        with refuses(message):
            run_items.read(path)


def test_items_must_give_the_recorded_metrics():
    items = {"dev": some(10), "test": some(20)}
    metrics = {split: Accuracy.from_totals(part.totals()) for split, part in items.items()}
    run_items.check(items, metrics, Accuracy.from_totals)
    run_items.check(items, json.loads(json.dumps(metrics)), Accuracy.from_totals)
    for wrong, message in (
        ({"dev": metrics["dev"]}, "per-example results of dev, test for metrics of dev"),
        ({**metrics, "test": {"f1": 1.0}}, "test: the examples give accuracy [0-9.]+, and not f1 1.0"),
        (
            {**metrics, "test": {"accuracy": metrics["test"]["accuracy"] + 1e-5}},
            "test: the .* accuracy .*, and not accu",
        ),
        ({**metrics, "dev": {"accuracy": float("nan")}}, "dev: the examples give accuracy .*, and not accuracy nan"),
    ):
        with pytest.raises(ValueError, match=message):
            run_items.check(items, wrong, Accuracy.from_totals)


@cases("""
    name        | told
    NamedMetric | accuracy [0-9.]+, and not accuracy [0-9.]+, sentences 42.0, as its compute
    OtherMetric | accuracy [0-9.]+, and not accuracy [0-9.]+, as its compute
""")
def test_a_metric_that_differs_from_its_items_is_refused_before_training(bench, monkeypatch, name, told):
    monkeypatch.setattr("elmo_bench.running.module.BenchModule.training_step", lambda *_: pytest.fail("it was trained"))
    with refuses(rf"task.metric: the items of {name} give {told}"):
        bench.train("arm=baseline", "bilm=none", f"task.metric._target_=tests.toy.{name}")


def test_a_metric_is_asked_about_right_answers_where_the_model_has_none(bench, monkeypatch):
    monkeypatch.setattr(toy.ToyHead, "decode", lambda self, scores, batch: [["C"] * len(r["tags"]) for r in batch.rows])
    with refuses("give accuracy 100.0, and not accuracy 1.0"):
        bench.train("arm=baseline", "bilm=none", "task.metric._target_=tests.toy.OtherMetric")


# What a run leaves.


def left(results: Path) -> tuple[Record, Path, Path]:
    """The record of the only run, its file of per-example results, and its work folder."""
    (path,) = results.glob("runs/*/*/*.json")
    record = store.read(path)
    return record, run_items.path_of(path), (results / record.checkpoint).parent


@pytest.mark.usefixtures("stand_in")
def test_a_run_keeps_its_items_and_its_predictions_for_test_in_the_order_of_the_splits(bench):
    bench.train("elmo.where=both", "task.fit.epochs=1")
    record, path, work = left(bench.results)
    items = run_items.read(path)
    run_items.check(items, record.metrics, toy.ToyMetric.from_totals)
    rows = {split: toy.read(bench.data / "toy" / f"{split}.txt") for split in ("dev", "test")}
    for split in rows:
        assert items[split].statistics["all"].tolist() == [len(row["tokens"]) for row in rows[split]]
    assert [file.name for file in path.parent.iterdir() if file.name.startswith(".")] == []
    metric = toy.ToyMetric()
    metric.update([json.loads(line) for line in (work / PREDICTIONS).read_text().splitlines()], rows["test"])
    assert metric.compute() == record.metrics["test"]
    same(metric.items().in_row_order(np.arange(40)), items["test"])


@pytest.mark.usefixtures("stand_in")
def test_a_half_finished_run_without_its_items_says_what_to_do(bench):
    (bench.died("task.fit.epochs=1") / DEV).unlink()
    with refuses(r"dev\.items\.npz: no such file of per-example results; start the run again with force=true"):
        bench.train("task.fit.epochs=1")
    assert not list(bench.results.rglob("runs/*"))
    bench.train("task.fit.epochs=1", "force=true")
    assert left(bench.results)[1].is_file()
