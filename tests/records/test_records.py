"""What makes two runs the same, what a record is, and what the report makes of store."""

import hashlib
import os
import shutil
import subprocess
from itertools import product
from typing import Any

import pytest

from elmo_bench.commands.compare import Report
from elmo_bench.commands.run import Reproduce, Sweep
from elmo_bench.configuration import composing, pages
from elmo_bench.records import store, studies
from elmo_bench.records.record import Record, label, without_seed
from elmo_bench.records.studies import StudyCell, StudyRecord
from elmo_bench.reporting import score_tables
from elmo_bench.reporting.gains import by_scale, ranges
from elmo_bench.reporting.report import MARKS, embedded, refresh
from elmo_bench.reporting.score_tables import beside
from elmo_bench.reporting.section import show
from elmo_bench.reporting.sweep_tables import content
from elmo_bench.running import run
from elmo_bench.sweeps import local
from elmo_bench.sweeps.request import SweepRequest
from elmo_bench.system import machine, places
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage.hashing import fingerprint
from tests.damage import refusals
from tests.fakes import cases, pages_of, refuses

pytestmark = pytest.mark.slow

# Records.


def fake(where="input", seed=1, f1=90.0, scale="open", group=None, **more):
    """A record with what the report reads; `group` makes its settings those of another group."""
    elmo, task, version = where != "none", more.get("task", "ner"), more.get("version", 1)
    config = {
        "elmo": {"where": where, "layer_norm": False},
        "scale": {"note": f"note on {scale}"},
        "task": {
            "monitor": "f1", "paper": {"baseline": 90.15, "elmo": 92.22, "elmo_deviation": 0.1},
            "batch": {"batch_size": 8},
        },
        "trainer": {"devices": 1},
    }  # fmt: skip
    told = {"seed": seed, "scale": {"name": scale}, "task": {"name": task, "version": version}}
    settings = told | more.pop("settings", {"elmo": {"group": group or where}})
    history = more.get("history", {"epoch": [1, 2], "updates": [10, 20], "dev.f1": [f1, f1 + 1]})
    epochs = len(history["epoch"])
    return Record(**{
        "task": task, "scale": scale, "seed": seed, "arm": "elmo" if elmo else "baseline", "variant": {},
        "version": version, "run": fingerprint(settings), "group": fingerprint(without_seed(settings)),
        "metrics": {"dev": {"f1": f1 + 1}, "test": {"f1": f1}}, "epoch": 2, "epochs": epochs,
        "updates": 20, "selected_updates": 20,
        "layer_weights": {"input": [[0.2, 0.3, 0.5], *[[0.1, 0.3, 0.6]] * (epochs - 1)]} if elmo else {},
        "gamma": {"input": [1.0, *[1.25] * (epochs - 1)]} if elmo else {}, "seconds": 100.0, "device_seconds": 90.0,
        "tokens_per_second": 10.0, "parameters": 10,
        "bilm": {"name": "open" if elmo else None, "sha256": None, "tuned": False}, "data_sha256": "0",
        "generated_sha256": {}, "machine": {"cpu": "A CPU", "cores": 2, "threads": 2, "accelerator": "cpu"},
        "versions": {}, "commit": None, "dirty": False, "finished": "2026-01-01T00:00:00+00:00", "checkpoint": "",
        "history": history, "settings": settings,
        "config": config, "word_vectors": None, **more,
    })  # fmt: skip


def at(folder, record):
    """The place of a record."""
    return store.place(folder, record.scale, record.task, record.run)


def save(folder, *made):
    for record in made:
        store.write(at(folder, record), record)


def test_a_record_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    path = at(tmp_path, fake())
    store.write(path, fake())
    assert store.read(path) == fake()
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError("disk")))
    with pytest.raises(OSError, match="disk"):
        store.write(path, fake(f1=1.0))
    assert store.read(path) == fake()
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_record_ends_with_the_checksum_of_its_text(tmp_path):
    path = tmp_path / "x.json"
    store.write(path, fake())
    *body, last, end = path.read_text().splitlines()
    text = "\n".join([*body[:-1], body[-1].removesuffix(","), end, ""])
    assert last == f'"checksum": "{hashlib.sha256(text.encode()).hexdigest()}"'
    assert text == store.dumps(fake())
    path.write_text(text)
    with refuses(r"x\.json: not a record: it has no checksum; restore it"):
        store.read(path)


def test_no_flipped_bit_of_a_record_is_read(tmp_path):
    path = at(tmp_path, fake())
    store.write(path, fake())
    lengths = range(0, path.stat().st_size - 1, 97)
    assert len(refusals(path, lambda: store.read(path), 0, lengths)) == len(lengths)
    said = refusals(path, lambda: store.read(path), 300)
    assert len(said) > 280
    assert all("git checkout" in line for line in said)


