"""Below the table of a sweep: differences between its settings, with intervals, and what they show."""

from __future__ import annotations

import json
import re

import pytest

from elmo_bench.records import store
from elmo_bench.reporting.pages import report as page
from elmo_bench.reporting.statistics import differences
from elmo_bench.reporting.tables import files as table_files
from elmo_bench.sweeps.asked import Asked
from elmo_bench.system.errors import UserError
from tests.records.test_records import save
from tests.reporting.test_sweep_tables import TABLE3, made, outcome, trained

pytestmark = pytest.mark.usefixtures("first_versions", "plain_pair")

NOT_SHOWN = {"input": [80.0, 82.0, 81.0], "both": [81.5, 80.5, 82.0], "output": [60.0, 61.0, 62.0]}


def below(folder, *arguments, **more) -> list[tuple[str, ...]]:
    """The rows below the table."""
    section = table_files.write(outcome(folder, *arguments, **more)).differences
    return [] if section is None else section.rows


def test_each_difference_has_its_interval_the_papers_and_what_is_shown(tmp_path):
    save(tmp_path, *made("srl", **NOT_SHOWN))
    table = table_files.write(outcome(tmp_path, Asked("table3", ["srl"]), TABLE3, seeds=(1, 2, 3)))
    assert table.differences is not None
    assert table.differences.header == differences.HEADER
    over_input, over_output = table.differences.rows
    assert over_input[:3] == ("SRL", "both places over the input alone", "-0.4")  # 84.3 - 84.7
    assert over_output[:3] == ("SRL", "both places over the output alone", "+3.4")  # 84.3 - 80.9
    assert re.fullmatch(r"\+0\.33 \[-\d\.\d\d, \+\d\.\d\d\]", over_input[4])
    assert re.fullmatch(r"\+20\.33 \[\+1\d\.\d\d, \+2\d\.\d\d\]", over_output[4])
    assert (over_input[-1], over_output[-1]) == ("open", "more")
    assert float(over_input[5]) > 0.05
    assert over_output[5] == "<0.001"
    assert "| SRL | both places over the input alone | -0.4 |" in table.path.read_text()
    assert json.loads(table.path.with_suffix(".json").read_text())["differences"]["rows"][1] == list(over_output)


def test_what_dev_and_test_show_is_said_apart_where_it_differs(tmp_path):
    runs = made("srl", **NOT_SHOWN)
    for record in runs:
        if record["group"] == "mini-both":
            record["metrics"]["dev"]["f1"] -= 40
    save(tmp_path, *runs)
    assert below(tmp_path, Asked("table3", ["srl"]), TABLE3, seeds=(1, 2, 3))[0][-1] == "less on dev, open on test"


def test_one_seed_and_missing_runs_show_nothing(tmp_path):
    save(tmp_path, *made("srl", input=[80.0], both=[81.0]))
    (row,) = below(tmp_path, Asked("table3", ["srl"]), TABLE3, seeds=(1,))
    assert row[3:] == ("+1.00", "+1.00", "", "one seed")
    assert below(tmp_path / "other", Asked("table3", ["srl"]), TABLE3, seeds=(1,)) == []


@pytest.mark.parametrize(("enough", "share"), [(80.5, "10 %"), (79.0, "30 %"), (50.0, "30 %")])
def test_figure_1_says_with_which_part_of_the_data_elmo_is_as_good_as_the_baseline(tmp_path, enough, share):
    """The smallest part that reaches it; if none does, the largest one below all."""
    settings = [(f"arm={arm}", f"fraction={part}") for part in (0.1, 0.3, 1.0) for arm in ("baseline", "elmo")]
    scores = {"0.1": enough, "0.3": max(enough, 79.5) if enough > 60 else enough, "1.0": 90.0}
    runs = []
    for arm, part in ((a.partition("=")[2], f.partition("=")[2]) for a, f in settings):
        record = trained(arm, 1, [79.2 if arm == "baseline" else scores[part]])
        record["metrics"] = {split: {"f1": record["history"]["dev.f1"][0]} for split in ("dev", "test")}
        runs.append({**record, "run": f"{arm}-{part}-1", "group": f"{arm}-{part}"})
    save(tmp_path, *runs)
    found = outcome(tmp_path, Asked("figure1", ["ner"]), settings, seeds=(1,))
    named = {point: "-".join(one.partition("=")[2] for one in point.setting) for point in found.plan.points}
    composed = {
        point: each._replace(run=f"{named[point]}-1", group=named[point]) for point, each in found.plan.composed.items()
    }
    table = table_files.write(found._replace(plan=found.plan._replace(composed=composed)))
    assert table.differences is not None
    (row,) = table.differences.rows
    assert row[1] == f"+ELMo with {share} of the data over the baseline with 100 %"


def test_the_report_has_the_tables_of_sweeps_made_again_from_the_records(tmp_path):
    save(tmp_path, *made("srl", **NOT_SHOWN))
    asked = Asked("table3", ["srl"], overrides=["elmo.dropout=0.2"])
    table_files.write(outcome(tmp_path, asked, TABLE3, seeds=(1, 2, 3)))
    (path,) = (tmp_path / "tables").glob("*.md")
    path.with_suffix(".md").write_text("changed by hand")
    save(tmp_path, *made("srl", input=[70.0, 71.0, 72.0]))  # in the place of the earlier ones
    files = page.contents(store.read_all(tmp_path), tmp_path)
    assert "| SRL, f1 | ours, mini | 72.00 ± 1.00 (3) |" in files["sweeps.md"]
    assert "All runs with elmo.dropout=0.2." in files["sweeps.md"]
    tables = json.loads(files["report.json"])["sweeps"]["tables"]
    runs = [f"mini-input-{seed}" for seed in (1, 2, 3)]
    assert tables[0]["rows"][1][2] == {"text": "72.00 ± 1.00 (3)", "below": [], "runs": runs}
    assert tables[1]["rows"][1][0] == "SRL: both places over the output alone"
    assert len(tables[1]["rows"][1][3]["runs"]) == 6


def test_a_damaged_table_is_named_in_one_line(tmp_path):
    save(tmp_path, *made("srl", input=[80.0]))
    table = table_files.write(outcome(tmp_path, Asked("table3", ["srl"]), TABLE3, seeds=(1,)))
    table.path.with_suffix(".json").write_text("{}")
    with pytest.raises(UserError, match=r"table3\.mini\.json: .*run=false"):
        page.contents(store.read_all(tmp_path), tmp_path)
