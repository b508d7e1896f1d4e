"""The table of a sweep: its rows and columns are the paper's, its figures those of the records."""

from __future__ import annotations

import json
import re

import pytest
from omegaconf import OmegaConf

from elmo_bench.configuration import layouts, pages, schema
from elmo_bench.configuration.layouts import Layout
from elmo_bench.records import store
from elmo_bench.reporting.pages import report as page
from elmo_bench.reporting.statistics.cells import Cell, cells
from elmo_bench.reporting.tables import files as table_files
from elmo_bench.sweeps.asked import Asked
from elmo_bench.sweeps.pages import points
from elmo_bench.sweeps.plan import Composed, Plan, Point
from elmo_bench.sweeps.together import Outcome
from elmo_bench.system import places
from elmo_bench.system.errors import UserError
from tests.records.test_records import fake, save

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("first_versions", "plain_pair")]

NUMBER = re.compile(r"\d+\.\d+")


def outcome(folder, asked: Asked, settings: list[tuple[str, ...]], seeds=(1, 2), beyond=()) -> Outcome:
    """What has become of runs whose groups are named as those of `fake`: the last part of the setting."""
    listed = [Point(task, setting, seed, ()) for task in asked.tasks for setting in settings for seed in seeds]
    run = schema.typed(pages.compose([f"task={asked.tasks[0]}", f"results_root={folder}"]))
    runs = {point: fake(name(point), point.seed, scale=asked.scale, task=point.task) for point in listed}
    composed = {point: Composed(run, each.run, each.group) for point, each in runs.items()}
    records = {record.run: record for task in asked.tasks for record in store.read_all(folder, asked.scale, task)}
    lost = {point: UserError("cannot be") for point in listed if (point.setting, point.seed) in beyond}
    return Outcome(Plan(asked, listed, composed, {}, records, []), records, {}, lost)


def name(point: Point) -> str:
    return point.setting[-1].rpartition("=")[2].strip("{}").rpartition(":")[2]


def rows(folder, *arguments, **more) -> list[tuple[str, ...]]:
    table = table_files.write(outcome(folder, *arguments, **more))
    return [table.section.header, *table.section.rows]


TABLE3 = [("elmo.where=input",), ("elmo.where=both",), ("elmo.where=output",)]


def made(task="ner", **scores):
    return [
        fake(where, seed + 1, f1, scale="mini", task=task)
        for where, each in scores.items()
        for seed, f1 in enumerate(each)
    ]


def test_ours_stands_beside_the_papers(tmp_path):
    save(tmp_path, *made("srl", input=[80.0, 82.0], both=[70.0]))
    header, paper, ours = rows(tmp_path, Asked("table3", ["srl"]), TABLE3)
    assert header == ("task", "", "input only", "input & output", "output only")
    assert paper == ("SRL, f1", "the paper", "84.7", "84.3", "80.9")
    assert ours == ("SRL, f1", "ours, mini", "82.00 ± 1.41 (2)", "71.00 (1; 1 missing)", "missing")


def test_what_is_missing_is_said_with_the_command_that_runs_it(tmp_path):
    save(tmp_path, *made("srl", input=[80.0, 82.0], both=[70.0]))
    asked = Asked("table3", ["srl"], seeds=2, overrides=["data_root=/my/data", "elmo.dropout=0.2"])
    table = table_files.write(outcome(tmp_path, asked, TABLE3))
    (remark,) = table.section.remarks
    command = "elmo-bench sweep +sweep=table3 task=srl scale=mini seeds=2 elmo.dropout=0.2"
    assert remark == f"srl: 3 of 6 runs are missing: {command}"
    assert table.path.name == "table3.mini.elmo.dropout=0.2.md"
    text = table.path.read_text() + table.path.with_suffix(".json").read_text()
    assert "/my/data" not in text
    assert "All runs with elmo.dropout=0.2." in text


def test_the_increase_is_absolute_and_relative_to_the_remaining_error(tmp_path):
    save(tmp_path, *made(baseline=[90.0], elmo=[91.5], text=[50.0]))
    header, _, ours = rows(
        tmp_path, Asked("table1", ["ner"]), [("arm=baseline",), ("arm=text",), ("arm=elmo",)], seeds=(1,)
    )
    assert header[2:] == (
        "previous best", "baseline", "+ ELMo", "increase (absolute / relative)", "baseline, text vectors"
    )  # fmt: skip
    assert ours[2:] == ("", "90.00 (1)", "91.50 (1)", "1.50 / 15.0 %", "50.00 (1)")