def test_the_report_stops_at_a_damaged_record(results, refused):
    path = at(results, fake("input"))
    path.write_text(path.read_text().replace("89.0", "99.0"))
    said = refused(Report, f"results_root={results}")
    assert said.startswith(f"error: {path}: damaged or changed since it was written")
    assert not (results / "README.md").exists()


def test_runs_of_one_group_must_have_the_same_metrics_and_layers(tmp_path):
    scores = {"f1": 90.0, "recall": 80.0}
    others: list[dict[str, Any]] = [{"metrics": {"dev": scores, "test": scores}}, {"gamma": {}, "layer_weights": {}}]
    for other in others:
        save(tmp_path, fake(seed=1), fake(seed=2, **other))
        with refuses(f"{fake(seed=1).run} and {fake(seed=2).run} .* other metrics or layers"):
            refresh(tmp_path)


def test_the_commit_is_null_where_there_is_no_git(monkeypatch):
    machine.commit.cache_clear()

    def missing(*_, **__):
        raise FileNotFoundError("git")

    monkeypatch.setattr(subprocess, "run", missing)
    assert machine.commit() == (None, None)
    machine.commit.cache_clear()


def test_the_commit_is_that_of_the_runs_start(bench, monkeypatch):
    head = ["before"]
    machine.commit.cache_clear()
    monkeypatch.setattr(machine, "_printed", lambda *_: head[0])
    monkeypatch.setattr(run, "run_once", lambda *given, of=run.run_once: [head.insert(0, "after"), of(*given)][1])
    assert bench.train("arm=baseline").commit == "before"
    machine.commit.cache_clear()


# The report.


@pytest.fixture
def results(tmp_path):
    save(tmp_path, *(fake("none", seed, 84.0 + seed) for seed in (1, 2, 3)))
    save(tmp_path, *(fake("input", seed, 88.0 + seed) for seed in (1, 2, 3)))
    save(tmp_path, fake("input", 1, 80.0, group="last", variant={"elmo.layers": "last"}))
    save(tmp_path, fake("none", 1, 70.0, scale="mini"))
    return tmp_path


def row(text, start):
    (line,) = [line for line in text.splitlines() if line.startswith(f"| {start} |")]
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_the_report_has_ours_beside_the_papers_and_is_a_function_of_the_records(results):
    refresh(results)
    first = [(results / name).read_bytes() for name in ("README.md", "report.html")]
    assert b"+ELMo (input; layers=last)" in first[1]
    refresh(results)
    assert [(results / name).read_bytes() for name in ("README.md", "report.html")] == first
    text = pages_of(results)
    real, mini = text.split("## ner, scale mini")
    assert row(real, "baseline") == ["baseline", "-", "1-3", "87.00 ± 1.00", "86.00 ± 1.00", "90.15", "", "90 s"]
    assert row(real, "+ELMo (input)") == [
        "+ELMo (input)", "open", "1-3", "91.00 ± 1.00", "90.00 ± 1.00", "92.22 ± 0.1",
        "input: 0.10 0.30 0.60; 1.25", "90 s",
    ]  # fmt: skip
    assert row(real, "+ELMo (input; layers=last)")[2:6] == ["1", "81.00", "80.00", ""]
    assert row(real, "+ELMo (input), biLM open")[1:6] == [
        "baseline", "3", "+4.00 [+1.73, +6.27]", "+4.00 [+1.73, +6.27]", "0.008",
    ]  # fmt: skip
    assert "The paper's gain: +2.07." in real
    assert pages.written("scale", "open", "note") in real  # of today's configuration file, not of the record's
    assert pages.written("scale", "mini", "note") in mini
    assert "A CPU (2 cores, 2 threads, cpu)" in mini


def test_every_bilm_has_a_row_of_its_own(tmp_path):
    other = {"name": "original", "sha256": None, "tuned": False}
    save(tmp_path, fake("none", 1, 80.0), fake("input", 1, 84.0), fake("input", 1, 90.0, group="b", bilm=other))
    (real,) = score_tables.overview(by_scale(store.read_all(tmp_path)))
    assert [row[0] for row in real.rows] == ["ner (biLM open)", "ner (biLM original)"]
    assert [row[3:6] for row in real.rows] == [
        ("80.00 (1)", "84.00 (1)", "+4.00"),
        ("80.00 (1)", "90.00 (1)", "+10.00"),
    ]


def test_tables_replace_what_stands_between_the_marks(results):
    first, last = MARKS
    found = score_tables.overview(by_scale(store.read_all(results)))
    page = embedded(f"before\n{first}\n\nold\n\n{last}\nafter\n", found)
    assert page.startswith(f"before\n{first}\n\n{pages.written('scale', 'open', 'note')}\n\n| task |")
    lacking = "Not recorded yet: elmo of ner (`make reproduce TASK=... SCALE=mini`)."
    assert page.endswith(f"|\n\n{lacking}\n\n{last}\nafter\n")
    assert "old" not in page
    assert embedded(page, found) == page
    with refuses("lacks the markers"):
        embedded(f"{first} alone", found)


