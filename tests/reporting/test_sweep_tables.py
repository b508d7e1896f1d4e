"""The table of a sweep: its rows and columns are the paper's, its figures those of the records."""

import json
from dataclasses import replace
from itertools import chain

import pytest
import yaml
from omegaconf import OmegaConf

from elmo_bench.configuration import composing, pages
from elmo_bench.records.frame import UNTRAINED, fits, normal, table_of
from elmo_bench.records.settings import Identity
from elmo_bench.reporting import report as page
from elmo_bench.reporting import score_tables, sweep_tables
from elmo_bench.reporting.findings import evaluated
from elmo_bench.reporting.gains import Outcome, by_scale
from elmo_bench.reporting.section import Section
from elmo_bench.reporting.sweep_tables import content, of_scales, sections
from elmo_bench.sweeps.plan import plan
from elmo_bench.sweeps.request import SweepRequest, points, setting
from tests.fakes import cases, refuses
from tests.records.test_records import fake

pytestmark = pytest.mark.slow

PLACES = {"input": {}, "both": {"elmo.where": "both"}, "output": {"elmo.where": "output"}, "none": {}}


def made(task="ner", variant=None, **scores):
    """Runs at a place of ELMo or of the baseline, with what they change of a page that has it at the input."""
    changes = variant or {}
    runs = [
        fake(where, seed + 1, f1, "mini", f"{where}{changes}", task=task, variant=PLACES[where] | changes)
        for where, each in scores.items()
        for seed, f1 in enumerate(each)
    ]
    for run in runs:
        run.config["vectors"] = {"source": "text"}
    return [*map(replace, runs)]


def wanted(sweep: str, *overrides: str, task="ner", seeds=1) -> SweepRequest:
    return SweepRequest(sweep, [task], seeds=seeds, overrides=[*overrides])


def shown(request: SweepRequest, records) -> Section:
    found = content(request, by_scale(records))
    assert found
    return sections(found)[0]


def rows(request: SweepRequest, records) -> list[tuple[str, ...]]:
    table = shown(request, records)
    return [table.header, *table.rows]


def test_ours_stands_beside_the_papers():
    runs = made("srl", input=[80.0, 82.0], both=[70.0])
    header, paper, ours = rows(wanted("table3", task="srl", seeds=2), runs)
    assert header == ("task", "", "input only", "input & output", "output only")
    assert paper == ("SRL, f1", "the paper", "84.7", "84.3", "80.9")
    assert ours == ("SRL, f1", "ours, mini", "82.00 ± 1.41 (2)", "71.00 (1; 1 missing)", "missing")


def test_what_is_missing_is_said_with_the_command_that_runs_it(tmp_path):
    request = wanted("table3", f"data_root={tmp_path}", "elmo.dropout=0.2", task="srl", seeds=2)
    runs = made("srl", {"elmo.dropout": 0.2}, input=[80.0, 82.0], both=[70.0])
    table = shown(request, [*runs, *made("srl", input=[1.0], both=[1.0], output=[1.0])])
    (remark,) = table.remarks
    command = f"elmo-bench sweep +sweep=table3 task=srl scale=mini seeds=2 data_root={tmp_path} elmo.dropout=0.2"
    assert remark == f"srl: 3 of 6 runs are missing: {command}"
    assert "All runs with elmo.dropout=0.2." in table.note


def test_the_increase_is_absolute_and_relative_to_the_remaining_error():
    runs = [*made(none=[90.0], input=[91.5]), *made(variant={"vectors": "random"}, none=[50.0], input=[70.0])]
    header, _, ours = rows(wanted("table1"), runs)
    assert header[2:] == ("previous best", "baseline", "+ ELMo", "increase (absolute / relative)")
    assert ours[2:] == ("", "90.00 (1)", "91.50 (1)", "1.50 / 15.0 %")
    _, _, ours = rows(wanted("table1", "vectors=random"), runs)
    assert ours[2:] == ("", "50.00 (1)", "70.00 (1)", "20.00 / 40.0 %")


