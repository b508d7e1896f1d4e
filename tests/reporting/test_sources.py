"""The table of sources of context: gains over every earlier source, weights, cost, and what is no evidence."""

from dataclasses import replace

import pytest

from elmo_bench.reporting import sweep_tables
from elmo_bench.reporting.gains import by_scale
from elmo_bench.sweeps.request import SweepRequest
from tests.records.test_records import fake

pytestmark = pytest.mark.usefixtures("first_versions")

CLASSES = {"mini": "elmo_bench.layers.bilm.BilmLayers", "minilm": "elmo_bench.layers.transformers.TransformersLayers"}
LAYERS = {"mini": 3, "minilm": 7}


def source(task: str, name: str, seed: int, f1: float):
    """The record of a run with the source of this name."""
    if name == "none":
        return fake("none", seed, f1, "mini", task=task)
    bilm = {"name": name, "sha256": None, "parameters": 1000 * LAYERS[name], "token_bytes": 2 * LAYERS[name]}
    weights = {"input": [[1 / LAYERS[name]] * LAYERS[name]] * 2}
    variant = {} if name == "mini" else {"bilm": name}
    record = fake("input", seed, f1, "mini", name, task=task, bilm=bilm, layer_weights=weights, variant=variant)
    record.config["bilm"] = {"_target_": CLASSES[name], "seen": ["snli"] if name == "minilm" else []}
    return replace(record)


def test_sources_stand_side_by_side_with_their_gains_weights_and_cost_and_what_is_no_evidence():
    """Each source ten points above the one before, with two seeds."""
    f1 = {"none": 50.0, "mini": 60.0, "minilm": 70.0}
    records = [source(task, name, n, f1[name] + n) for task in ("ner", "snli") for name in f1 for n in (1, 2)]
    found = sweep_tables.content(SweepRequest("sources", ["ner", "snli"], seeds=2), by_scale(records))
    assert found
    table, gained, weights, cost = sweep_tables.sections(found)
    assert table.header == ("task", "no context", "ELMo", "MiniLM")
    assert table.rows[1] == ("NER, f1", "51.50 ± 0.71 (2)", "61.50 ± 0.71 (2)", "71.50 ± 0.71 (2)")
    assert [(*row[1:3], row[4].partition(" ")[0]) for row in gained.rows if row[0] == "NER"] == [
        ("ELMo", "no context", "+10.00"), ("MiniLM", "no context", "+20.00"), ("MiniLM", "ELMo", "+10.00")
    ]  # fmt: skip
    line = "† SNLI: minilm was trained on data of this task; its figures here are no evidence."
    assert table.remarks == gained.remarks == [line]
    assert [cell.endswith("†") for cell in table.rows[0]] == [False, False, False, True]
    assert {row[:2] for row in gained.rows if row[4].endswith("†")} == {("SNLI", "MiniLM")}
    assert [len([*filter(None, row)]) for row in weights.rows] == [7, 11] * 2  # three layers and seven
    assert [row[:5] for row in cost.rows if row[0] == "NER"] == [
        ("NER", "no context", "", "", ""), ("NER", "ELMo", "3,000", "3", "6"), ("NER", "MiniLM", "7,000", "7", "14")
    ]  # fmt: skip
