"""A user's own results lie in results/own, which git ignores, beside the reference runs."""

import os
import shutil
import subprocess
from itertools import product

import pytest

from elmo_bench.commands.compare import Report
from elmo_bench.commands.run import Reproduce, Sweep
from elmo_bench.configuration import composing
from elmo_bench.records import store
from elmo_bench.records.record import label_of
from elmo_bench.reporting import score_tables
from elmo_bench.reporting.gains import by_scale
from elmo_bench.reporting.score_tables import beside
from elmo_bench.reporting.sweep_tables import content
from elmo_bench.sweeps import local
from elmo_bench.sweeps.request import SweepRequest
from elmo_bench.system import places
from elmo_bench.system.errors import UserError
from tests.fakes import cases, pages_of
from tests.records.test_records import fake, save

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("first_versions")]

NEEDS_GIT = pytest.mark.skipif(
    shutil.which("git") is None or not (places.ROOT / ".git").exists(), reason="this is no clone of git"
)


def is_ignored(path: str) -> bool:
    return subprocess.run(["git", "check-ignore", "-q", path], cwd=places.ROOT).returncode == 0


@NEEDS_GIT
@cases("""
    name
    runs/mini/ner/x.json
    runs/mini/ner/x.items.npz
    README.md
    report.html
    figures/gains.svg
    bench.json
    work/mini/ner/x/last.ckpt
    wandb/offline-run-1-x/run-x.wandb
""")
def test_git_ignores_what_a_user_makes_and_keeps_the_evidence(name):
    assert is_ignored(f"results/own/{name}")
    assert is_ignored(f"results/{name}") == name.startswith(("work/", "wandb/"))


def test_runs_go_to_the_folder_of_own_results():
    assert composing.compose(["task=ner"]).results_root == str(places.OWN)
    assert composing.compose(["task=ner", "results_root=results"]).results_root == os.path.abspath("results")


@pytest.fixture(scope="module")
def recorded(shared_bench):
    """The results of two seeds of both arms of the toy task."""
    for arm, seed in product(("baseline", "elmo"), (1, 2)):
        shared_bench.train(f"arm={arm}", f"seed={seed}")
    return shared_bench.results


@pytest.fixture
def evidence(recorded, bench, monkeypatch):
    """The same as the reference runs."""
    monkeypatch.setattr(places, "RECORDED", recorded)
    return recorded


def cells(out: str, start: str) -> list[str]:
    """The cells of the last row that begins with a text."""
    rows = [[cell.strip() for cell in line.strip("│").split("│")] for line in out.splitlines() if line.startswith("│")]
    return [row for row in rows if row[0] == start][-1]


def test_reproduce_runs_both_arms_once_and_prints_yours_beside_the_reference_runs(bench, evidence, monkeypatch, call):
    def in_forks(jobs, at_once, ended, *_gpus):  # tests of sweeps start processes anew, which takes long
        for i, job in enumerate(jobs):
            done = bench.command("train", *job.command[len(local.TRAIN) :])
            ended(i, UserError(done.stderr) if done.returncode else None)

    arguments = bench.overrides("jobs=2", "seeds=1")
    monkeypatch.setattr(local, "run_jobs", in_forks)
    status, out, err = call(Reproduce, *arguments)
    assert (status, err) == (0, "")
    assert len(list(bench.results.glob("runs/open/toy/*.json"))) == 2
    theirs, _ = score_tables.sections(store.read_all(evidence))  # the second has the gains
    for row, paper in zip(theirs.rows, ("50.0", "60.0 ± 0.5"), strict=True):
        assert cells(out, row[0])[3:] == ["1", row[4], "1-2", paper]
    assert cells(out, "gain of +ELMo")[-1] == "+10.00"
    assert out.count("your runs, the reference runs and the paper") == 1
    assert "gains of ELMo" not in out  # they are in the report, which is named
    assert f"{bench.results}/README.md" in out
    assert "baseline" in pages_of(bench.results)
    monkeypatch.setattr(local, "run_jobs", None)  # nothing is trained the second time
    status, again, _ = call(Reproduce, *arguments)
    assert status == 0
    assert "2 of 2 runs are recorded and not run again" in again
    table = [line for line in out.splitlines() if "│" in line]
    assert [line for line in again.splitlines() if "│" in line] == table


def test_recorded_reads_the_reference_runs_and_trains_none(bench, evidence, monkeypatch, call):
    monkeypatch.setattr("elmo_bench.running.launch._train", None)
    arguments = ["task=toy", "scale=open", "recorded=true", f"results_root={bench.results}"]
    status, out, err = call(Reproduce, *arguments)
    assert (status, err) == (0, "")
    assert out.count("1-2") == 2
    status, out, err = call(Reproduce, *arguments, "task.fit.epochs=2")
    assert (status, out) == (2, "")
    assert "recorded=true shows the arms of the scale without changes: leave out task.fit.epochs=2" in err
    status, out, err = call(Reproduce, *arguments, "scale=mini")
    assert (status, out) == (2, "")
    assert "there is no such reference run" in err
    assert not bench.results.exists()


