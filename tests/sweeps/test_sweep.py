"""A sweep as a user types it: what runs, what does not run again, what fails, and how it goes on after its end."""

import json
import os
import random
import signal
import sys
import time
from dataclasses import replace

import pytest

from elmo_bench.commands.run import Sweep
from elmo_bench.commands.train import Train
from elmo_bench.configuration import composing, pages
from elmo_bench.records import store
from elmo_bench.records.settings import Identity
from elmo_bench.records.times import expected
from elmo_bench.sweeps import local
from elmo_bench.sweeps.plan import Plan, plan
from elmo_bench.sweeps.request import SweepRequest, points
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage.hashing import fingerprint
from tests import pretend
from tests.command import Fork
from tests.conftest import ROOT, clean_environment
from tests.fakes import cases, refuses, table
from tests.records.test_records import fake
from tests.running.test_train import TIMES

pytestmark = pytest.mark.slow

SHORT = "task.fit.epochs=1"
PAGE = """# @package _global_
hydra: {{mode: MULTIRUN, sweeper: {{params: {{{key}: "{values}", seed: "1,2"}}}}}}
"""
PAGES = {  # the runs of `arms` start sooner than those of `places`
    "places": PAGE.format(key="elmo.where", values="none,input") + "table: {impossible: fewer than a batch}\n",
    "arms": PAGE.format(key="arm", values="baseline,elmo"),
    "layers": PAGE.format(key="elmo.layers", values="7,last"),
    "fractions": PAGE.format(key="fraction", values="0.1,1.0") + "table: {impossible: fewer than a batch}\n",
}


def wanted(argv):
    """What `sweep` is asked for."""
    command = Sweep.parse(argv)
    return command.request(str(command.sweep), command.on)


@pytest.fixture
def toy(bench):
    """The toy task and sweeps of two settings of it."""
    written = {bench.conf / "sweep" / f"{name}.yaml": page for name, page in PAGES.items()}
    for path, content in written.items():
        path.write_text(content)
        os.utime(path, (0, 0))  # unchanged from test to test, so that what Hydra composed serves them all
    return bench


