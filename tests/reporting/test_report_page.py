"""The report's page: an answer first, numbers that name their runs, pictures that repeat byte for byte."""

import json
import re
import shutil
import subprocess
from dataclasses import replace
from xml.etree import ElementTree

import matplotlib
import pytest

from elmo_bench.records import store
from elmo_bench.records.studies import StudyCell, StudyRecord
from elmo_bench.reporting import charts, report, sweep_tables
from elmo_bench.reporting.gains import by_scale, compared
from elmo_bench.reporting.intervals import Spread
from tests.conftest import PATIENCE, ROOT
from tests.fakes import cases
from tests.records.test_records import fake, save
from tests.reporting.test_findings import learned

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The records of two scales, and the report of them."""
    root = tmp_path_factory.mktemp("results")
    baseline = [fake("none", seed, 84.0 + seed, **learned(70.0, 80.0 + seed)) for seed in (1, 2, 3)]
    elmo = [fake("input", seed, 88.0 + seed, **learned(75.0, 83.0, 86.0 + seed)) for seed in (1, 2, 3)]
    save(root, *baseline, *elmo, fake("none", 1, 70.0, scale="mini"), fake("input", 1, 72.0, scale="mini"))
    report.refresh(root)
    return root


@pytest.fixture
def records(folder):
    return store.read_all(folder)


@pytest.fixture
def page(folder):
    return (folder / "report.html").read_text()


def part(share, where, seed, f1):
    """A record of a run on a part of the training data."""
    record = fake(where, seed, f1, group=f"{where}-{share}", variant={"fraction": share})
    record.config["fraction"] = share
    return replace(record)


# The page.


def test_the_page_opens_with_the_answer(page):
    first = page[page.index("<main") :]
    assert first.index("Does ELMo help") < first.index("<svg") < first.index("<details") < first.index("<table")
    words = re.findall(r"<p>(.*?)</p>", first)
    assert words[0].startswith("Scale open: +ELMo scores higher than the baseline on 1 of 1 task; the gain is +4.00")
    assert "The 95 % interval is above zero for: ner." in words[0]
    assert "One seed, which says nothing about other seeds: ner." in words[1]


def test_the_page_is_fit_for_phones_and_readers_without_a_script(page):
    assert '<meta name="viewport" content="width=device-width, initial-scale=1">' in page
    assert "<script" not in page
    assert not re.search(r'(?:src|href)="https?:', page)
    widths = [float(points) / 0.75 for points in re.findall(r'<svg [^>]*?width="([\d.]+)pt"', page)]
    assert max(widths) <= 358  # 390 pixels less the margins
    assert all('aria-label="' in tag for tag in re.findall(r"<svg[^>]*>", page))


WIDTHS = [1920, 1280, 390]
MEASURE = """<meta charset="utf-8"><iframe style="height:900px;border:0"></iframe><script>
const frame = document.querySelector("iframe"), widths = [];
frame.onload = () => {{
  const page = frame.contentDocument, folds = [...page.querySelectorAll("details")];
  const open = folds.map(each => each.open);
  for (const width of {0}) {{
    frame.style.width = width + "px";
    folds.forEach((each, i) => {{ each.open = open[i] }});
    widths.push(page.documentElement.scrollWidth);
    folds.forEach(each => {{ each.open = true }});
    widths.push(page.documentElement.scrollWidth, page.documentElement.clientWidth);
  }}
  document.body.replaceChildren("widths: " + widths.join(" ") + ".");
}};
frame.srcdoc = {1};
</script>"""


def test_the_page_is_no_wider_than_the_screen(tmp_path, file):
    """That of the reference runs, as it opens and with every fold open, measured in a browser."""
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        pytest.skip("no chromium or google-chrome on the PATH: the page's width is not measured")
    page = (ROOT / "results/report.html").read_text()
    file(MEASURE.format(WIDTHS, json.dumps(page).replace("</", "<\\/")), "measure.html")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}/profile", "--dump-dom"]
    command = [browser, *flags, "--virtual-time-budget=20000", (tmp_path / "measure.html").as_uri()]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False).stdout
    measured = re.search(r"widths: ([\d ]+)\.", shown)
    assert measured, shown[-500:]
    found = [*map(int, measured[1].split())]
    for width, closed, opened, inner in zip(WIDTHS, found[::3], found[1::3], found[2::3], strict=True):
        assert max(closed, opened) <= width
        assert inner > 0.9 * width


def test_numbers_that_make_a_decision_come_later_than_the_answer(page):
    """p, the smallest gain that shows, and what is asked for are in folds; a cell without anything is no table."""
    shown = re.sub(r"<details class=\"fold\">.*?\n</details>", "", page, flags=re.DOTALL)
    assert "power" in page
    assert "power" not in shown
    assert "<caption><strong>Scale open</strong>" in shown
    assert "`" not in shown


def test_backticks_are_code():
    assert report._code("`make <x>` & more") == "<code>make &lt;x&gt;</code> &amp; more"


def test_every_row_names_its_runs_and_every_link_leads_somewhere(folder, page):
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'(?:href="|url\()#([^")]+)', page)) <= set(ids)
    files = set(re.findall(r'href="([^"#]+)"', page))
    assert [name for name in files if not (folder / name).is_file()] == []
    assert len([name for name in files if name.startswith("runs/")]) == 8
    assert f'<a href="runs/open/ner/{fake("none", 2).run}.json">seed 2: 86.00</a>' in page
    chapters = json.loads((folder / "report.json").read_text())
    for name in "answer gains scores cost".split():
        assert chapters[name]["tables"]
        for shown in chapters[name]["tables"]:
            for row in shown["rows"]:
                assert any(cell["runs"] for cell in row if isinstance(cell, dict)), (name, row)


# The parts.


@cases("""
    seeds  | mean | error | said
    [3, 3] | 1  | 0.1  | clear
    [3, 3] | 1  | 1    | not shown
    [3, 3] | -1 | 0.1  | worse
    [1, 3] | 1  | 0.1  | one seed
    [3, 3] | 1  | null | no interval
