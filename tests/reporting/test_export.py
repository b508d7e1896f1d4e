"""Records and tables for pandas and for a paper."""

import shutil

import pandas
import pytest

import elmo_bench
from elmo_bench.commands.compare import Export
from elmo_bench.commands.run import Sweep
from elmo_bench.records.frame import frame_of
from elmo_bench.reporting.report import latex
from elmo_bench.reporting.section import Section
from elmo_bench.system import places
from tests.records.test_records import fake, save

pytestmark = pytest.mark.slow


def figures(*names: str) -> set[str]:
    return {f"{name}.{kind}" for name in names for kind in ("svg", "pdf")}


def test_runs_are_one_tidy_table_every_table_is_latex_and_markdown_and_figures_are_drawn(tmp_path, call):
    """The reference runs of two tasks, and all studies."""
    root, paper = tmp_path / "results", tmp_path / "paper"
    for part in ("runs/open/coref", "runs/open/snli", "analysis"):
        shutil.copytree(places.RECORDED / part, root / part)
    status, out, err = call(Export, f"output={paper}", f"results_root={root}")
    assert status == 0, err
    assert out.endswith(f" files in {paper}: runs.csv, runs.parquet, figures/, tables/\n")
    csv, parquet = pandas.read_csv(paper / "runs.csv"), pandas.read_parquet(paper / "runs.parquet")
    table = elmo_bench.results(root)
    assert len(csv) == len(parquet) == len(table) > 100
    assert list(csv) == list(parquet) == list(table)
    assert parquet["value"].equals(table["value"])
    tables = sorted((paper / "tables").iterdir())
    assert {path.suffix for path in tables} == {".md", ".tex"}
    assert len(tables) > 20
    assert all("\\toprule" in path.read_text() for path in tables if path.suffix == ".tex")
    drawn = [*(paper / "figures").iterdir()]
    assert {path.name for path in drawn} == figures("figure1.open.snli", "figure2.open.coref", "figure2.open.snli")
    assert all(path.stat().st_size > 1000 for path in drawn)


def test_export_draws_the_figures_of_the_sweep(tmp_path, call):
    """SNLI has ELMo at both places in any run, SRL only in those of the sweep; NER has no run."""
    root, paper = tmp_path / "results", tmp_path / "paper"
    both = fake("both", scale="mini", task="srl", group="both", variant={"elmo.where": "both"})
    save(root, both, fake("both", scale="mini", task="snli"))
    status, out, err = call(Export, f"output={paper}", f"results_root={root}")
    assert status == 0, err
    status, out, err = call(Sweep, "+sweep=figure2", "task=ner", "run=false", f"results_root={root}")
    assert status == 0, err
    written = {line.partition(f"written: {root}/figures/")[2] for line in out.splitlines()} - {""}
    assert written == figures("figure2.mini.snli", "figure2.mini.srl")
    exported = {path.name: path.read_bytes() for path in (paper / "figures").iterdir()}
    assert exported == {name: (root / "figures" / name).read_bytes() for name in written}


def test_runs_that_differ_have_other_variants_and_those_on_a_part_are_left_out_once(tmp_path, call):
    part, root = fake("none", 2), tmp_path / "results"
    part.config["trainer"]["limit_batches"] = 1
    named = {"callbacks": "early_stopping", "callbacks.early_stopping.patience": 10}
    typed = [{"callbacks": {"mine": {"_target_": f"my.{name}", "size": 3}}} for name in ("One", "Other")]
    save(root, part, *(fake("none", group=str(each), variant=each) for each in (named, *typed)))
    status, out, err = call(Export, f"output={tmp_path}/paper", f"results_root={root}")
    assert (status, err.count("left out: 1 run with trainer.limit_batches")) == (0, 1), err
    assert out.endswith("/paper: runs.csv, runs.parquet, tables/\n")  # no figure
    assert {*pandas.read_csv(tmp_path / "paper" / "runs.csv")["variant"]} == {
        "callbacks=early_stopping callbacks.early_stopping.patience=10",
        "callbacks.mine=One callbacks.mine.size=3",
        "callbacks.mine=Other callbacks.mine.size=3",
    }


def test_runs_on_other_data_are_told_apart():
    here, mine = fake("none"), fake("none", group="mine")
    mine.config["task"] |= {"name": "ner", "data": {"train": "<elsewhere>/mine.txt"}}
    mine.config["scale"] |= {"name": "open"}
    table = frame_of([here, mine])
    assert {*zip(table["data"], table["group"], strict=True)} == {("", here.group), ("mine.txt", mine.group)}


def test_signs_of_latex_are_escaped_and_columns_may_share_a_name():
    section = Section(
        "100 % of a_b", "A note\nin two lines", ("task", "+ELMo", "+ELMo"), [("SNLI & co", "88.7 ± 0.1", "−1")]
    )
    text = latex(section)
    assert text.startswith("% A note\n% in two lines\n")
    for part in (
        r"\caption{100 \% of a\_b}",
        r"SNLI \& co & 88.7 $\pm$ 0.1 & $-$1 \\",
        "{lrr}",
        "task & +ELMo & +ELMo",
    ):
        assert part in text


def test_no_records_are_one_line(tmp_path, refused):
    assert "no run is recorded here" in refused(Export, f"output={tmp_path / 'out'}", f"results_root={tmp_path}")
    assert not (tmp_path / "out").exists()