def test_a_sweep_says_that_it_writes_a_table_of_the_reference_runs(bench, evidence, call):
    words = bench.overrides("+sweep=table1", "run=false")
    for folder, tracked in ((bench.results, False), (evidence, True)):
        status, out, err = call(Sweep, *words, f"results_root={folder}")
        assert (status, "which git tracks" in out) == (0, tracked), err


def test_a_sweep_on_a_file_of_ones_own_shows_no_run_on_the_scales_data(bench, call):
    bench.train("arm=baseline")
    lines = (bench.data / "toy" / "train.txt").read_text().splitlines(keepends=True)
    (bench.data / "toy" / "mine.txt").write_text("".join(lines[1:]))
    words = bench.overrides("+sweep=table1", "seeds=1", "run=false")
    for changes, shown in (([], "(1)"), (["task.data.train=mine.txt"], "missing")):
        status, out, err = call(Sweep, *words, *changes)
        assert status == 0, err
        assert cells(out, "toy, accuracy")[3].endswith(shown)


def test_arms_without_a_reference_run_have_empty_cells(tmp_path, monkeypatch):
    monkeypatch.setattr(places, "RECORDED", tmp_path)
    (section,) = beside([fake("none", 1, 80.0), fake("input", 1, 84.0)])
    assert section.rows[-1] == ("gain of +ELMo", "", "+4.00", "", "", "", "+2.07")
    assert section.rows[0] == ("baseline", "-", "80.00", "1", "", "", "90.15")
    assert section.remarks == ["There is no reference run with these settings."]
    save(tmp_path, *(fake("none", seed, 80.0 + seed) for seed in (1, 2, 3)))
    (section,) = beside([fake("none", 1, 80.0), fake("input", 1, 84.0)])
    assert section.rows[0] == ("baseline", "-", "80.00", "1", "82.00 ± 1.00", "1-3", "90.15")
    assert section.remarks == []


def test_data_of_ones_own_are_told_in_the_run_and_in_the_report(bench, capsys):
    lines = (bench.data / "toy" / "train.txt").read_text().splitlines(keepends=True)
    (bench.data / "toy" / "mine.txt").write_text("".join(lines[1:]))
    record = bench.train("arm=baseline", "task.data.train=mine.txt")
    assert "mine.txt: your own; dev and test: those of scale=open\n" in capsys.readouterr().out
    assert label_of(record) == "baseline (task.data.train=mine.txt)"
    assert content(SweepRequest("table1", ["toy"], "open", 1), by_scale([record])).note.endswith("toy: mine.txt.")
    assert label_of(bench.train("arm=baseline")) == "baseline"
    assert "your own" not in capsys.readouterr().out


def test_the_same_data_in_two_splits_are_told(bench, capsys):
    (bench.data / "toy" / "copy.txt").write_bytes((bench.data / "toy" / "train.txt").read_bytes())
    bench.train("arm=baseline", "task.data.test=copy.txt")
    said = "train and test are the same data: the scores on test are not those of unseen data\n"
    assert said in capsys.readouterr().out
    bench.train("arm=baseline")
    with pytest.raises(TypeError):  # the toy's reader needs both
        bench.train("arm=baseline", "task.data.dev=null", "task.data.test=null")
    assert "the same data" not in capsys.readouterr().out


def test_a_mistyped_folder_is_not_made(tmp_path, call):
    status, _, err = call(Report, f"results_root={tmp_path / 'resluts'}")
    assert (status, err.count("\n")) == (2, 1)
    assert "there is no such folder" in err
    assert not any(tmp_path.iterdir())


def test_the_report_is_of_own_runs_and_leaves_the_project_as_it_is(tmp_path, monkeypatch, call):
    monkeypatch.setattr(places, "OWN", tmp_path / "own")
    before = (places.ROOT / "README.md").read_bytes()
    status, out, err = call(Report)
    assert (status, err) == (0, "")
    assert "results_root=results reports the reference runs" in out
    save(tmp_path / "own", fake("none", 1, 80.0))
    monkeypatch.setattr(places, "RECORDED", tmp_path / "reference")
    save(tmp_path / "reference", *(fake("none", seed, 80.0 + seed) for seed in (1, 2, 3)))
    status, out, _ = call(Report)
    assert "80.00" in pages_of(tmp_path / "own")
    for name in ("README.md", "report.html"):
        text = (tmp_path / "own" / name).read_text().replace("\N{NO-BREAK SPACE}", " ")
        assert "ner, scale open: your runs, the reference runs and the paper" in text
        assert "82.00 ± 1.00" in text
    assert (places.ROOT / "README.md").read_bytes() == before