def test_other_tasks_keep_their_rows_made_again_from_their_records(tmp_path):
    save(tmp_path, *made("srl", input=[80.0], both=[70.0], output=[60.0]), *made("snli", input=[50.0]))
    rows(tmp_path, Asked("table3", ["srl"]), TABLE3, seeds=(1,))
    save(tmp_path, *made("srl", input=[81.0]))
    both = rows(tmp_path, Asked("table3", ["snli"]), TABLE3, seeds=(1,))
    assert [row[:3] for row in both[1:]] == [
        ("SNLI, f1", "the paper", "88.9"), ("SNLI, f1", "ours, mini", "51.00 (1)"),
        ("SRL, f1", "the paper", "84.7"), ("SRL, f1", "ours, mini", "82.00 (1)"),
    ]  # fmt: skip
    (tmp_path / "tables" / "table3.mini.json").write_text("{}")  # damaged: the task asked for is all that is known
    assert len(rows(tmp_path, Asked("table3", ["snli"]), TABLE3, seeds=(1,))) == 3


def test_two_keys_make_rows_and_columns(tmp_path):
    settings = [(f"arm={arm}", f"fraction={share}") for arm in ("baseline", "elmo") for share in (0.1, 1.0)]
    asked = Asked("figure1", ["ner"])
    found = cells(outcome(tmp_path, asked, settings))
    assert [(cell.row, cell.column) for cell in found] == [
        ("arm=baseline", "fraction=0.1"), ("arm=baseline", "fraction=1.0"),
        ("arm=elmo", "fraction=0.1"), ("arm=elmo", "fraction=1.0"),
    ]  # fmt: skip
    table = rows(tmp_path, asked, settings)
    assert table[0] == ("task", "", "0.1 %", "0.3 %", "1 %", "3 %", "10 %", "30 %", "100 %")
    assert [row[:2] for row in table[1:]] == [("NER, f1", "baseline"), ("NER, f1", "+ELMo")]


def test_what_cannot_be_has_a_dash_also_when_the_table_alone_or_another_task_is_asked_for(tmp_path):
    settings = [("arm=elmo", "fraction=0.01"), ("arm=elmo", "fraction=1.0")]
    beyond = [(settings[0], 1), (settings[0], 2)]
    asked = Asked("figure1", ["ner"])
    for lost in (beyond, []):
        table = table_files.write(outcome(tmp_path, asked, settings, beyond=lost))
        (row,) = table.section.rows
        assert (row[4], row[8]) == ("–", "missing")
        assert table.section.remarks[0].startswith("ner: 2 of 2 runs are missing: ")
    save(tmp_path, *made("snli", **{"1.0": [50.0]}))
    table = table_files.write(outcome(tmp_path, Asked("figure1", ["snli"]), settings))
    (row,) = [row for row in table.section.rows if row[0].startswith("NER")]
    assert row[4] == "–"


def test_the_weights_of_layers_by_place(tmp_path):
    save(tmp_path, *made(both=[80.0, 82.0]))
    header, row = rows(tmp_path, Asked("figure2", ["ner"]), [("elmo.where=both",)])
    assert header == ("task", "ELMo at", "s_0", "s_1", "s_2", "γ", "seeds")
    assert row == ("NER", "input", "0.10 ▼", "0.30 ▼", "0.60", "1.25", "2")


def test_the_json_has_the_cells_with_their_runs(tmp_path):
    save(tmp_path, *made(input=[80.0, 82.0]))
    table = table_files.write(outcome(tmp_path, Asked("table3", ["ner"]), TABLE3))
    read = json.loads(table.path.with_suffix(".json").read_text())
    first, *_ = read["cells"]
    assert first["runs"] == [record.run for record in made(input=[81.0, 83.0])]
    assert (first["column"], first["seeds"], first["metric"]) == ("elmo.where=input", [1, 2], "f1")
    assert first["dev"] == pytest.approx([82.0, 2**0.5])
    assert [read["header"], *read["rows"]] == [list(row) for row in (table.section.header, *table.section.rows)]
    assert table.path.read_text().count("\n| ") == len(read["rows"]) + 2
    before = {path: path.read_bytes() for path in table.path.parent.iterdir()}
    table_files.write(outcome(tmp_path, Asked("table3", ["ner"]), TABLE3))
    assert {path: path.read_bytes() for path in table.path.parent.iterdir()} == before


# The pages.


