"""SNLI from files to predictions: a short training on invented pairs, then raw pairs through `predict`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from elmo_bench.commands.use.predict import predict
from elmo_bench.configuration import pages
from elmo_bench.running.launch import train
from elmo_bench.system.errors import UserError
from tasks.snli.metric import LABELS

pytestmark = pytest.mark.slow

ANIMALS = {"cat": "animal", "dog": "animal", "tram": "vehicle", "barge": "vehicle"}


def write(folder: Path) -> Path:
    """Pairs such as A cat waits. / An animal waits."""
    lines = ["gold_label\tsentence1\tsentence2", "-\tA cat waits.\tIt rains."]
    for thing, kind in ANIMALS.items():
        other = next(k for k in ANIMALS.values() if k != kind)
        lines.append(f"entailment\tA {thing} waits.\tThe {kind} waits.")
        lines.append(f"contradiction\tA {thing} waits.\tNo {kind} waits.")
        lines.append(f"neutral\tA {thing} waits.\tThe {other} waits.")
    (folder / "snli").mkdir()
    for split in ("train", "dev", "test"):
        (folder / "snli" / f"{split}.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def compose(folder: Path, *changes: str):
    places = f"data_root={folder}", f"results_root={folder}/results", f"cache_root={folder}/cache"
    small = "task.words.size=8", "task.head.hidden=8", "task.fit.epochs=2"
    return pages.compose(["task=snli", "scale=open", "elmo.where=none", "trainer=cpu", *places, *small, *changes])


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.delenv("DATA_ROOT", raising=False)
    monkeypatch.delenv("WANDB_API_KEY", raising=False)
    return write(tmp_path)


@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed"])
def test_a_run_and_predictions_for_raw_pairs(folder, precision):
    record = train(compose(folder, f"trainer.precision={precision}"))
    assert 0 <= record["metrics"]["test"]["accuracy"] <= 100
    assert (record["task"], record["epochs"], record["config"]["elmo"]["where"]) == ("snli", 2, "none")
    rates = record["history"]["learning_rate"]
    assert rates[0] == compose(folder).task.optimizer.lr
    pairs = [
        {"premise": "A cat waits.", "hypothesis": "The animal waits."},
        {"premise": "A zebra isn't here, it waits elsewhere.", "hypothesis": "No."},
    ]
    (folder / "in.jsonl").write_text("".join(json.dumps(pair) + "\n" for pair in pairs))
    checkpoint = str(folder / "results" / record["checkpoint"])
    assert predict(checkpoint, str(folder / "in.jsonl"), str(folder / "out.jsonl")) == 2
    assert all(json.loads(line)["label"] in LABELS for line in (folder / "out.jsonl").read_text().splitlines())

    (folder / "in.jsonl").write_text(json.dumps(pairs[0]) + "\n" + json.dumps({"premise": "A cat."}) + "\n")
    with pytest.raises(UserError, match=r"in.jsonl:2: .*hypothesis"):
        predict(checkpoint, str(folder / "in.jsonl"), str(folder / "out.jsonl"))


def test_a_broken_file_ends_a_run_with_file_and_line(folder):
    path = folder / "snli" / "dev.tsv"
    path.write_text(path.read_text() + "perhaps\tA cat waits.\tIt waits.\n")
    with pytest.raises(UserError, match=r"dev.tsv:15: unknown gold label 'perhaps'"):
        train(compose(folder))
    assert not list((folder / "results").rglob("*.json"))