def test_further_metrics_and_memory_stand_below_the_table(tmp_path):
    for seed, recall, peak in ((1, 50.0, 900), (2, 52.0, 1200)):
        scores = {"f1": 60.0, "recall": recall}
        save(tmp_path, fake("none", seed, metrics={"dev": scores, "test": scores}, peak_memory_mib=peak))
    save(tmp_path, fake("input"))
    refresh(tmp_path)
    lines = pages_of(tmp_path).splitlines()
    assert "- baseline: test recall 51.00 ± 1.41; peak memory 1,200 MiB." in lines
    assert not any(line.startswith("- +ELMo (input), biLM open: ") for line in lines)


def test_elmo_is_compared_with_every_baseline_of_the_same_settings(tmp_path):
    phrases = {"task.reader.phrases": "sentences"}
    runs = [("none", {}, 80.0), ("none", {"vectors": "random"}, 81.0), ("input", {}, 84.0),
            ("none", phrases, 70.0), ("input", phrases, 72.0), ("input", {"elmo.layers": "last"}, 60.0)]  # fmt: skip
    for i, (where, changes, f1) in enumerate(runs):
        save(tmp_path, fake(where, 1, f1, group=str(i), variant=changes))
    refresh(tmp_path)
    (table,) = [section for section in score_tables.sections(store.read_all(tmp_path)) if "gains" in section.title]
    assert [(row[1], row[4]) for row in table.rows] == [
        ("baseline", "+4.00"),
        ("baseline (task.reader.phrases=sentences)", "+2.00"),
    ]


def test_pages_and_the_terminal_show_what_records_say_as_text(tmp_path, capsys):
    save(tmp_path, fake("input", variant={"elmo.layers": "<b>|x[/red]"}))
    show(refresh(tmp_path))
    assert "<b>" not in (tmp_path / "report.html").read_text()
    assert "<b>" not in pages_of(tmp_path)
    assert "&lt;b>\\|x[/red]" in pages_of(tmp_path)
    assert "<b>|x[/red]" in capsys.readouterr().out


def test_studies_have_a_page_of_their_own(results):
    study = StudyRecord("mini", "mine", "A <study>", "of it", [StudyCell("bank", "form", 50.0, 0)])
    studies.write(study, results)
    refresh(results)
    text = (results / "studies.md").read_text()
    assert "## A &lt;study>" in text
    assert row(text, "bank, layer 0") == ["bank, layer 0", "50.00"]
    assert "A &lt;study&gt;" in (results / "report.html").read_text()
    study.place(results).unlink()
    (results / "tables" / "mine.md").write_text("a user's own")
    refresh(results)
    assert not (results / "studies.md").exists()
    assert (results / "tables" / "mine.md").exists()


def test_seeds_are_shown_as_ranges():
    assert ranges([3, 1, 2, 7]) == "1-3, 7"


# A user's own results lie in results/own, which git ignores, beside the reference runs.


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


def own_file(bench) -> str:
    """The override for training data that lack a line."""
    lines = (bench.data / "toy" / "train.txt").read_text().splitlines(keepends=True)
    (bench.data / "toy" / "mine.txt").write_text("".join(lines[1:]))
    return "task.data.train=mine.txt"


def test_a_sweep_on_a_file_of_ones_own_shows_no_run_on_the_scales_data(bench, call):
    bench.train("arm=baseline")
    words = bench.overrides("+sweep=table1", "seeds=1", "run=false")
    for changes, shown in (([], "(1)"), ([own_file(bench)], "missing")):
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
    record = bench.train("arm=baseline", own_file(bench))
    assert "mine.txt: your own; dev and test: the data of scale=open\n" in capsys.readouterr().out
    assert label(record.where, record.variant | record.own_data) == "baseline (task.data.train=mine.txt)"
    assert content(SweepRequest("table1", ["toy"], "open", 1), by_scale([record])).note.endswith("toy: mine.txt.")
    plain = bench.train("arm=baseline")
    assert label(plain.where, plain.variant | plain.own_data) == "baseline"
    assert "your own" not in capsys.readouterr().out


def test_the_same_data_in_two_splits_are_told(bench, capsys):
    (bench.data / "toy" / "copy.txt").write_bytes((bench.data / "toy" / "train.txt").read_bytes())
    bench.train("arm=baseline", "task.data.test=copy.txt")
    said = "train and test are the same data: the scores on test are not on unseen data\n"
    assert said in capsys.readouterr().out
    bench.train("arm=baseline")
    with pytest.raises(TypeError):  # the toy's reader needs both
        bench.train("arm=baseline", "task.data.dev=null", "task.data.test=null")
    assert "the same data" not in capsys.readouterr().out


def test_a_mistyped_folder_is_not_made(tmp_path, refused):
    assert "there is no such folder" in refused(Report, f"results_root={tmp_path / 'resluts'}")
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