def test_the_intervals_of_a_sweep_are_those_of_the_report():
    """Seeds of all arms of the task tell how far its scores vary, whichever of them the sweep asks for."""
    runs = [*made(none=[60.0, 61.0, 62.0], input=[70.0, 71.0, 72.0])]
    others = made(variant={"elmo.dropout": 0.1}, input=[50.0, 52.0, 55.0])
    request, every, arms = wanted("context", seeds=3), [*runs, *others], {"ner": {run.group for run in runs}}
    asked, of_report = content(request, by_scale(every, arms)), content(request, by_scale(every))
    assert asked
    assert of_report
    assert sections(asked)[0].rows == sections(of_report)[0].rows
    assert rows(request, runs)[1:] != sections(asked)[0].rows
    (gain, *_), (one, *_) = score_tables.gains_of(Outcome(every))[0].rows, score_tables.sections(every, arms)[1].rows
    assert one == gain
    assert score_tables.beside(every, arms)[0].rows[2][2] == gain[4]


def test_other_tasks_that_have_such_runs_have_their_rows():
    runs = [*made("srl", input=[80.0], both=[70.0]), *made("snli", input=[50.0]), *made("coref", input=[60.0])]
    both = rows(wanted("table3", task="snli"), runs)
    assert [row[:3] for row in both[1:]] == [
        ("SNLI, f1", "the paper", "88.9"), ("SNLI, f1", "ours, mini", "51.00 (1)"),
        ("SRL, f1", "the paper", "84.7"), ("SRL, f1", "ours, mini", "81.00 (1)"),
    ]  # fmt: skip


@pytest.mark.parametrize("files", [{"data_sha256": "d" * 64}, {"bilm": {"name": "open", "sha256": "d" * 64}}])
def test_runs_on_other_files_are_in_no_cell_beside_those_of_the_page(files):
    """On other data, or of another biLM of the same name, even if these have more seeds."""
    runs = [fake("input", 1, 80.0, "mini", task="srl", bilm={"name": "open", "sha256": "c" * 64})]
    others = made("srl", both=[60.0, 62.0], none=[50.0])
    assert rows(wanted("table3", task="srl"), [*runs, *others])[2][2:4] == ("81.00 (1)", "62.00 ± 1.41 (2)")
    others = [replace(run, **files) for run in others]
    assert rows(wanted("table3", task="srl"), [*runs, *others])[2][2:4] == ("81.00 (1)", "missing")
    assert rows(wanted("table3", task="srl"), others)[2][2:4] == ("missing", "62.00 ± 1.41 (2)")


def test_rows_and_columns_are_settings():
    runs = [*made(none=[60.0], input=[70.0]), *made(variant={"fraction": 0.1}, none=[40.0], input=[50.0])]
    for run in runs:
        run.config["fraction"] = run.variant.get("fraction", 1.0)
    table = rows(wanted("figure1"), [*map(replace, runs)])
    assert table[0] == ("task", "", "0.1 %", "0.3 %", "1 %", "3 %", "10 %", "30 %", "100 %")
    assert [(*row[:2], row[6], row[8]) for row in table[1:]] == [
        ("NER, f1", "baseline", "41.00 (1)", "61.00 (1)"), ("NER, f1", "+ ELMo", "51.00 (1)", "71.00 (1)")
    ]  # fmt: skip


def test_a_fraction_that_does_not_fill_a_batch_has_a_dash():
    """By the ten updates of an epoch on all of the data, 3 % of them are less than a batch."""
    table = shown(wanted("figure1"), made(none=[60.0]))
    assert table.rows[0][2:] == ("–", "–", "–", "–", "missing", "missing", "61.00 (1)")
    assert table.remarks[0].startswith("ner: 5 of 6 runs are missing: ")


def test_a_setting_that_replaces_the_sweeps_own_has_a_column():
    request = wanted("table3", "elmo.where=input,none")
    assert rows(request, made(none=[60.0], input=[70.0]))[0][2:] == ("input only", "baseline")
    (bilm,) = rows(wanted("sources", "bilm=mini,mine"), made(none=[60.0]))[:1]
    assert bilm[1:] == ("no context", "ELMo", "bilm=mine")


@cases("""
    sweep  | changes                 | heads
    table1 | arm=elmo                | {"previous best": "91.93 ± 0.19", "+ ELMo": "92.22 ± 0.10"}
    table1 | arm=baseline            | {"previous best": "91.93 ± 0.19", "baseline": "90.15"}
    table3 | elmo.where=input,output | {"input only": "88.9", "output only": "88.7"}
    table3 | arm=baseline            | {"baseline": ""}
    table2 | elmo={layers:last}      | {"last layer only": "89.1"}
""")
def test_the_papers_figures_stay_with_their_columns_and_no_column_of_elmo_shows_a_baseline(sweep, changes, heads):
    task = "ner" if sweep == "table1" else "snli"
    header, theirs, _ = rows(wanted(sweep, changes, task=task), made(none=[60.0]))
    assert dict(zip(header[2:], theirs[2:], strict=True)) == heads


