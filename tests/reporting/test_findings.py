"""The findings of the paper: which runs are compared, and the verdict."""

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from elmo_bench.configuration.pages import Column, Finding, SweepTable
from elmo_bench.records.studies import StudyCell, StudyRecord
from elmo_bench.reporting import findings
from elmo_bench.reporting.findings import OPEN, Evaluated, FindingRow, evaluated, glance, verdict
from elmo_bench.reporting.gains import by_scale
from elmo_bench.reporting.section import Number
from tests.fakes import cases, for_each, table
from tests.records.test_records import fake

COLUMNS = [Column(title=title, of=of) for title, of in table("""
    baseline | {"arm": "baseline"}
    page     | {"arm": "elmo"}
    input    | {"elmo.where": "input"}
    both     | {"elmo.where": "both"}
    output   | {"elmo.where": "output"}
    γ        | {"elmo.gamma": true}
    no γ     | {"elmo.gamma": false}
    tuned    | {"bilm": "tuned"}
""")]  # fmt: skip

helps = partial(Finding, finding="It helps", where="section 9")


def run(where, seed, f1, **more):
    """A run of ELMo at a place, or of the baseline; the task's configuration has it at the input, with γ."""
    variant = {} if where in ("none", "input") else {"elmo.where": where}
    record = fake(where, seed, f1, variant=more.pop("variant", variant), **more)
    record.config["elmo"]["gamma"] = True
    return record


def three(where, f1, **more):
    return [run(where, seed, f1 + seed, **more) for seed in (1, 2, 3)]


def learned(*dev) -> dict[str, Any]:
    """The history of a run's dev scores, ten updates an epoch."""
    epochs = list(range(len(dev)))
    return {"history": {"epoch": epochs, "updates": [10 * (i + 1) for i in epochs], "dev.f1": list(dev)}}


@pytest.fixture
def row(monkeypatch):
    """The row of a single finding of one table at scale open, whose task is NER."""
    monkeypatch.setattr(findings.pages, "sweeps", lambda: ["mine"])
    monkeypatch.setattr(findings.pages, "study_findings", dict)
    monkeypatch.setattr(findings.pages, "in_order", list)

    def found(records, more, less=None, **finding):
        one = helps(paper={"ner": "+1"}, more=more, less=less, **finding)
        monkeypatch.setattr(findings.pages, "table", lambda sweep: SweepTable(columns=COLUMNS, findings=[one]))
        (evaluation,) = evaluated(by_scale(records)["open"], "open", [])
        (said,) = evaluation.rows
        return said

    return found


@cases("""
    low  | high | region        | said
    0.1  | 2    | [0, Infinity] | shown
    -0.1 | 2    | [0, Infinity] | not shown
    -2   | -0.1 | [0, Infinity] | contradicted
    -0.5 | 0.5  | [-1, 1]       | shown
    1.1  | 1.5  | [-1, 1]       | contradicted
""")
def test_the_rule(low, high, region, said):
    assert verdict(low, high, region) == said


def test_settings_are_compared_where_nothing_else_differs(row):
    runs = three("both", 80) + three("input", 70)
    other = run("both", 4, 99.0, variant={"elmo.where": "both", "task.batch.batch_size": 99}, group="other")
    random = three("both", 20, variant={"elmo.where": "both", "vectors": "random"}, group="random")
    said = row([*runs, other, *random], "both", "input")
    assert (said.value, said.verdict) == (pytest.approx(10.0), "shown")
    assert [len(group.records) for group in said.groups] == [3, 3]
    assert findings.runs(said).count(" against ") == 1
    assert row(runs, "input", "both").verdict == "contradicted"
    assert row(runs, "output", "input").verdict == "not tested"
    said = row([runs[0], *runs[3:]], "both", "input")
    assert (said.verdict, said.note) == ("not shown", "one seed in an arm; one biLM")


