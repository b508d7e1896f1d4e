"""The table of sources of context: gains over every earlier source, weights, cost, and what is no evidence."""

import pytest

from elmo_bench.records import store
from elmo_bench.records.frame import is_main
from elmo_bench.reporting.section import Section
from elmo_bench.reporting.statistics.outcomes import by_scale
from elmo_bench.reporting.tables import paper
from elmo_bench.sweeps.request import SweepRequest
from tests.records.test_records import fake, save

pytestmark = pytest.mark.usefixtures("first_versions")

CLASSES = {"mini": "elmo_bench.layers.bilm.BilmLayers", "minilm": "elmo_bench.layers.transformers.TransformersLayers"}
LAYERS = {"mini": 3, "minilm": 7}


def made(task: str, name: str, seed: int, f1: float):
    """The record of a run with the source of this name."""
    if name == "none":
        return fake("none", seed, f1, "mini", task=task)
    bilm = {"name": name, "sha256": None, "parameters": 1000 * LAYERS[name], "token_bytes": 2 * LAYERS[name]}
    weights = {"input": [[1 / LAYERS[name]] * LAYERS[name]] * 2}
    variant = {} if name == "mini" else {"bilm": name}
    record = fake("input", seed, f1, "mini", name, task=task, bilm=bilm, layer_weights=weights, variant=variant)
    record.config["bilm"] = {"_target_": CLASSES[name], "seen": ["snli"] if name == "minilm" else []}
    return record


@pytest.fixture
def folder(tmp_path):
    """Results of two seeds: each source ten points above the one before."""
    f1 = {"none": 50.0, "mini": 60.0, "minilm": 70.0}
    save(
        tmp_path,
        *(made(task, name, seed, f1[name] + seed) for task in ("ner", "snli") for name in f1 for seed in (1, 2)),
    )
    return tmp_path


def written(folder) -> list[Section]:
    made = paper.content(SweepRequest("sources", ["ner", "snli"], seeds=2), by_scale(store.read_all(folder)))
    assert made
    return paper.sections(made)


def test_every_source_stands_beside_the_others_with_its_gains(folder):
    table, gained, *_ = written(folder)
    assert table.header == ("task", "no context", "ELMo", "MiniLM")
    assert table.rows[1] == (
        "NER, f1", "51.50 ± 0.71 (2)", "61.50 ± 0.71 (2)", "71.50 ± 0.71 (2)"
    )  # fmt: skip
    gains = [(*row[1:3], row[4].partition(" ")[0]) for row in gained.rows if row[0] == "NER"]
    assert gains == [
        ("ELMo", "no context", "+10.00"), ("MiniLM", "no context", "+20.00"), ("MiniLM", "ELMo", "+10.00")
    ]  # fmt: skip


def test_what_a_source_has_seen_is_no_evidence(folder):
    table, gains, *_ = written(folder)
    line = "† SNLI: minilm was trained on data of this task; its figures here are no evidence."
    assert table.remarks == gains.remarks == [line]
    assert [cell.endswith("†") for cell in table.rows[0]] == [False, False, False, True]
    assert {row[:2] for row in gains.rows if row[4].endswith("†")} == {("SNLI", "MiniLM")}


def test_below_stand_the_weights_and_the_cost_of_each_source(folder):
    *_, weights, cost = written(folder)
    assert weights.header == ("task", "ELMo at", *(f"s_{j}" for j in range(7)), "γ", "seeds")
    assert [len([cell for cell in row if cell]) for row in weights.rows] == [7, 11] * 2  # three layers and seven
    assert [row[:5] for row in cost.rows if row[0] == "NER"] == [
        ("NER", "no context", "", "", ""), ("NER", "ELMo", "3,000", "3", "6"), ("NER", "MiniLM", "7,000", "7", "14")
    ]  # fmt: skip


def test_the_report_shows_all_of_it_and_table_1_is_elmo_alone(folder):
    records = store.read_all(folder)
    tables = paper.sections(paper.of_scales(by_scale(records))["tables/sources.mini.md"])
    assert [table.title.rpartition(": ")[2] for table in tables[1:]] == ["gains", "weights of the layers", "cost"]
    assert {record.bilm_name for record in records if is_main(record)} == {None, "mini"}
