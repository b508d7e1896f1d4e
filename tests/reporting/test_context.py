"""The controls beside +ELMo: its layer without context, an untrained biLM; runs that were best in their last epoch."""

import json
from dataclasses import replace

import pytest

from elmo_bench.configuration import composing
from elmo_bench.identity.settings import Identity
from elmo_bench.reporting import report as page
from elmo_bench.reporting import score_tables, sweep_tables
from elmo_bench.reporting.findings import evaluated
from elmo_bench.reporting.gains import Outcome, by_scale
from elmo_bench.reporting.sweep_tables import markdown, of_scales, sections
from elmo_bench.sweeps.plan import plan
from elmo_bench.sweeps.request import SweepRequest
from tests.fakes import cases
from tests.records.test_records import fake

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("first_versions")]

ARMS = {"baseline": {}, "elmo": {}, "layers=0": {"elmo.layers": 0}, "untrained": {"bilm": "untrained"}}


BILMS = {"baseline": None, "untrained": "untrained"}


def runs(seeds=(1, 2, 3), **scores):
    """Runs of some arms of NER at open, whose scores vary little over the seeds."""
    return [
        fake("none" if arm == "baseline" else "input", seed, f1 + seed / 10, variant=ARMS[arm], group=arm,
             bilm={"name": (name := BILMS.get(arm, "open")), "sha256": name, "tuned": False})
        for arm, f1 in scores.items() for seed in seeds
    ]  # fmt: skip


BOTH = {"baseline": 60.0, "elmo": 70.0}


def overview(records):
    (table,) = score_tables.overview(by_scale(records))
    return table


def test_the_context_sweep_has_four_arms_whose_runs_are_those_of_plain_training():
    planned = plan(SweepRequest("context", ["ner"], seeds=2))
    typed = (["arm=baseline"], [], ["elmo.layers=0"], ["bilm=untrained"])
    plain = [
        Identity(composing.run_config(["task=ner", f"seed={seed}", *each])).run for each in typed for seed in (1, 2)
    ]
    assert sorted(each.run for each in planned.runs) == sorted(plain)


def test_without_controls_no_table_speaks_of_them():
    main = overview(runs(**BOTH))
    assert main.header == ("task", "test", "word vectors", "baseline", "+ELMo", "gain", "the paper")
    assert main.remarks == []
    made = of_scales(by_scale(runs(**BOTH)))
    assert [*made] == ["tables/table1.open.md"]
    assert "layers=0" not in markdown(sections(made["tables/table1.open.md"]))


def test_the_part_of_the_gain_that_is_context_stands_beside_the_gain():
    main = overview(runs(**BOTH, **{"layers=0": 65.0}))
    ours = dict(zip(main.header, main.rows[0], strict=True))
    assert ours["gain"].startswith("+10.00 [")
    assert ours["context (over layer 0)"].startswith("+5.00 [+4.")
    assert main.remarks == []
    made = of_scales(by_scale(runs(**BOTH, **{"layers=0": 65.0})))
    assert [*made] == ["tables/table1.open.md", "tables/context.open.md"]
    (table, *_) = sections(made["tables/table1.open.md"])
    assert table.header[-3:] == ("increase (absolute / relative)", "layers=0", "context (over layer 0)")
    assert table.rows[-1][-1].startswith("+5.00 [")
    assert table.remarks[-1].startswith("ner: 4 of 10 runs are missing")  # of Table 1's own
    (table, *_) = sections(made["tables/context.open.md"])
    assert table.rows[0][-2:] == ("+5.00 [+4.77, +5.23]", "missing")


def test_a_gain_that_is_not_of_context_is_told_in_words():
    for f1, verdict in ((70.0, "not shown"), (75.0, "worse")):
        records = runs(**BOTH, **{"layers=0": f1})
        (said,) = overview(records).remarks
        assert said.startswith("+ELMo is not shown to be better than its layer without context (`elmo.layers=0`): ner ")
        assert f", {verdict}. What it gains there" in said
        assert said in page.embedded("\n".join(page.MARKS), [overview(records)])