@pytest.fixture
def sweep(toy, call, monkeypatch):
    """Runs a sweep with one seed and a stand-in for its runs; returns exit status, stdout and stderr."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(local, "TRAIN", [sys.executable, "-m", "tests.pretend", str(toy.conf), "train"])
    return lambda *changes, name="arms": call(Sweep, *typed(toy, *changes, name=name))


def typed(toy, *changes: str, name: str = "arms") -> list[str]:
    """The arguments of a sweep with one seed."""
    return [f"+sweep={name}", "seeds=1", *toy.overrides(*changes)]


def records(toy) -> dict[str, dict]:
    """The records by their names, without what differs from time to time."""
    found = {path.stem: json.loads(path.read_text()) for path in toy.results.glob("runs/*/*/*.json")}
    but = (*TIMES, "history", "checksum")
    return {run: {key: value for key, value in record.items() if key not in but} for run, record in found.items()}


def planned(toy, *changes: str, seeds: int = 1, run: bool = True) -> Plan:
    return plan(SweepRequest("places", ["toy"], "open", seeds, run=run, overrides=toy.shared(SHORT, *changes)))


def test_points_that_differ_in_their_seed_are_composed_once(toy, monkeypatch):
    """The ids are those of every point composed by itself, also where a file has the seed in another value."""
    points = planned(toy, seeds=4).runs
    by_itself = [Identity(composing.run_config(point.overrides)).run for point in points]
    composed, compose = [], composing.compose
    monkeypatch.setattr("elmo_bench.sweeps.plan.compose", lambda *given: composed.append(given) or compose(*given))
    assert [each.run for each in planned(toy, seeds=4).runs] == by_itself
    assert len(composed) == len({point.setting for point in points}) < len(points)
    seeded = planned(toy, "task.fit.least_updates=${seed}", seeds=3).runs
    assert [each.config.task.fit.least_updates for each in seeded] == [1, 2, 3, 1, 2, 3]
    assert len({each.run for each in seeded}) == 6


def test_hydras_multirun_has_the_runs_of_a_sweep(tmp_path, monkeypatch):
    """Also where a file says more of the baseline than that it has no ELMo. The data are missing: nothing is run."""
    composed = []

    def recorded(cfg):
        composed.append(composing.validated(cfg))
        return fake()

    given = [f"data_root={tmp_path}", f"results_root={tmp_path}", f"hydra.sweep.dir={tmp_path}/hydra"]
    monkeypatch.setattr("elmo_bench.running.launch.train", recorded)
    monkeypatch.setattr("sys.argv", ["train", "+sweep=table1", "task=sst5", "scale=open", "seed=1", *given])
    Train.parse(sys.argv[1:]).run()
    listed = plan(SweepRequest("table1", ["sst5"], "open", 1, run=False, overrides=given[:2])).errors
    by_itself = [composing.run_config(point.overrides) for point in listed]
    assert [each.model_copy(update={"typed": []}) for each in composed] == [
        each.model_copy(update={"typed": []}) for each in by_itself
    ]
    assert [run.arm for run in composed] == ["baseline", "elmo"]


def test_an_override_replaces_what_the_sweep_varies_or_applies_to_all_runs(toy):
    def settings(*changes):
        return [each.config.elmo.where for each in planned(toy, *changes).runs]

    assert settings("elmo.dropout=0.2") == settings() == ["none", "input"]
    assert settings("elmo.where=input") == ["input"]
    assert settings("elmo.where=output,none,both", "elmo.dropout=0.2") == ["output", "none", "both"]


def test_a_failed_run_does_not_stop_the_others_and_the_last_line_tells_how_to_go_on(toy, sweep):
    status, out, err = sweep(SHORT, "jobs=1", name="layers")
    assert status == 2
    (error,) = [line for line in err.splitlines() if line.startswith("error: ")]
    assert "the biLM's layers are 0 (tokens) to 2" in error
    assert error.endswith("(toy/open +ELMo (input; layers=7, task.fit.epochs=1), seed 1)")
    counts, _, again = out.splitlines()[-1].partition("; to continue: ")
    assert counts == "layers: 1 of 2 runs are recorded, 1 failed"
    assert again.startswith("elmo-bench sweep +sweep=layers task=toy scale=open seeds=1 jobs=1 ")
    assert f"data_root={toy.data}" in again
    (written,) = toy.results.glob("tables/layers.open*.md")
    assert "| missing |" in written.read_text()


def test_runs_on_a_gpu_that_was_named_are_not_dealt_others(toy, monkeypatch):
    dealt = []
    monkeypatch.setattr(local.machine, "gpus", lambda: ["0", "1"])
    monkeypatch.setattr(local, "run_jobs", lambda jobs, at_once, ended, gpus, each: dealt.append(gpus))
    for devices in ("1", "[1]"):
        made = planned(toy, "trainer.accelerator=auto", f"trainer.devices={devices}")
        local.train(made, made.new)
    assert dealt == [["0", "1"], []]


def ending(*errors: UserError):
    """In the place of `run_jobs`: jobs that end with these errors."""
    return lambda jobs, at_once, ended, *_gpus: [ended(i, error) for i, error in enumerate(errors)]


def test_an_error_that_all_runs_share_is_said_once(toy, sweep, monkeypatch):
    """Whether it is known before anything is begun, or said by every run."""
    status, out, err = sweep(SHORT, "data_root=/no/such")
    assert (status, err.count("error: "), "to continue" in out) == (2, 1, False), err
    monkeypatch.setattr(local, "run_jobs", ending(UserError("no disk"), UserError("no disk")))
    status, out, err = sweep(SHORT)
    assert (status, err.count("error: "), err.count("no disk")) == (2, 1, 1), err
    assert "Traceback" not in out + err
    assert "arms: 0 of 2 runs are recorded, 2 failed; to continue: " in out
    assert not (toy.results / "runs").exists()


def test_a_signal_ends_it_in_one_line_that_says_how_to_go_on(toy):
    process = Fork(lambda: pretend.run(toy.conf, "sweep", typed(toy, "task.fit.epochs=5000")), clean_environment())
    while b": training\n" not in os.pread(process.out.fileno(), 1 << 16, 0):
        assert process.poll() is None
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGTERM)
    status, _, said = process.finish()
    assert status == 128 + signal.SIGTERM
    assert said.splitlines()[-1].endswith("; the same command runs the missing runs")
    assert "Traceback" not in said


def test_what_is_missing_is_run_and_after_kills_at_any_moment_the_records_are_the_same(toy, sweep):
    length = "task.fit.epochs=30"
    started = time.monotonic()
    status, out, err = sweep(length)
    took, undisturbed = time.monotonic() - started, records(toy)
    assert (status, len(undisturbed)) == (0, 2), err
    assert "1 of 2 runs are recorded; the others take about " in out
    assert out.splitlines()[-1] == "arms: 2 of 2 runs are recorded", err
    (toy.results / "runs" / "open" / "toy" / f"{min(undisturbed)}.json").unlink()
    _, more, _ = sweep(length)
    assert "1 of 2 runs are recorded and not run again (force=true does)\n" in more
    _, again, _ = sweep(length)
    assert again.splitlines()[-1] == "arms: 2 of 2 runs are recorded"
    assert [said.count(": training\n") for said in (out, more, again)] == [2, 1, 0]

    for part in ("runs", "work"):
        (toy.results / part).rename(toy.folder / part)
    draw = random.Random(4)
    for _ in range(2):
        process = Fork(lambda: pretend.run(toy.conf, "sweep", typed(toy, length)), clean_environment())
        time.sleep(draw.uniform(0.3, 0.9) * took)
        process.kill()
        process.finish()
    status, _, err = sweep(length)
    assert status == 0, err
    assert records(toy) == undisturbed
    assert not list(toy.results.rglob("*.partial"))


# What is asked for.


@cases("""
    arguments | message
    ["+sweep=table9"] | sweep=table9: there is no such sweep; did you mean table
    ["+sweep=table2", "task=snil"] | task=snil: there is no such task; did you mean snli?
    ["+sweep=table2", "seeds=0"] | seeds=0: should be greater than or equal to 1
    ["+sweep=table2", "seed=3"] | give seeds=N
    ["+sweep=table2", "trainer.fast_dev_run=true"] | such a run leaves no record for a table
    ["+sweep=table2", "debug=limit"] | debug=limit: such a run leaves no record for a table
    ["+sweep=table2", "elmo.lambda=0.1"] | elmo.lambda=0.1: the sweep table2 itself sets elmo.lambda in its runs
    ["+sweep=table2", "-m"] | -m: arguments are written key=value
    ["+sweep=ner_loss", "task=srl"] | the sweep ner_loss is for task=ner, not for task=srl
    ["+sweep=variance", "scale=open"] | the sweep variance is for scale=mini, not for scale=open
    ["+sweep=table2", "task=ner,sst"] | task=sst: there is no such task; did you mean sst5?
    ["+sweep=table1", "task=all", "scale=huge"] | no task supports scale=huge
