"""The findings of the paper: which runs are compared, and the verdict."""

from __future__ import annotations

from typing import Any

import pytest

from elmo_bench.configuration import claims as entries
from elmo_bench.configuration.claims import Claim
from elmo_bench.records.studies import Cell, StudyRecord
from elmo_bench.reporting.statistics import claims
from elmo_bench.reporting.statistics.claims import findings, verdict
from elmo_bench.reporting.tables import replication
from tests.records.test_records import fake

pytestmark = pytest.mark.usefixtures("first_versions", "plain_pair")

BETTER = {"arm": "elmo", "elmo.where": "both"}
WORSE = {"arm": "elmo", "elmo.where": "input"}


def run(where, seed, f1, **more):
    """A run of ELMo at a place, or of the baseline."""
    return fake(where, seed, f1, variant={} if where in ("none", "input") else {"elmo.where": where}, **more)


def learned(*dev) -> dict[str, Any]:
    """The history of a run's dev scores, ten updates an epoch."""
    epochs = list(range(len(dev)))
    return {"history": {"epoch": epochs, "updates": [10 * (i + 1) for i in epochs], "dev.f1": list(dev)}}


def rows(monkeypatch, records, studies=(), **claim):
    """Of a single finding at scale open, whose task is NER."""
    tasks = {} if "study" in claim else {"tasks": ["ner"]}
    monkeypatch.setattr(claims, "claims", lambda scale: {"one": Claim("It helps", "section 9", **tasks, **claim)})
    ((finding),) = findings(records, "open", studies)
    return finding.rows


@pytest.mark.parametrize(
    ("low", "high", "region", "said"),
    [
        (0.1, 2, (0, float("inf")), "shown"), (-0.1, 2, (0, float("inf")), "not shown"),
        (-2, -0.1, (0, float("inf")), "contradicted"), (None, None, (0, float("inf")), "not shown"),
        (-0.5, 0.5, (-1, 1), "shown"), (-0.5, 1.5, (-1, 1), "not shown"), (1.1, 1.5, (-1, 1), "contradicted"),
    ],
)  # fmt: skip
def test_the_rule(low, high, region, said):
    assert verdict(low, high, region) == said


def test_settings_are_compared_where_nothing_else_differs(monkeypatch):
    runs = [run(where, seed, f1 + seed) for where, f1 in (("both", 80), ("input", 70)) for seed in (1, 2, 3)]
    other = run("both", 4, 99.0, group="other")
    other.variant["task.batch.batch_size"] = 99
    (row,) = rows(monkeypatch, [*runs, other], more=BETTER, less=WORSE)
    assert (row.value, row.verdict) == (pytest.approx(10.0), "shown")
    assert [len(group.records) for group in row.groups] == [3, 3]
    assert replication.runs(row, "open").count(" against ") == 1
    (row,) = rows(monkeypatch, runs, more=WORSE, less=BETTER)
    assert row.verdict == "contradicted"
    (row,) = rows(monkeypatch, runs, more={"arm": "elmo", "elmo.where": "output"}, less=WORSE)
    assert row.verdict == "not tested"
    (row,) = rows(monkeypatch, [runs[0], *runs[3:]], more=BETTER, less=WORSE)
    assert (row.verdict, row.note.partition(";")[0]) == ("not shown", "one seed in an arm")


def of_arm(where, f1, variant, **more):
    """Three runs of an arm whose page has ELMo at both places."""
    return [fake(where, seed, f1 + seed, variant=variant, **more) for seed in (1, 2, 3)]


LATER = "2026-02-01T00:00:00+00:00"


def test_an_arm_is_compared_as_its_page_has_it_not_a_newer_variant_of_it(monkeypatch):
    runs = of_arm("both", 80.0, {}) + of_arm("both", 82.0, {}, arm="tuned", group="tuned")
    runs += of_arm("output", 70.0, {"elmo.where": "output"}, finished=LATER)
    (row,) = rows(monkeypatch, runs, more={"arm": "tuned"}, less={"arm": "elmo"})
    assert row.value == pytest.approx(2.0)


def test_a_run_at_another_place_differs_also_where_its_settings_are_all_defaults(monkeypatch):
    """Its variant then says that it has nothing of the block on the arm's page."""
    runs = of_arm("both", 80.0, {}) + of_arm("input", 90.0, {"elmo": None}, finished=LATER)
    runs += of_arm("both", 79.0, {"elmo.gamma": False}, group="fixed")
    for record in runs:
        record.config["elmo"]["gamma"] = "elmo.gamma" not in record.variant
    (row,) = rows(
        monkeypatch, runs, more={"arm": "elmo", "elmo.gamma": True}, less={"arm": "elmo", "elmo.gamma": False}
    )
    assert row.value == pytest.approx(1.0)
    (row,) = rows(monkeypatch, runs, more=BETTER, less=WORSE)
    assert row.value == pytest.approx(-10.0)


