"""The controls beside +ELMo: its layer without context, an untrained biLM; runs that were best in their last epoch."""

import json
from dataclasses import replace

import pytest

from elmo_bench.configuration import composing
from elmo_bench.identity.settings import Identity
from elmo_bench.reporting import report as page
from elmo_bench.reporting import score_tables
from elmo_bench.reporting.findings import evaluated
from elmo_bench.reporting.gains import Outcome, by_scale
from elmo_bench.reporting.sweep_tables import markdown, of_scales, sections
from elmo_bench.sweeps.plan import plan
from elmo_bench.sweeps.request import SweepRequest
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


@pytest.mark.parametrize(
    ("control", "f1", "verdict"), [("layers=0", 65.0, "shown"), ("untrained", 71.0, "contradicted")]
)
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