""")
def test_what_cannot_be_asked_for_is_one_line(arguments, message):
    with refuses(message):
        plan(wanted(arguments))


def test_all_is_every_task_that_the_sweep_is_for_in_the_papers_order():
    assert wanted(["+sweep=table2", "task=all"]).tasks == "squad snli srl coref ner sst5".split()
    assert wanted(["sweep=snli_l2", "task=all"]).tasks == wanted(["+sweep=snli_l2"]).tasks == ["snli"]
    assert wanted(["+sweep=table2"]).tasks == ["ner"]
    some = wanted(["+sweep=table2", "task=ner,snli"])
    assert some.tasks == ["snli", "ner"]
    assert "task=snli,ner " in some.command()


def test_the_command_that_goes_on_asks_for_the_same():
    told = ["+sweep=table2", "task=srl", "scale=open", "seeds=2", "jobs=1", "elmo.dropout=0.2", "data_root=/my data"]
    given = wanted([*told, "force=true"])
    assert given.command() == "elmo-bench sweep " + " ".join([*told[:-1], "'data_root=/my data'", "force=true"])
    assert given.changes == ["elmo.dropout=0.2"]
    several = wanted(["+sweep=table2", "task=all"])
    assert "task=all" in several.command()
    of_task = "+sweep=table2 task=srl scale=open seeds=2 elmo.dropout=0.2 'data_root=/my data'"
    assert given.command("srl") == f"elmo-bench sweep {of_task}"


# What runs, and in which order.


def test_one_run_with_elmo_starts_then_those_without(toy):
    found = planned(toy, "elmo.where=none,input,output", seeds=2)
    ordered = local._in_order(found)
    assert [[each.config.elmo.where, each.config.seed] for each in ordered] == table(r"""
        input  | 1
        none   | 1
        none   | 2
        input  | 2
        output | 1
        output | 2
    """)


def test_a_run_that_cannot_be_is_no_failure(toy, monkeypatch, capsys):
    wrong = UserError("fraction=0.1: fewer than a batch of 8"), UserError("no disk")
    monkeypatch.setattr(local, "run_jobs", ending(*wrong))
    made = planned(toy)
    local.run_missing(made)
    assert (len(made.impossible), len(made.failed)) == (1, 1)
    with refuses("no disk"):
        made.end()
    assert "\nplaces: 0 of 1 runs are recorded, 1 failed; to continue: " in capsys.readouterr().out


def test_a_share_that_a_recorded_run_shows_to_be_less_than_a_batch_is_not_tried_again(toy, sweep):
    """A pretended run on all of the data makes one update."""
    status, told, _ = sweep("run=false", name="fractions")
    assert "fractions: 0 of 2 runs are recorded, 2 missing; to continue: " in told
    assert sweep("fraction=1.0", name="fractions")[0] == 0
    for asked in ("run=false", "run=true"):
        status, told, _ = sweep(asked, name="fractions")
        assert (status, told.splitlines()[-1]) == (0, "fractions: 1 of 1 runs are recorded")
        assert "–" in told


def test_what_a_sweep_costs_is_said_before_it_starts(toy, monkeypatch, capsys):
    """By the medians of recorded runs of the same task and arm: one's own, else the reference runs."""
    monkeypatch.setattr(local, "run_jobs", lambda *_: None)
    made = planned(toy, seeds=3)
    local.run_missing(made)
    assert "6 runs to train; no such run is recorded, so their time is not known" in capsys.readouterr().out
    own = [fake("none", seed, task="toy", device_seconds=600.0 * seed) for seed in (1, 2, 9)]
    made.records = {str(i): record for i, record in enumerate(own)}
    monkeypatch.setattr(store, "read_all", lambda *place: [])  # the reference runs, which know how long a start takes
    told = made.cost(made.new)
    assert told.startswith("6 runs to train: about 60 min of training alone (")
    assert "without 3 that have no recorded" in told


