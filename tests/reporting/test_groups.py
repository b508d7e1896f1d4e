"""Which runs a table averages, and how it tells apart rows of one arm."""

import json
from dataclasses import replace

import pytest

from elmo_bench.configuration import pages
from elmo_bench.reporting import report as page
from elmo_bench.reporting import score_tables
from elmo_bench.reporting.gains import Outcome, by_scale, in_groups, settings_text
from elmo_bench.reporting.report import Chapter, answer
from elmo_bench.reporting.section import Section
from tests.records.test_records import fake, save

MINE, OTHER = "c" * 64, "d5" * 32  # two digests


def names(*records):
    return [group.name for group in in_groups(records)]


@pytest.mark.parametrize(
    "one, other, told",
    [
        ({"bilm": {"weights": f"sha256:{MINE}"}}, {"bilm": {"weights": f"sha256:{OTHER}"}},
         ("bilm.weights=cccccccc", "bilm.weights=d5d5d5d5")),
        ({"task": {"batch": {"batch_size": 8}}}, {"task": {"batch": {"batch_size": 16}, "clip": 5.0}},
         ("task.batch.batch_size=8; task.clip=null", "task.batch.batch_size=16; task.clip=5.0")),
    ],
)  # fmt: skip
def test_groups_of_one_name_say_in_what_their_settings_differ(one, other, told):
    two = [fake(settings={"seed": 1, "data": MINE, **settings}) for settings in (one, other)]
    assert names(*two) == [f"+ELMo (input); {differs}" for differs in told]
    assert names(two[0], fake("none")) == ["+ELMo (input)", "baseline"]


def test_many_settings_are_cut_short():
    assert settings_text({f"k{i}": i == 1 for i in range(6)}, 2) == ["k0=false", "k1=true", "4 more settings"]


def test_records_of_earlier_versions_are_left_out_and_one_line_says_so(tmp_path, monkeypatch, capsys):
    for number, f1 in ((1, 60.0), (2, 80.0)):
        save(tmp_path, *(fake(where, seed, f1 + 10 * (where == "input"), version=number)
                         for where in ("none", "input") for seed in (1, 2)))  # fmt: skip
    page.refresh(tmp_path)
    assert "4 records of earlier versions of their tasks are left out" in capsys.readouterr().err
    one_task, _ = score_tables.sections(page.read_all(tmp_path))
    assert [(row[0], row[4]) for row in one_task.rows] == [
        ("baseline", "80.00 ± 0.00"),
        ("+ELMo (input)", "90.00 ± 0.00"),
    ]
    monkeypatch.setattr(pages, "written", lambda *_: 3)  # the task's configuration is newer than all of them
    assert {record.version for record in page.read_all(tmp_path)} == {2}


def test_of_two_groups_for_one_cell_that_with_more_seeds_is_shown():
    few = fake("none", 1, 90.0, group="few", finished="2026-02-01T00:00:00+00:00")
    (section,) = score_tables.overview(by_scale([few, *(fake("none", seed, 70.0) for seed in (1, 2))]))
    assert section.rows[0][3] == "70.00 ± 0.00 (2)"


def test_a_bilm_that_no_main_arm_uses_has_no_row_in_the_overview():
    tuned = {"name": "open-tuned", "sha256": OTHER, "tuned": True}
    runs = [
        fake("none", group="a"),
        fake("input", group="b"),
        fake("input", group="c", variant={"bilm": "tuned"}, bilm=tuned),
    ]
    (section,) = score_tables.overview(by_scale(runs))
    assert [row[:3] for row in section.rows] == [("ner", "f1", "random")]


# Records that claim one cell.


def one_cell(seed=1, sha256=MINE, data_sha256=MINE, **more):
    """A run of ELMo with this biLM on these data."""
    bilm = {"name": "open", "sha256": sha256, "tuned": False}
    return fake("input", seed, bilm=bilm, data_sha256=data_sha256, **more)


@pytest.mark.slow
@pytest.mark.parametrize(
    "other, mark, group",
    [({"sha256": OTHER}, "biLM d5d5d5d5", None), ({"data_sha256": OTHER}, "data d5d5d5d5", "another")],
)
def test_records_that_claim_one_cell_have_a_row_each(other, mark, group):
    """Whatever group the other names, it neither joins the runs nor hides them."""
    runs = [one_cell(seed, f1=58.0 + seed) for seed in (1, 2, 3)]
    records = [*runs, one_cell(4, f1=1.0, group=group, **other), fake("none", f1=50.0, data_sha256=MINE)]
    overview, section = score_tables.overview(by_scale(records))[0], score_tables.sections(records)[0]
    tests = {"60.00 ± 1.00", "1.00"}
    rows = [row for row in section.rows if row[0].startswith("+ELMo")]
    assert {row[4] for row in rows} == tests
    assert len({row[0] for row in rows}) == 2
    assert {row[4] for row in overview.rows if row[4]} == {"60.00 ± 1.00 (3)", "1.00 (1)"}
    assert len({row[0] for row in overview.rows}) == len(overview.rows) == 2
    assert any(mark in row[0] for row in rows)
    assert any(mark in row[0] for row in overview.rows)