""")
def test_how_sure_a_gain_is(records, seeds, mean, error, said):
    gain = by_scale(records)["open"][0].main.test
    spread = error and Spread(error, 9)
    assert replace(gain, mean=mean, spread=spread, seeds=seeds).verdict == said


def test_runs_on_a_part_of_the_data_are_figure_1_and_no_main_comparison(records):
    parts = [part(share, where, 1, f1) for share, where, f1 in ((0.1, "none", 40.0), (0.1, "input", 60.0))]
    scales = by_scale([*records, *parts])
    (outcome,) = scales["open"]
    gains = [(each == outcome.main, each.test.mean) for each in outcome.comparisons]
    assert sorted(gains) == [(False, pytest.approx(20.0)), (True, pytest.approx(4.0))]
    pictures = charts.pictures(sweep_tables.of_scales(scales))
    chart = pictures["figures/figure1.open.ner"]
    frame = chart.data.set_index(["line", "x"])
    assert [*frame.index] == [("baseline", 10), ("baseline", 100), ("+ ELMo", 10), ("+ ELMo", 100)]
    assert frame["mean"].loc["+ ELMo", 10] == parts[1].metrics["dev"]["f1"]
    low, mean, high = frame.loc[("+ ELMo", 100), ["low", "mean", "high"]]
    assert low < mean < high  # three seeds
    assert chart.alt.endswith(f"; + ELMo 61.00 at 10; + ELMo {mean:.2f} at 100.")


def test_a_single_point_is_drawn_and_the_ticks_are_what_was_run():
    rows = [("baseline", 100.0, 60.0, 58.0, 62.0), *(("+ ELMo", x, 70.0, None, None) for x in (3.0, 100.0))]
    drawn = charts.inline(charts.curves("One", "training data, %", "f1", rows, points=True))
    shown = {*re.findall(r">([^<]+)</text>", drawn)}
    assert {"3", "100", "baseline", "+ ELMo"} <= shown
    assert not {"10", "30"} & shown
    marks = re.findall(r"<use [^>]*>", drawn)
    assert sum("#c4500a" in mark for mark in marks) > 3  # dot, ends of the bar, and the legend's


def test_without_runs_on_a_part_of_the_data_a_line_says_how_to_run_them(page):
    assert "No run on a part of the training data is recorded yet. In a checkout, make figure N=1" in page


def test_seeds_that_stopped_early_leave_the_band_to_the_others():
    frame = charts.over_epochs("Dev", "f1", {"baseline": [[1.0, 2.0, 3.0], [3.0]], "gaps": [[1.0, None, 3.0]]}).data
    rows = [*frame.itertuples(index=False, name=None)]
    assert rows[:3] == [("baseline", 1, 2, 1, 3), ("baseline", 2, 2, 2, 2), ("baseline", 3, 3, 3, 3)]
    assert rows[3:] == [("gaps", 1, 1, 1, 1), ("gaps", 3, 3, 3, 3)]


# Pictures.


@pytest.mark.parametrize(
    "others, none, small, large", [([0.5] * 2, (0.34, 0.66), 0.33, 0.67), ([0.2] * 6, (0.15, 0.28), 0.14, 0.29)]
)
def test_figure_2_marks_weights_far_from_an_even_share(others, none, small, large):
    """Of three layers and of seven, whose even share is 0.143."""
    for weight, mark in ((none[0], ""), (none[1], ""), (small, "▼"), (large, "▲")):
        drawn = charts.inline(charts.weights("Weights", {"ner input": [weight, *others], "short": [1.0]}))
        assert f">{weight:.2f}{mark}<" in drawn


def study(table: int, what: str, quantity: str, **layers: list[float]) -> StudyRecord:
    """A study with the scores of the layers of some sources, and a difference, which is no layer."""
    cells = [StudyCell(name, quantity, x, i, n=9) for name, scores in layers.items() for i, x in enumerate(scores)]
    extra = [
        StudyCell("first", quantity, 60.0, n=9),
        StudyCell("open", quantity, 1.0, 2, 1, n=9),
        StudyCell("open", "recall", 1.0, 0),
    ]
    return StudyRecord("open", f"table{table}", what, "", [*cells, *extra], next(iter(layers)), table)


def test_what_the_layers_of_two_sources_hold_is_one_picture():
    made = [
        study(5, "word senses", "F1", open=[40.0, 50.0], untrained=[30.0]),
        study(5, "word senses", "F1", minilm=[41.5], untrained=[30.0]),
        study(6, "parts of speech", "XPOS", open=[80.0]),
    ]
    (chart,) = report.what_layers_hold(made)
    assert chart.title == "What each layer holds, scale open: word senses (F1)"
    assert [row[:3] for row in chart.data.to_numpy().tolist()] == [
        ["open", 0, 40.0], ["open", 1, 50.0], ["untrained", 0, 30.0], ["minilm", 0, 41.5]
    ]  # fmt: skip
    assert "minilm" in charts.inline(chart)
    assert report.what_layers_hold(made[::2]) == []  # one source beside its control


def test_pictures_repeat_byte_for_byte_whatever_the_users_style_and_hold_text(records):
    chart = charts.gains("Gains", compared(by_scale(records)))
    drawn = charts.files({"gains": chart})
    with matplotlib.rc_context({"font.size": 20, "axes.grid": True, "svg.fonttype": "path"}):
        assert charts.files({"gains": chart}) == drawn
    assert [*drawn] == ["gains.svg", "gains.pdf"]
    root = ElementTree.fromstring(drawn["gains.svg"])
    assert "ner  +4.00" in [node.text for node in root.iter(f"{SVG}text")]
    assert root.findtext(f"{SVG}title", "").startswith("Gains. Points with 95 % intervals. open, ner +4.00 [")
    for content in drawn.values():
        assert not re.search(rb"date|creator|producer", content, re.IGNORECASE)


def test_the_legend_explains_dot_bar_and_diamond_and_a_mark_one_seed(records):
    shown = re.findall(r">([^<]+)</text>", charts.inline(charts.gains("Gains", compared(by_scale(records)))))
    assert {"gain (dot), 95 % interval (bar)", "the paper", "ner*  +2.00"} <= {*shown}
    assert "* one seed, or other biLM, vectors or data" in shown


def test_a_name_may_hold_any_text():
    odd = 'a <b> & "c"'
    root = ElementTree.fromstring(charts.inline(charts.curves(odd, "epoch", odd, [(odd, 1, 0.5, 0.4, 0.6)])))
    assert odd in [node.text for node in root.iter(f"{SVG}text")]
    assert root.attrib["aria-label"].endswith(f"{odd} 0.50 at 1.")