def test_a_row_says_that_its_arms_ran_on_different_machines(row):
    gpu = {"machine": {"accelerator": "cuda"}, "versions": {"torch": "2.11.0"}}
    cpu = {"machine": {"accelerator": "cpu"}, "versions": {"torch": "2.13.0+cpu"}}
    other = row(three("both", 80, **gpu) + three("input", 70, **cpu), "both", "input")
    assert "runs on cuda, torch 2.11.0 against runs on cpu, torch 2.13.0" in other.note
    assert "torch" not in row(three("both", 80, **cpu) + three("input", 70, **cpu), "both", "input").note


def test_a_row_says_that_the_lesser_arm_still_gains_at_the_cap(row):
    def said(*last: float) -> str:
        runs = three("none", 70, **learned(60.0, 61.0, last[1]), epochs=3) + three(
            "input", 80, **learned(70.0, 71.0, last[0]), epochs=3
        )
        for each in runs:
            each.config["task"]["fit"] = {"epochs": 3}
        return row([*map(replace, runs)], "page", "baseline").note

    assert "at the cap of epochs, where dev still gains +0.10 and +1.50 in two epochs" in said(70.1, 61.5)
    assert "cap" not in said(70.1, 60.1)
    assert "cap" not in said(73.0, 61.5)


LATER = "2026-02-01T00:00:00+00:00"


def test_an_arm_is_compared_as_its_page_has_it_not_a_newer_variant_of_it(row):
    runs = three("input", 80.0) + three("input", 82.0, variant={"bilm": "tuned"}, group="tuned")
    runs += three("output", 70.0, finished=LATER) + three("input", 79.0, variant={"elmo.gamma": False}, group="fixed")
    assert row(runs, "tuned", "page").value == pytest.approx(2.0)
    assert row(runs, "γ", "no γ").value == pytest.approx(1.0)


def test_runs_on_other_data_or_of_another_biLM_are_not_compared(row):
    ours, other = three("input", 70.0), three("both", 80.0, data_sha256="1")
    assert row([*ours, *other], "both", "input").verdict == "not tested"
    bilm = {"name": "open", "sha256": "c" * 64, "tuned": False}
    other = three("both", 80.0, bilm=bilm)
    assert row([*ours, *other], "both", "input").verdict != "not tested"  # ours says nothing of its biLM
    ours = three("input", 70.0, bilm=bilm | {"sha256": "d" * 64})
    assert row([*ours, *other], "both", "input").verdict == "not tested"


def test_errors_and_updates_are_shares_of_the_baselines(row):
    runs = three("none", 78.0, **learned(60.0, 70.0)) + three("input", 83.0, **learned(71.0, 72.0))
    said = row(runs, "page", "baseline", measure="error")
    assert (said.value, said.unit) == (pytest.approx(25.0), "%")
    said = row(runs, "page", "baseline", measure="updates")
    assert (said.value, said.unit) == (pytest.approx(50.0), "%")


def test_equal_is_not_passed_and_the_first_best_epoch_counts():
    def percent(*dev: float) -> Any:
        return findings.saved(run("none", 1, 0.0, **learned(1.0, 3.0, 2.0, 3.0)), run("input", 1, 0.0, **learned(*dev)))

    assert percent(3.0, 3.0) is None
    assert percent(3.5, 1.0) == (50.0, 50.0)  # an epoch is half of the baseline's updates
    assert percent(1.0, 1.0, 1.0, 3.5, 4.0) == (-100.0, 50.0)  # more updates


def test_updates_may_be_lost_and_runs_that_never_pass_are_counted(row):
    def said(*dev):
        runs = three("none", 80.0, **learned(60.0, 70.0, 65.0))
        runs += [run("input", seed, 80.0, **learned(*scores)) for seed, scores in enumerate(dev, 1)]
        return row(runs, "page", "baseline", measure="updates")

    slow, slower, never = (60.0, 60.0, 71.0), (60.0, 60.0, 60.0, 71.0), (60.0, 70.0)
    lost = said(slower, slower, slow)
    assert (lost.value, lost.verdict) == (pytest.approx(-250 / 3), "contradicted")
    some = said(slow, never, slow)
    assert (some.value, some.interval, some.verdict) == (-50.0, None, "not shown")
    assert (some.note, some.p) == ("1 of 3 never passes; one biLM", None)
    assert (said(never, never, never).value, said(never, never, never).verdict) == (None, "not shown")