def test_elmo_is_not_compared_with_a_baseline_on_other_data():
    runs = [one_cell(f1=60.0), fake("none", f1=50.0, data_sha256=MINE), fake("none", group="x", data_sha256=OTHER)]
    (gain,) = score_tables.gains_of(Outcome(runs))[0].rows
    assert gain[1].endswith("data cccccccc")
    assert gain[4] == "+10.00"


def test_elmo_is_not_compared_with_a_baseline_on_another_file_of_vectors_of_the_same_name():
    runs = [fake("none", seed, 50.0 + seed) for seed in (1, 2)] + [fake("input", seed, 60.0 + seed) for seed in (1, 2)]
    for record in runs:
        table = f"sha256:{OTHER if record.has_elmo else MINE}"
        record.settings["vectors"] = {"source": "sets", "sets": {"glove": {"table": table}}}
        record.config["vectors"] = {"source": "sets", "sets": {"glove": {"name": "glove.6B.50d"}}}
    runs = [*map(replace, runs)]
    assert Outcome(runs).comparisons == []
    assert Outcome(runs).pair({}, {"arm": "baseline"}) is None
    (section,) = score_tables.overview(by_scale(runs))
    assert {row[0]: row[3:6] for row in section.rows} == {
        "ner (vectors d5d5d5d5)": ("", "61.50 ± 0.71 (2)", ""), "ner (vectors cccccccc)": ("51.50 ± 0.71 (2)", "", ""),
    }  # fmt: skip
    for record in runs:
        record.settings["vectors"]["sets"]["glove"]["table"] = f"sha256:{MINE}"
    assert len(Outcome([*map(replace, runs)]).comparisons) == 1


def test_the_answer_is_of_the_scales_own_data_and_bilm_and_names_others():
    """However many seeds the others have."""
    scales = [fake("none", 1, 50.0), one_cell(1, f1=60.0, data_sha256="0")]
    small = {"name": "small", "sha256": OTHER, "tuned": False}
    others = [fake("input", seed, 90.0, group="s", bilm=small, variant={"bilm": "small"}) for seed in (1, 2)]
    mine = [fake(where, seed, f1, group=f"{where}-mine", data_sha256=OTHER)
            for where, f1 in (("none", 50.0), ("input", 80.0)) for seed in (1, 2, 3)]  # fmt: skip
    for record in mine:
        record.config["task"] |= {"name": "ner", "data": {"train": "<elsewhere>/mine.txt"}}
        record.config["scale"] |= {"name": "open"}

    def told(*runs):
        main = Outcome([*runs]).main
        return main.title, main.test.mean, "; ".join(answer(by_scale(runs)).words)

    assert told(*scales, *others, *mine)[:2] == ("ner", 10.0)
    assert Outcome([*mine, *scales]).pair({}, {"arm": "baseline"})[0].records == scales[1:]
    assert told(scales[0], *others, *mine)[:2] == ("ner (biLM small)", 40.0)
    title, gain, words = told(*mine)
    assert (title, gain) == ("ner (task.data.train=mine.txt)", 30.0)
    assert f"the gain is +30.00 points ({title})" in words
    (section,) = score_tables.overview(by_scale([*mine, fake("none", task="coref")]))
    assert (section.note, section.rows[1][0]) == (pages.written("scale", "open", "note"), "ner (data mine.txt)")
    (section,) = score_tables.overview(by_scale([*mine, *scales]))  # a name is enough to tell them apart
    assert [row[0].partition("data")[2] for row in section.rows] == ["", " mine.txt)"]


def test_a_bilm_that_runs_make_themselves_is_known_by_its_recipe():
    """Trained on another processor it has other bits, as the same sums are rounded otherwise."""
    runs = [one_cell(seed, digest, f1=58.0 + seed) for seed, digest in ((1, MINE), (2, OTHER))]
    assert len(in_groups(runs)) == 2
    for record in runs:
        record.settings["bilm"] = {"recipe": {"version": 1}}
    (group,) = in_groups([*map(replace, runs)])
    assert [record.seed for record in group.records] == [1, 2]
    runs[1].settings["bilm"] = {"recipe": {"version": 2}}
    assert len(in_groups([*map(replace, runs)])) == 2


# Pages.


def test_the_html_escapes_everything_and_the_json_holds_the_same_cells():
    evil = "<script>alert('1')</script> & \"x\""
    chapters = [Chapter("sweeps", evil, [evil], [Section(evil, evil, (evil, evil), [(evil, evil)], [evil])])]
    html = page.html(chapters, [evil])
    assert "<script" not in html
    assert html.count("&lt;script&gt;") > 5
    read = json.loads(page.data(chapters))["sweeps"]
    assert read["tables"] == [
        {"title": evil, "note": evil, "header": [evil] * 2, "rows": [[evil] * 2], "remarks": [evil]}
    ]
