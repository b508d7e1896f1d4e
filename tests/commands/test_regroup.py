"""Recorded runs get the documents of their data; scores, records and runs on other data stay as they are."""

import sys
from pathlib import Path

import pytest

from elmo_bench.commands.compare import regroup
from elmo_bench.configuration import pages, schema
from elmo_bench.identity.identity import data_of
from elmo_bench.identity.settings import settings
from elmo_bench.metrics.f1 import precision_recall_f1
from elmo_bench.records import items, store
from elmo_bench.records.record import Record
from elmo_bench.system.errors import UserError
from tasks.ner.metric import NerMetric
from tests.records.test_records import at, fake

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("first_versions")]


def recorded(root, rows, data, seed) -> tuple[Record, Path]:
    """A record and the path of its per-example results."""
    metric = NerMetric()
    metric.update([["B-PER"], ["O"], ["O"], ["B-PER"]][: len(rows)], rows)
    scored = metric.items()
    scores = precision_recall_f1(scored.totals())
    made = fake(seed=seed, metrics={"dev": scores, "test": scores}, data_sha256=data)
    path = items.path_of(at(root, made))
    store.write(at(root, made), made, {path: items.packed({"dev": scored, "test": scored})})
    return made, path


def test_runs_on_the_same_data_get_its_documents(tmp_path, monkeypatch, capsys):
    folder = tmp_path / "ner_uner_ewt"
    folder.mkdir()
    for split in ("train", "dev", "test"):
        (folder / f"{split}.iob2").write_text("Ida\tB-PER\n\n" * 4)
    roots = [f"{key}_root={tmp_path}" for key in ("data", "results", "cache")]
    arguments = ["task=ner", "scale=open", *roots]
    monkeypatch.setattr(sys, "argv", ["elmo-bench regroup", *arguments])
    data = data_of(settings(schema.typed(pages.compose([*arguments, "arm=baseline"]))))
    rows = [{"tags": ["B-PER"]}] * 4
    same, file = recorded(tmp_path, rows, data, 1)
    recorded(tmp_path, rows, "0" * 64, 2)
    before = {path: path.read_bytes() for path in tmp_path.glob("runs/open/ner/*")}

    regroup.main()  # documents are not known
    assert {path: path.read_bytes() for path in before} == before
    for split in ("dev", "test"):
        (folder / f"{split}.iob2.documents").write_text("a\nb\nb\na\n")
    regroup.main()
    assert [path for path in before if path.read_bytes() != before[path]] == [file]
    found = items.read(file)
    assert [found[split].clusters.tolist() for split in found] == [[0, 1, 1, 0]] * 2
    assert found["test"].names == ("a", "b")
    items.check(found, same.metrics, NerMetric.from_totals)
    assert "dev 2, test 2; 1 of 2 runs changed, 1 are of other data" in capsys.readouterr().out

    for split in ("dev", "test"):
        (folder / f"{split}.iob2.documents").unlink()
    now = file.read_bytes()
    regroup.main()  # documents are not known any more
    assert file.read_bytes() == now


def test_items_that_are_not_those_of_the_record_are_named(tmp_path):
    wrong, path = recorded(tmp_path, [{"tags": ["B-PER"]}] * 2, "0" * 64, 1)
    wrong.metrics["test"]["f1"] += 1
    with pytest.raises(UserError, match=r"\.items\.npz: (dev|test)/f1: the examples give .* run again"):
        regroup._regrouped(path, wrong, {"dev": "ab", "test": "ab"}, NerMetric.from_totals)