def test_errors_and_updates_are_shares_of_the_baselines(monkeypatch):
    runs = [run("none", seed, 80.0, **learned(60.0, 70.0)) for seed in (1, 2, 3)]
    runs += [run("input", seed, 85.0, **learned(71.0, 72.0)) for seed in (1, 2, 3)]
    more, less = {"arm": "elmo"}, {"arm": "baseline"}
    (row,) = rows(monkeypatch, runs, measure="error", more=more, less=less)
    assert (row.value, row.unit) == (pytest.approx(25.0), "%")
    (row,) = rows(monkeypatch, runs, measure="updates", more=more, less=less)
    assert (row.value, row.unit) == (pytest.approx(50.0), "%")


def test_weights_are_those_of_the_selected_epoch(monkeypatch):
    weights = {"input": [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3]]}
    runs = [run("both", seed, 80.0, epoch=2, layer_weights=weights) for seed in (1, 2)]
    (row,) = rows(monkeypatch, runs, more=BETTER, measure="first_layer")
    assert row.value == pytest.approx(0.2)
    (row,) = rows(monkeypatch, runs, more=BETTER, measure="spread", region=[None, 1 / 3])
    assert (row.value, row.verdict) == (pytest.approx(0.3), "shown")


def study(bilm, *cells, **settings):
    return StudyRecord("open", "pos", "parts of speech", "", list(cells), bilm, 6, settings)


def layers(bilm, quantity, value):
    return Cell(bilm, quantity, value, 2, 1, low=value - 0.2, high=value + 0.2, n=900, clusters=30)


ASKED = {"study": "pos", "bilm": "open", "quantity": "XPOS", "layer": 2, "minus": 1, "region": [None, 0]}


def test_a_finding_names_the_biLM_and_the_tags(monkeypatch):
    """Not the first number of a sentence, nor the study whose file has the last name."""
    ours = study("open", layers("open", "UPOS", -0.66), layers("open", "XPOS", -0.51))
    others = [study(name, layers(name, "XPOS", 3.0)) for name in ("a", "z")]
    for listed in ([ours, *others], [*others, ours]):
        (row,) = rows(monkeypatch, [], listed, **ASKED)
        assert (row.value, row.low, row.high) == pytest.approx((-0.51, -0.71, -0.31))
        assert (row.verdict, row.note) == ("shown", "biLM open; 900 items in 30 clusters")
    (row,) = rows(monkeypatch, [], others, **ASKED)
    assert row.verdict == "not tested"


def test_two_studies_of_one_biLM_are_two_rows(monkeypatch):
    listed = [study("open", layers("open", "XPOS", value), sentences=value) for value in (-0.5, 0.7)]
    found = rows(monkeypatch, [], listed, **ASKED)
    assert [row.verdict for row in found] == ["shown", "contradicted"]
    assert [row.note.rpartition("; ")[2] for row in found] == [f"record {each.id}" for each in listed]


def test_each_task_has_a_row_of_its_own(monkeypatch):
    lowered = [Cell(task, "lowered, %", value) for task, value in (("ner", 50.0), ("snli", 60.0))]
    cells = [Cell("ner", "before", 200.0, paper=103.2), *lowered]
    asked = {"study": "tuning", "bilm": "open", "quantity": "lowered, %", "unit": "%", "tasks": ["ner", "sst5"]}
    one, other = rows(monkeypatch, [], [StudyRecord("open", "tuning", "", "", cells, "open", 7)], **asked)
    assert (one.task, one.value, one.unit, one.verdict) == ("ner", 50.0, "%", "not shown")  # without an interval
    assert one.note == "biLM open; before 200.0 (the paper: 103.2)"
    assert (other.task, other.verdict) == ("sst5", "not tested")


@pytest.mark.parametrize("scale", ["mini", "open", "paper"])
def test_every_entry_of_the_page_is_evaluated_and_has_a_line(scale):
    found = findings([], scale, [])
    assert [each.name for each in found] == list(entries.claims(scale))
    assert all(row.verdict == "not tested" for each in found for row in each.rows)
    text = replication.markdown([found])
    assert all(f"### {each.claim.finding}" in text for each in found)