@cases("""
    sweep   | changes              | there
    figure1 | fraction=0.1,1.0     | [["baseline", "missing", "61.00 (1)"], ["+ ELMo", "missing", "71.00 (1)"]]
    vectors | vectors=random,text  | [["random vectors", "missing", "missing"], ["text vectors", "60.00 (1)"]]
    table1  | callbacks=lr_monitor | [["", "60.00 (1)", "70.00 (1)"]]
    table1  | elmo.dropout=0.2     | [["", "60.00 (1)", "missing"]]
""")
def test_cells_have_the_runs_that_the_typed_values_make(sweep, changes, there):
    found = rows(wanted(sweep, changes), made(none=[60.0], input=[70.0]))[1:]
    if sweep == "table1":
        found = [["", *row[3:5]] for row in found if row[1] != "the paper"]
    else:
        found = [list(row[1:]) for row in found]
    assert [row[: len(each)] for row, each in zip(found, there, strict=True)] == there


def test_the_weights_of_layers_by_place():
    header, row = rows(wanted("figure2", seeds=2), made(both=[80.0, 82.0]))
    assert header == ("task", "ELMo at", "s_0", "s_1", "s_2", "γ", "seeds")
    assert row == ("NER", "input", "0.10 ▼", "0.30 ▼", "0.60", "1.25", "2")


# The pages.


def test_the_figures_of_table_1_are_those_of_the_tasks_pages():
    for task, (_, baseline, elmo, _) in pages.table("table1").paper.items():
        given = OmegaConf.load(pages.page(task)).task.paper
        mean, _, deviation = elmo.partition(" ± ")
        assert (given.baseline, given.elmo) == (float(baseline), float(mean))
        assert given.get("elmo_deviation") == (float(deviation) if deviation else None)


@pytest.mark.parametrize("sweep", pages.sweeps())
def test_every_row_of_the_paper_has_a_figure_for_every_column_of_its_table(sweep):
    table = pages.table(sweep)
    assert {len(row) for row in table.paper.values()} <= {sum(not column.recorded for column in table.columns)}
    assert {task for finding in table.findings for task in finding.paper} | {*table.paper} <= {*pages.tasks()}


@pytest.mark.parametrize("sweep", [name for name in pages.sweeps() if pages.table(name).columns])
def test_the_cells_of_a_table_are_the_settings_of_its_sweep(sweep):
    """So that `sweep` trains what the table shows, and nothing else."""
    found = [normal(setting(point), "mini") for point in points(sweep, ["scale=mini"], [1])]
    cells = [normal(each, "mini") for each in pages.table(sweep).settings]
    assert all(each in cells for each in found)
    assert all(each in found for each in cells)


@cases(r"""
    column                | said
    of: {elmo.lamda: 1.0} | no run of the sweep has elmo.lamda=1.0; its runs have: baseline, elmo.lambda=1.0
    gain: [baseline, b]   | 'x': gain=\[baseline, b\]: the titles of two columns with runs are needed
""")
def test_a_column_without_runs_of_the_sweep_is_one_line(column, said, bench):
    made = f"[{{title: baseline, of: {{arm: baseline}}}}, {{title: x, {column}}}]"
    params = "{elmo: '{where:none},{lambda:1.0}', seed: '1'}"
    text = f"# @package _global_\nhydra: {{sweeper: {{params: {params}}}}}\ntable: {{columns: {made}}}\n"
    (bench.conf / "sweep" / "mine.yaml").write_text(text)
    with refuses(f"mine.yaml: .*{said}"):
        SweepRequest("mine", ["ner"]).check()


@cases("""
    text | said
    {}task: {{fit: {{epochs: 1}}}} | task: a setting that all runs share is part of the sweep, too
    {}defaults: [{{override /vectors: random}}] | override /vectors: a setting that all runs share
    table: {{}} | the first line must be `# @package _global_`
    {}table: {{split: tset}} | table.split=tset: should be 'dev' or 'test'; did you mean test
    {}hydra: {{sweeper: {{params: {{seed: [1, 2]}}}}}} | seed: several values are written .* seed: 1,2
    {}hydra: {{sweeper: {{params: {{task.data.train: 'a,b'}}}}}} | task.data.train: a table does not distinguish files
""")
def test_a_page_whose_table_would_show_other_runs_than_its_own_is_one_line(text, said, bench):
    (bench.conf / "sweep" / "mine.yaml").write_text(text.format("# @package _global_\n") + "\n")
    with refuses(f"mine.yaml: {said}"):
        SweepRequest("mine", ["ner"]).check()


