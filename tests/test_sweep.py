"""A sweep as a user types it: what runs, what does not run again, what fails, and how it goes on after its end."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time

import pytest

from elmo_bench.clusters import local
from elmo_bench.experiment import asked, together
from elmo_bench.experiment.asked import Asked
from elmo_bench.experiment.plan import plan
from elmo_bench.system.errors import UserError
from tests.conftest import ROOT, clean_environment
from tests.drill.processes import TIMES

SHORT = "task.fit.epochs=1"


@pytest.fixture
def toy(bench):
    """The toy task and a sweep of three settings of it."""
    page = '# @package _global_\nhydra: {mode: MULTIRUN, sweeper: {params: {elmo.where: "none,input,output", seed: "1,2"}}}'
    (bench.conf / "sweep" / "places.yaml").write_text(page)
    return bench


def sweep(toy, *changes: str, name: str = "places") -> subprocess.CompletedProcess[str]:
    return toy.command("sweep", f"+sweep={name}", *toy.overrides(*changes))


def records(toy) -> dict[str, dict]:
    """The records by their names, without what differs from time to time."""
    found = {path.stem: json.loads(path.read_text()) for path in toy.results.glob("runs/*/*/*.json")}
    return {run: {key: value for key, value in record.items() if key not in TIMES} for run, record in found.items()}


def test_what_is_recorded_is_not_run_again_and_what_is_missing_is(toy):
    first = sweep(toy, SHORT, "seeds=1")
    assert first.returncode == 0, first.stderr
    assert len(records(toy)) == 3
    assert "1 of 3 runs are recorded\n" in first.stdout
    assert first.stdout.splitlines()[-1] == "places: 3 of 3 runs are recorded"
    more = sweep(toy, SHORT)
    assert "3 of 6 runs are recorded and not run again (force=true does)\n" in more.stdout
    assert more.stdout.count(": training\n") == 3
    again = sweep(toy, SHORT)
    assert again.stdout.count(": training\n") == 0
    assert again.stdout.splitlines()[-1] == "places: 6 of 6 runs are recorded"


def test_a_failed_run_does_not_stop_the_others_and_the_last_line_tells_how_to_go_on(toy):
    page = toy.conf / "sweep" / "places.yaml"
    page.write_text(page.read_text().replace("elmo.where", "elmo.layers").replace("none,input,output", "7,last,8"))
    done = sweep(toy, SHORT, "jobs=2")
    assert done.returncode == 2
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == 2, done.stderr
    assert all("the biLM's layers are 0 (tokens) to 2" in error and ", seed " in error for error in errors)
    *_, last = done.stdout.splitlines()
    assert last.startswith(
        "places: 2 of 6 runs are recorded, 4 failed; to go on: elmo-bench sweep +sweep=places task=toy"
    )
    assert f"data_root={toy.data}" in last
    table = (toy.results / "tables" / f"places.open.bilm=custom.bilm.options={'_'}").parent
    (written,) = table.glob("places.open.*.md")
    assert "| missing |" in written.read_text()


def test_an_error_that_all_runs_share_is_said_once(toy):
    for change in ("data_root=/no/such", "trainer.precision=12"):
        done = sweep(toy, SHORT, change)
        assert (done.returncode, done.stderr.count("error: ")) == (2, 1), done.stderr
        assert done.stdout.splitlines()[-1].startswith("places: 0 of 6 runs are recorded, 6 failed; to go on: ")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_in_one_line_that_says_how_to_go_on(toy, number):
    process = begun(toy, "task.fit.epochs=500")
    for line in process.stdout:
        if line.endswith(": training\n"):
            break
    process.send_signal(number)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 128 + number
    assert said.splitlines()[-1].endswith("; the same command again runs what is missing")
    assert "Traceback" not in said


def begun(toy, *changes: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.command", str(toy.conf), "sweep", "+sweep=places", *toy.overrides(*changes)]
    return subprocess.Popen(
        command, cwd=ROOT, env=clean_environment(), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def test_killed_at_any_moment_and_typed_again_it_gives_the_same_records(toy):
    length = ("task.fit.epochs=3", "seeds=1")
    started = time.monotonic()
    assert sweep(toy, *length).returncode == 0
    took, undisturbed = time.monotonic() - started, records(toy)
    (toy.results / "runs").rename(toy.folder / "undisturbed")
    (toy.results / "work").rename(toy.folder / "work")
    draw = random.Random(4)
    for _ in range(3):
        process = begun(toy, *length)
        time.sleep(draw.uniform(0.3, 0.9) * took)
        process.kill()
        process.communicate(timeout=30)
    done = sweep(toy, *length)
    assert done.returncode == 0, done.stderr
    assert records(toy) == undisturbed
    assert not list(toy.results.rglob("*.partial"))


# What is asked for.


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "missing argument +sweep=...; choose from figure1"),
        (["+sweep=table9"], "sweep=table9: there is no such sweep; did you mean table"),
        (["+sweep=table2", "task=snil"], "task=snil: there is no such task; did you mean snli?"),
        (["+sweep=table2", "seeds=0"], "seeds=0: how many seeds, a whole number from 1 to 1000"),
        (["+sweep=table2", "jobs=two"], "jobs=two: how many runs at a time"),
        (["+sweep=table2", "run=maybe"], "run=maybe: choose from true, false"),
        (["+sweep=table2", "seed=3"], "give seeds=N"),
        (["+sweep=table2", "-m"], "-m: arguments are written key=value"),
        (["+sweep=ner_loss", "task=srl"], "the sweep ner_loss is for task=ner, not for task=srl"),
        (["+sweep=variance", "scale=open"], "the sweep variance is for scale=mini, not for scale=open"),
        (["+sweep=table1", "task=all", "scale=huge"], "no task offers scale=huge"),
    ],
)
def test_what_cannot_be_asked_for_is_one_line(arguments, message):
    with pytest.raises(UserError) as caught:
        asked.parse(arguments)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_all_is_every_task_that_the_sweep_is_for_in_the_papers_order():
    assert asked.parse(["+sweep=table2", "task=all"]).tasks == ["squad", "snli", "srl", "coref", "ner", "sst5"]
    assert asked.parse(["sweep=snli_l2", "task=all"]).tasks == asked.parse(["+sweep=snli_l2"]).tasks == ["snli"]
    assert asked.parse(["+sweep=table2"]).tasks == ["ner"]


def test_the_command_that_goes_on_asks_for_the_same():
    told = ["+sweep=table2", "task=srl", "scale=open", "seeds=2", "jobs=1", "elmo.dropout=0.2", "data_root=/my data"]
    given = asked.parse([*told, "force=true"])
    assert given.command() == "elmo-bench sweep " + " ".join([*told[:-1], "'data_root=/my data'"])
    assert given.changes == ["elmo.dropout=0.2"]
    several = asked.parse(["+sweep=table2", "task=all"])
    assert "task=all" in several.command()
    assert "task=srl" in several.command("srl")


# What runs, and in which order.


@pytest.mark.usefixtures("stand_in")
def test_one_run_with_elmo_starts_then_those_without_and_the_longest_first(toy):
    for where, seconds in (("none", 5), ("output", 50), ("input", 7)):
        record = toy.train(SHORT, f"elmo.where={where}", "seed=9")
        path = toy.results / "runs" / "open" / "toy" / f"{record['run']}.json"
        text = path.read_text().replace(f'"seconds": {record["seconds"]}', f'"seconds": {seconds}', 1)
        path.write_text("\n".join(line for line in text.splitlines() if "checksum" not in line).rstrip("},\n") + "}}\n")
    ordered = together._in_order(plan(Asked("places", ["toy"], "open", overrides=toy.shared(SHORT))))
    assert [(point.setting[0].rpartition("=")[2], point.seed) for point in ordered] == [
        ("input", 1), ("none", 1), ("none", 2), ("output", 1), ("output", 2), ("input", 2)
    ]  # fmt: skip


def test_a_run_that_cannot_be_is_no_failure(toy, monkeypatch):
    tables = toy.conf / "tables.yaml"
    tables.write_text(tables.read_text() + "\nplaces: {beyond: fewer than a batch}\n")

    def run_jobs(jobs, at_once, ended):
        for i in range(len(jobs)):
            ended(i, UserError("fraction=0.1: fewer than a batch of 8" if i == 0 else "no disk"))

    monkeypatch.setattr(together, "run_jobs", run_jobs)
    outcome = together.carry_out(plan(Asked("places", ["toy"], "open", 1, overrides=toy.shared(SHORT))))
    assert (len(outcome.beyond), len(outcome.errors)) == (1, 2)
    assert outcome.line().startswith("places: 0 of 2 runs are recorded, 2 failed; to go on: ")


def test_nothing_runs_if_only_the_table_is_asked_for(toy, monkeypatch):
    monkeypatch.setattr(local, "run_jobs", None)
    outcome = together.carry_out(plan(Asked("places", ["toy"], "open", 1, run=False, overrides=toy.shared(SHORT))))
    assert outcome.line().startswith("places: 0 of 3 runs are recorded, 3 missing; to go on: ")
    outcome.raise_first()


def test_each_run_is_a_process_of_one_run(toy, monkeypatch):
    commands = []
    monkeypatch.setattr(together, "run_jobs", lambda jobs, at_once, ended: commands.extend(jobs) or [])
    together.carry_out(plan(Asked("places", ["toy"], "open", 1, overrides=toy.shared(SHORT))))
    assert [job.title for job in commands] == [
        f"toy/open {name}, seed 1" for name in ("+ELMo (input; task.fit.epochs=1)", "baseline (task.fit.epochs=1)",
                                                "+ELMo (output; task.fit.epochs=1)")
    ]  # fmt: skip
    assert all({"hydra.mode=RUN", "+sweep=places", "seed=1"} <= {*job.command} for job in commands)