def of_rows(*rows: FindingRow, region: tuple[float | None, float | None] = (0, None)) -> Evaluated:
    return Evaluated(helps(region=list(region)), "open", "", [*rows])


def judged(task: str, value: float, error: float = 1.0) -> FindingRow:
    return findings._judged(FindingRow(task, value, findings.Spread(error, 20), OPEN), Finding())


def test_the_verdicts_of_a_page_are_corrected_as_a_family():
    """As `false_discovery_control` corrects them: 0.04 of three is above 0.05, and 0.06 was not shown before."""
    found = [of_rows(judged("ner", 9.0), judged("snli", 2.2)), of_rows(judged("srl", -9.0), judged("squad", 0.5))]
    found += [of_rows(judged("coref", 0.1), FindingRow("sst5", None, None, "not tested"))]
    assert findings.families(found, []) == (
        "With p corrected for the 5 tested rows (Benjamini-Hochberg), 1 of 2 shown rows remain (not It helps, SNLI) "
        "and 1 of 1 contradicted rows remain; by Benjamini-Yekutieli, as rows share runs, 1 of 2 shown rows remain "
        "(not It helps, SNLI) and 1 of 1 contradicted rows remain."
    )
    assert findings.families([of_rows(FindingRow("sst5", None, None, "not tested"))], []) == ""


@cases("""
    error | region      | said
    1.0 | [0, null]   | these runs show a true difference of 2.9 points four times out of five
    1.0 | [null, 0.3] | these runs show a true difference of 2.9 points from 0.3 four times out of five
    0.4 | [-1, 1]     | these runs show a true difference of 0 points in 34 % of cases
""")
def test_a_row_that_is_not_shown_says_what_such_runs_could_show(error, region, said):
    """Student's t with 20 degrees of freedom: 2.94 by the noncentral one; between bounds by integration."""
    finding = helps(region=list(region))
    row = findings._judged(FindingRow("ner", 0.4, findings.Spread(error, 20), OPEN), finding)
    assert (row.verdict, findings.power(row, finding.region)) == ("not shown", said)


@pytest.mark.parametrize(
    "weights, said",
    [
        ([0.2, 0.8], ("not shown", pytest.approx(0.6), "no interval: the seeds do not differ; one biLM")),
        ([1.0], ("not tested", None, "one layer")),
    ],
)
def test_weights_of_few_layers_and_equal_ones(weights, said, row):
    """A biLM may have one LSTM layer, and seeds that agree to the last digit show nothing of others."""
    runs = three("both", 80.0, epoch=1, layer_weights={"input": [weights]})
    found = row(runs, "both", measure="first_layer")
    assert (found.verdict, found.value, found.note) == said


def test_a_row_says_what_its_interval_leaves_out(row):
    runs = [*three("none", 70.0), *three("input", 80.0)]
    assert row(runs, "page", "baseline").note == "over seeds alone (no per-example results in common); one biLM"
    alone = [run("none", seed, 80.0, **learned(60.0)) for seed in (1, 2)]
    alone += [run("input", seed, 85.0, **learned(71.0)) for seed in (2, 3)]
    found = row(alone, "page", "baseline", measure="updates")
    assert (found.verdict, found.note) == ("not shown", "one seed in common; one biLM")


def of_study(monkeypatch, name, studies, **finding):
    """The rows of a single finding of a study."""
    monkeypatch.setattr(findings.pages, "sweeps", list)
    monkeypatch.setattr(findings.pages, "study_findings", lambda: {name: [helps(**finding)]})
    ((found),) = evaluated([], "open", studies)
    return found.rows


def study(bilm, *cells, **settings):
    return StudyRecord("open", "pos", "parts of speech", "", list(cells), bilm, 6, settings)


def layers(bilm, quantity, value):
    return StudyCell(bilm, quantity, value, 2, 1, low=value - 0.2, high=value + 0.2, n=900, clusters=30)