def test_a_setting_of_all_runs_is_one_value_of_the_sweep(bench):
    params = "{arm: 'baseline,elmo', task.fit.epochs: 1, seed: '1'}"
    columns = "[{title: a, of: {arm: baseline, task.fit.epochs: 1}}, {title: b, of: {arm: elmo, task.fit.epochs: 1}}]"
    text = f"# @package _global_\nhydra: {{sweeper: {{params: {params}}}}}\ntable: {{columns: {columns}}}\n"
    (bench.conf / "sweep" / "mine.yaml").write_text(text)
    request = SweepRequest("mine", ["ner"])
    request.check()
    assert rows(request, made(none=[60.0], input=[70.0]))[1][-2:] == ("missing", "missing")


def test_a_sweep_without_a_table_has_a_column_for_each_setting_and_a_wrong_block_is_one_line(bench):
    path = bench.conf / "sweep" / "mine.yaml"
    head = "# @package _global_\nhydra: {mode: MULTIRUN, sweeper: {params: {elmo.where: 'none,input', seed: '1'}}}\n"
    path.write_text(head)
    assert rows(wanted("mine"), made(none=[60.0]))[0] == (
        "task",
        "baseline",
        "elmo.where=input",
    )
    path.write_text(head + "table: {colums: []}\n")
    with refuses(r"mine.yaml: table.colums: there is no such key; did you mean columns"):
        pages.table("mine")


@pytest.mark.parametrize(
    "wrong, said",
    [
        ("more: b", "b: choose from a"),
        ("more: [a, a]", "a: the table has no rows"),
        *((f"more: {titles}", "more|.*: the title of a column is needed") for titles in ("null", "[a]")),
        ("less: null", "less: the title of a column is needed"),
        ("measure: updats", "measure=updats: should be .*did you mean updates?"),
        ("paper: {}", "paper: needs the tasks"),
        ("paper: {nerr: ''}", "paper: nerr: did you mean ner?"),
        *((f"region: {region}", "region=.*: two bounds are needed") for region in ("[0]", "[1, 0]", "[.nan, 1]")),
    ],
)
def test_a_wrong_value_of_a_finding_is_one_line_that_names_it(wrong, said, bench):
    right = {"finding": "x", "more": "a", "less": "a", "paper": {"ner": ""}}
    finding = f"findings: [{yaml.safe_dump(right | yaml.safe_load(wrong), default_flow_style=True).strip()}]"
    path = bench.conf / "sweep" / "mine.yaml"
    path.write_text(f"# @package _global_\ntable: {{columns: [{{title: a, of: {{}}}}], {finding}}}\n")
    with refuses(f"mine.yaml: table.*({said})"):
        pages.table("mine")
    (bench.conf / "analysis" / "mine.yaml").write_text(finding)  # of a study, which has no columns
    with refuses("mine.yaml: findings"):
        pages.study_findings()


# The query.


def test_a_run_fits_what_it_has_and_not_what_it_changes_besides():
    (run,) = made(both=[1.0])
    assert fits(run, {"elmo.where": "both"})
    assert not fits(run, {})
    assert not fits(run, {"elmo.where": "input"})
    assert not fits(run, {"elmo.where": "both", "arm": "baseline"})
    (baseline,) = made(none=[1.0])
    assert fits(baseline, {"arm": "baseline", "elmo.where": "both", "bilm": "x"})  # which a baseline does not have
    assert not fits(baseline, {})
    (tuned,) = made(variant={"bilm": "tuned"}, input=[1.0])
    assert not fits(tuned, {"bilm": "mini"})  # the scale's own


def test_an_untrained_bilm_is_a_control_only_without_layer_normalisation():
    """By the task's own configuration, or because it was typed."""
    (plain,), (typed,) = (made(variant=each, input=[1.0]) for each in ({"bilm": "untrained"}, UNTRAINED))
    assert fits(plain, UNTRAINED)
    assert fits(typed, UNTRAINED)
    plain.config["elmo"]["layer_norm"] = "token"
    assert not fits(plain, UNTRAINED)
    columns = chain(*(pages.table(sweep).columns for sweep in pages.sweeps()))
    assert [column.of for column in columns if column.title == "untrained"] == [UNTRAINED, UNTRAINED]