def test_controls_are_rows_of_the_gains_of_a_task():
    found = score_tables.gains_of(Outcome(runs(**BOTH, **{"layers=0": 65.0}, untrained=61.0)))
    assert found
    named = [row[:2] for row in found.rows]
    assert named == [
        ("+ELMo (input), biLM open", "baseline"),
        ("+ELMo (input), biLM open", "+ELMo (input; layers=0)"),
        ("+ELMo (input), biLM open", "+ELMo (input; biLM untrained)"),
        ("+ELMo (input; biLM untrained), biLM untrained", "baseline"),
    ]


@cases("""
    control   | f1   | verdict
    layers=0  | 65.0 | shown
    untrained | 71.0 | contradicted
""")
def test_each_control_decides_a_finding(control, f1, verdict):
    made = runs(**BOTH, **{control: f1})
    findings = {
        each.finding.less: each
        for each in evaluated(by_scale(made)["open"], "open", [])
        if isinstance(each.finding.less, str)
    }
    (row,) = (row for row in findings[control].rows if row.task == "ner")
    assert row.verdict == verdict
    assert findings[control].command.startswith("elmo-bench sweep +sweep=context")


def test_reproduce_prints_the_context_of_both_whether_or_not_the_user_has_trained_controls(monkeypatch):
    reference = runs(**BOTH, **{"layers=0": 66.0})
    monkeypatch.setattr(score_tables, "read_all", lambda *place: reference)
    (table,) = score_tables.beside(runs(seeds=(1,), **BOTH))
    assert [row[0] for row in table.rows] == ["baseline", "+ELMo (input)", "gain of +ELMo", "context (over layer 0)"]
    assert table.rows[-1][2:5] == ("", "", "+4.00 [+3.77, +4.23]")
    (table,) = score_tables.beside(runs(seeds=(1,), **BOTH, **{"layers=0": 69.0}))
    assert table.rows[-1][2] == "+1.00"


def last(records):
    """The same, with all that they were allowed to train."""
    for record in records:
        record.config["task"]["fit"] = {"epochs": record.epochs}
    return [*map(replace, records)]


def test_runs_that_were_best_in_their_last_epoch_are_counted_where_their_score_is_shown(monkeypatch):
    records = [*last(runs(baseline=60.0)), *runs(elmo=70.0, **{"layers=0": 65.0}), *last(runs(seeds=(4,), elmo=70.0))]
    main = overview(records)
    assert [cell.partition("(")[2] for cell in main.rows[0][3:5]] == ["3; 3 ↑)", "4; 1 ↑)"]
    assert main.remarks[-1].startswith("N ↑: N of these runs")
    (table, *_), *_ = map(sections, of_scales(by_scale(records)).values())
    assert "; 3 ↑)" in str(table.rows)
    assert any(remark.startswith("N ↑") for remark in table.remarks)
    scores = score_tables.scores(Outcome(records), {})
    assert [row[2] for row in scores.rows] == ["1-3; 3 ↑", "1-4; 1 ↑", "1-3"]
    (found,) = (
        each
        for each in evaluated(by_scale(records)["open"], "open", [])
        if each.finding.finding == "+ELMo improves each of the six tasks"
    )
    (row,) = (row for row in found.rows if row.task == "ner")
    assert row.note.endswith("dev best in the last epoch: 1 of 4 +ELMo (input), 3 of 3 baseline")
    monkeypatch.setattr(score_tables, "read_all", lambda *place: [])
    assert [row[3] for row in score_tables.beside(records)[0].rows[:2]] == ["1-3; 3 ↑", "1-4; 1 ↑"]


def test_the_report_has_the_context_of_each_gain(tmp_path):
    made = page.Report(runs(**BOTH, **{"layers=0": 65.0}), tmp_path)
    (gains,) = json.loads(made.files["report.json"])["answer"]["tables"]
    assert "context (over layer 0) +5.00 [+4.77, +5.23]" in gains["rows"][0][1]["below"]


# The table of sources of context.


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