def test_what_runs_need_before_they_train_counts_and_what_is_made_once_only_once(toy, monkeypatch):
    """By recorded runs: the median of the start, and the most that the making took, once; not where runs are there."""

    def reference(where, seed, start, **made):
        preparing = {"start": start} | made
        return fake(where, seed, task="toy", device_seconds=100.0, preparing=preparing)

    known = [
        reference("none", 1, 10.0, files=250.0), reference("none", 2, 10.0, files=0.0), reference("none", 3, 10.0),
        *(reference("input", seed, 20.0, layers=seed * 30.0) for seed in (1, 2, 3)),
        replace(fake("input", task="other", variant={"bilm.seed": 2}), preparing={"start": 1.0, "files": 900.0}),
    ]  # fmt: skip
    made = planned(toy, seeds=1)
    monkeypatch.setattr(store, "read_all", lambda *place: known)
    first = 100.0 + 10.0 + 100.0 + 20.0 + 250.0 + 90.0
    assert made.cost(made.new).startswith(f"2 runs to train: about {first / 60:.0f} min of computing, preparation incl")
    made.records = {"a": fake("none", 9, task="toy", device_seconds=100.0, preparing={"start": 10.0})}
    assert made.cost(made.new).startswith("2 runs to train: about 4 min of computing, preparation included")


def test_a_runs_time_is_in_proportion_to_its_epochs_and_batches(toy):
    """Of two recorded epochs with ten updates, half of whose seconds were training."""
    (run, *_) = planned(toy, seeds=1).runs
    times = {"training_seconds": [1.0, 1.0], "seconds": [2.0, 2.0]}
    like = fake("none", task="toy", device_seconds=100.0)
    like.config["task"]["fit"] = {"epochs": 2}
    like = replace(like, epochs=2, updates=10, history=like.history | times)

    def asked(**changes) -> float:
        config = run.config.model_copy(deep=True)
        config.task.fit.epochs, config.task.fit.least_updates = changes.get("epochs", 2), 0
        config.fraction, config.trainer.limit_batches = changes.get("fraction", 1.0), changes.get("limit")
        return expected(config, [like])

    assert (asked(), asked(epochs=6), asked(limit=1), asked(limit=0.5), asked(limit=9)) == (100, 300, 60, 75, 100)
    assert asked(fraction=0.1) == pytest.approx(55)


def test_each_run_is_a_process_of_one_run(toy, monkeypatch):
    commands = []
    monkeypatch.setattr(local, "run_jobs", lambda jobs, *_: commands.extend(jobs))
    local.run_missing(planned(toy))
    assert [job.title for job in commands] == [
        "toy/open +ELMo (input; task.fit.epochs=1), seed 1",
        "toy/open baseline (task.fit.epochs=1), seed 1",
    ]
    assert all({"hydra.mode=RUN", "+sweep=places", "seed=1"} <= {*job.command} for job in commands)


# The points of all sweeps.


def test_the_points_of_every_sweep_keep_their_ids_and_their_changes():
    """Of the first task of each at mini, where all that a run reads is made here; two sweeps need what is installed."""
    found = {}
    for sweep in sorted({*pages.sweeps()} - {"sources", "vectors"}):
        page = pages.table(sweep)
        task = (page.tasks or ["ner"])[0]
        if page.scales and "mini" not in page.scales:
            continue
        for point in points(sweep, [f"task={task}", "scale=mini"], [1]):
            run = composing.run_config([f"task={task}", "scale=mini", *point])
            found[f"{sweep} {' '.join(point)}"] = [Identity(run).run, run.variant]
    assert fingerprint(found) == "066596ac69d89716"