@cases("""
    where | variant                 | table
    none  | {}                      | table1
    both  | {}                      | table3
    input | {"elmo.layers": "last"} | table2
    input | {"fraction": 0.3}       | figure1
    input | {"vectors": "random"}   | vectors
    input | {"bilm": "minilm"}      | sources
    input | {"bilm": "mine"}        | table1
    input | {"bilm.seed": 2}        | variance
    input | {"elmo.dropout": 0.1}   | others
""")
def test_a_run_stands_in_the_first_table_that_has_it(where, variant, table):
    (run,) = made("ner", variant, **{where: [1.0]})
    assert table_of(run) == table


# The report.


# The controls beside +ELMo: its layer without context, an untrained biLM; runs that were best in their last epoch.


ARMS = {"baseline": {}, "elmo": {}, "layers_0": {"elmo.layers": 0}, "untrained": {"bilm": "untrained"}}


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
    planned = plan(wanted("context", seeds=2))
    typed = (["arm=baseline"], [], ["elmo.layers=0"], ["bilm=untrained", "elmo.layer_norm=false"])
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
    assert "layers=0" not in str(sections(made["tables/table1.open.md"]))


def test_the_part_of_the_gain_that_is_context_stands_beside_the_gain():
    main = overview(runs(**BOTH, layers_0=65.0))
    ours = dict(zip(main.header, main.rows[0], strict=True))
    assert ours["gain"].startswith("+10.00 [")
    assert ours["context (over layer 0)"].startswith("+5.00 [+4.")
    assert main.remarks == []
    made = of_scales(by_scale(runs(**BOTH, layers_0=65.0)))
    assert [*made] == ["tables/table1.open.md", "tables/context.open.md"]
    (table, *_) = sections(made["tables/table1.open.md"])
    assert table.header[-3:] == ("increase (absolute / relative)", "layers=0", "context (over layer 0)")
    assert table.rows[-1][-1].startswith("+5.00 [")
    assert table.remarks[-1].startswith("ner: 4 of 10 runs are missing")  # of Table 1's own
    (table, *_) = sections(made["tables/context.open.md"])
    assert table.rows[0][-2:] == ("+5.00 [+4.77, +5.23]", "missing")


def test_a_gain_that_is_not_of_context_is_told_in_words():
    for f1, verdict in ((70.0, "not shown"), (75.0, "worse")):
        records = runs(**BOTH, layers_0=f1)
        (said,) = overview(records).remarks
        assert said.startswith("+ELMo is not shown to be better than its layer without context (`elmo.layers=0`): ner ")
        assert f", {verdict}. Its gain there" in said
        assert said in page.embedded("\n".join(page.MARKS), [overview(records)])


def test_controls_are_rows_of_the_gains_of_a_task():
    found = score_tables.gains_of(Outcome(runs(**BOTH, layers_0=65.0, untrained=61.0)))[0]
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
    made = runs(**BOTH, **{control.replace("=", "_"): f1})
    findings = {
        each.finding.less: each
        for each in evaluated(by_scale(made)["open"], "open", [])
        if isinstance(each.finding.less, str)
    }
    (row,) = (row for row in findings[control].rows if row.task == "ner")
    assert row.verdict == verdict
    assert findings[control].command.startswith("elmo-bench sweep +sweep=context")


def test_reproduce_prints_the_context_of_both_whether_or_not_the_user_has_trained_controls(monkeypatch):
    reference = runs(**BOTH, layers_0=66.0)
    monkeypatch.setattr(score_tables, "read_all", lambda *place: reference)
    (table,) = score_tables.beside(runs(seeds=(1,), **BOTH))
    assert [row[0] for row in table.rows] == ["baseline", "+ELMo (input)", "gain of +ELMo", "context (over layer 0)"]
    assert table.rows[-1][2:5] == ("", "", "+4.00 [+3.77, +4.23]")
    (table,) = score_tables.beside(runs(seeds=(1,), **BOTH, layers_0=69.0))
    assert table.rows[-1][2] == "+1.00"


def last(records):
    """The same, with all that they were allowed to train."""
    for record in records:
        record.config["task"]["fit"] = {"epochs": record.epochs}
    return [*map(replace, records)]


def test_runs_that_were_best_in_their_last_epoch_are_counted_where_their_score_is_shown(monkeypatch):
    records = [*last(runs(baseline=60.0)), *runs(elmo=70.0, layers_0=65.0), *last(runs(seeds=(4,), elmo=70.0))]
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
    made = page.Report(runs(**BOTH, layers_0=65.0), tmp_path)
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