ASKED = {"quantity": "XPOS", "layer": 1, "minus": 2, "paper": {"": "+0.5"}}  # the other way round than the cells


def test_a_finding_names_the_biLM_and_the_tags(monkeypatch):
    """Not the first number of a sentence, nor the study whose file has the last name."""
    ours = study("open", layers("open", "UPOS", -0.66), layers("open", "XPOS", -0.51))
    others = [study(name, layers(name, "XPOS", 3.0)) for name in ("a", "z")]
    for listed in ([ours, *others], [*others, ours]):
        (row,) = of_study(monkeypatch, "pos", listed, **ASKED)
        assert (row.value, *(row.interval or ())) == pytest.approx((0.51, 0.31, 0.71))
        assert (row.verdict, row.note.partition("; p")[0]) == ("shown", "one biLM (open); 900 examples in 30 clusters")
    (row,) = of_study(monkeypatch, "pos", others, **ASKED)
    assert row.verdict == "not tested"


def test_two_studies_of_one_biLM_are_two_rows_and_both_in_the_picture(monkeypatch):
    listed = [study("open", layers("open", "XPOS", value), sentences=value) for value in (-0.5, 0.7)]
    with monkeypatch.context() as patch:
        found = of_study(patch, "pos", listed, **ASKED)
    assert [row.verdict for row in found] == ["shown", "contradicted"]
    assert [row.note.rpartition("; ")[2] for row in found] == [f"record {each.id}" for each in listed]
    rows = glance([Evaluated(helps(**ASKED), "open", "", found)]).rows
    assert [row[1] for row in rows] == ["✓ +0.50", "✗ -0.70"]


def test_the_picture_has_a_column_for_every_task_that_a_finding_speaks_of(monkeypatch):
    rows = [FindingRow(task, 1.0, None, "not shown") for task in ("ner", "toy")]
    found = Evaluated(
        Finding(finding="It helps", where="here", paper={"toy": "twice as well"}), "open", "sweep task=TASK", rows
    )
    table = glance([found])
    assert table.header == ("finding", "NER", "toy")
    cell = table.rows[0][2]
    assert isinstance(cell, Number)
    assert (cell, cell.below, cell.fold) == ("~ +1.00", ["paper: twice as well"], ["not shown", "sweep task=toy"])


def test_each_task_has_a_row_of_its_own(monkeypatch):
    lowered = [StudyCell(task, "lowered, %", value) for task, value in (("ner", 50.0), ("snli", 60.0))]
    cells = [StudyCell("ner", "before", 200.0, paper=103.2), *lowered]
    request = {"quantity": "lowered, %", "unit": "%", "paper": {"ner": "55 %", "sst5": "40 %"}}
    listed = [StudyRecord("open", "tuning", "", "", cells, "open", 7)]
    one, other = of_study(monkeypatch, "tuning", listed, **request)
    assert (one.task, one.value, one.unit, one.verdict) == ("ner", 50.0, "%", "not shown")  # without an interval
    lacking = "no interval in its record: `elmo-bench tune task=ner scale=open` makes it"
    assert one.note == f"one biLM (open); before 200.0 (the paper: 103.2); {lacking}"
    assert (other.task, other.verdict) == ("sst5", "not tested")


@for_each("scale", "mini open paper")
def test_every_finding_of_the_pages_is_evaluated_and_has_a_line_for_the_tasks_of_which_the_paper_states_it(scale):
    found = evaluated([], scale, [])
    assert len(found) > 20
    assert all(said.verdict == "not tested" for each in found for said in each.rows)
    assert all([said.task for said in each.rows] == [*each.finding.paper] for each in found[-4:])  # of studies
    assert all({said.task for said in each.rows} == {*each.finding.paper} for each in found)
    text = findings.markdown([found])
    assert all(f"### {each.finding.finding}" in text for each in found)
    (head,) = {len(line.split(" | ")) for line in text.splitlines() if line.startswith("| +ELMo improves")}
    assert head == 8  # the finding, six tasks, and the biLM itself