def entries() -> dict[str, Layout]:
    return {sweep: layouts.layout(sweep) for sweep in layouts.sweeps()}


def test_a_page_opens_with_every_figure_of_the_paper_that_its_table_has():
    for sweep, layout in entries().items():
        opening = (places.CONF / "sweep" / f"{sweep}.yaml").read_text().partition("hydra:")[0]
        figures = [number for row in layout.paper.values() for cell in row for number in NUMBER.findall(cell)]
        assert [number for number in figures if number not in opening] == []
        assert "aper" in opening


def test_the_figures_of_table_1_are_those_of_the_tasks_pages():
    for task, (_, baseline, elmo, _) in layouts.layout("table1").paper.items():
        given = OmegaConf.load(pages.page(task)).task.paper
        mean, _, deviation = elmo.partition(" ± ")
        assert (given.baseline, given.elmo) == (float(baseline), float(mean))
        assert given.get("elmo_deviation") == (float(deviation) if deviation else None)


def test_every_row_of_the_paper_has_a_figure_for_every_column_of_its_table():
    for layout in entries().values():
        assert {len(row) for row in layout.paper.values()} <= {len(layout.columns)}
        assert {*layout.paper} <= {*layouts.titles()} <= {*pages.tasks()}


@pytest.mark.parametrize("sweep", [name for name in layouts.sweeps() if layouts.layout(name).columns])
def test_the_columns_of_a_table_are_settings_of_its_sweep(sweep):
    layout = layouts.layout(sweep)
    task = (layout.tasks or ["snli"])[0]
    listed = [
        Point(task, tuple(v.lstrip("+") for v in each[:-1]), 1, ())
        for each in points(sweep, [f"task={task}", "scale=paper"], [1])
    ]
    found = {cell.column for cell in cells(Outcome(Plan(Asked(sweep, [task]), listed, {}, {}, {}, []), {}, {}, {}))}
    named = {one for column in layout.columns for one in (column.of, *column.gain) if one}
    assert named <= found


def test_a_sweep_without_an_entry_has_a_table_and_a_wrong_entry_is_one_line(bench):
    (bench.conf / "sweep" / "mine.yaml").write_text("# @package _global_\n")
    assert layouts.layout("mine").columns == []
    listed = bench.conf / "tables.yaml"
    listed.write_text(listed.read_text() + "\nmine: {colums: []}\n")
    with pytest.raises(UserError, match=r"tables.yaml: the entry mine: Key 'colums' not in 'Layout'"):
        layouts.layout("mine")


def test_a_cell_outlives_its_json():
    cell = Cell("ner", "", "elmo.where=input", "abc", (1, 2), (2,))
    assert Cell.of(json.loads(json.dumps(cell._asdict()))) == cell


# The report.


def test_the_report_has_the_tables_of_sweeps_made_again_from_the_records(tmp_path):
    save(tmp_path, *made("srl", input=[80.0, 82.0, 81.0]))
    asked = Asked("table3", ["srl"], overrides=["elmo.dropout=0.2"])
    swept = outcome(tmp_path, asked, TABLE3, seeds=(1, 2, 3))
    path = table_files.write(swept).path
    written = path.read_text().replace(swept.plan.config.scale.note, "note on mini")
    assert page.contents(store.read_all(tmp_path), tmp_path)[f"tables/{path.name}"] == written
    path.write_text("changed by hand")
    save(tmp_path, *made("srl", input=[70.0, 71.0, 72.0]))  # in the place of the earlier ones
    files = page.contents(store.read_all(tmp_path), tmp_path)
    changed = written.replace("82.00 ± 1.00", "72.00 ± 1.00")
    assert "All runs with elmo.dropout=0.2." in changed
    assert files[f"tables/{path.name}"] == changed
    (table,) = json.loads(files["report.json"])["sweeps"]["tables"]
    runs = [record.run for record in made("srl", input=[0.0] * 3)]
    assert table["rows"][1][2] == {"text": "72.00 ± 1.00 (3)", "below": [], "runs": runs}


def test_a_damaged_table_is_named_in_one_line(tmp_path):
    save(tmp_path, *made("srl", input=[80.0]))
    table = table_files.write(outcome(tmp_path, Asked("table3", ["srl"]), TABLE3, seeds=(1,)))
    table.path.with_suffix(".json").write_text("{}")
    with pytest.raises(UserError, match=r"table3\.mini\.json: .*run=false"):
        page.contents(store.read_all(tmp_path), tmp_path)
