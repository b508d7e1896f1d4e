"""W&B: live and published runs hold what their records say; no key, a wrong key or no network stops a run."""

import http.server
import importlib
import json
import os
import re
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest
from omegaconf import OmegaConf

from elmo_bench.commands.compare import Publish
from elmo_bench.configuration import pages
from elmo_bench.configuration.schema import WandbConfig
from elmo_bench.metrics.items import Items
from elmo_bench.records import items, publishing, store, wandb_runs
from elmo_bench.records.record import Record
from elmo_bench.system import places
from tests.conftest import PATIENCE, clean_environment
from tests.fakes import refuses
from tests.faulty_server import serving
from tests.records.test_records import fake

pytestmark = pytest.mark.slow

KEY = "a" * 40


@pytest.fixture(autouse=True)
def no_account(monkeypatch, tmp_path):
    """No key of this machine's user; the server has not been asked."""
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    for name in "WANDB_API_KEY WANDB_MODE WANDB_PROJECT WANDB_BASE_URL".split():
        monkeypatch.setenv(name, "")  # so that it is as before afterwards, also where the code sets it
        monkeypatch.delenv(name)


def inspected(folder: Path, *options: str) -> str:
    """What W&B itself makes of an offline run: the program that `wandb leet inspect` starts."""
    from wandb.util import get_core_path

    (log,) = folder.glob("*.wandb")
    command = [get_core_path(), "leet", "inspect", "--no-observability", "--json", *options, "--run-file", str(log)]
    return subprocess.run([*command, str(folder)], capture_output=True, text=True, timeout=PATIENCE, check=True).stdout


def summary(folder: Path) -> dict:
    return json.loads(inspected(folder, "--summary"))


def logged(folder: Path) -> tuple[dict, list[dict]]:
    """The opening of an offline run, and its rows."""
    lines = [json.loads(line) for line in inspected(folder).splitlines()]
    (opening,) = [line["run"] for line in lines if line["type"] == "run"][:1]
    return opening, [line["history"]["item"] for line in lines if line["type"] == "history"]


def paths(node) -> list[str]:
    """The absolute paths in nested containers."""
    if isinstance(node, dict):
        return [path for value in node.values() for path in paths(value)]
    if isinstance(node, list):
        return [path for value in node for path in paths(value)]
    return [node] if isinstance(node, str) and os.path.isabs(node) else []


# Live.


def offline_runs(bench) -> list[Path]:
    return sorted(bench.results.glob("work/open/toy/*/wandb/offline-run-*"))


def test_the_parts_of_a_killed_run_are_one_run_that_goes_on_at_the_right_step(bench):
    importlib.import_module("wandb")  # here, and not in both forks
    chosen = ("logger.wandb.name=mine", "logger.wandb.tags=[first,second]", "logger.wandb.notes=about it")
    arguments = bench.overrides("logger=wandb", "task.fit.epochs=3", *chosen)
    assert bench.command("train", *arguments, STOP="2,0").returncode < 0
    done = bench.command("train", *arguments, WANDB_API_KEY=KEY, WANDB_MODE="offline", HOME=f"{bench.folder}/home")
    assert done.returncode == 0, done.stderr
    first, second = offline_runs(bench)
    for path in (*second.glob("*.wandb"), *(second / "files").rglob("*.*")):  # what `wandb sync` uploads
        content = re.sub(rb"/[\w./-]+/artifacts/staging/", b"", path.read_bytes())  # where it finds a table: not told
        assert not [told for told in (KEY, str(bench.folder), str(places.ROOT)) if told.encode() in content]
    assert f"W&B: logged offline; `wandb sync {second}` uploads it" in done.stderr
    (path,) = bench.results.glob("runs/open/toy/*.json")
    record = store.read(path)
    openings, rows = zip(*map(logged, (first, second)), strict=True)
    assert {opening["run_id"] for opening in openings} == {record.run}
    assert all(opening["resume"] for opening in openings)
    steps = [row["_step"] for part in rows for row in part]
    expected = [*record.history["updates"], record.updates + 1]
    # W&B writes from a process of its own: on a busy machine, SIGKILL may take the last rows of the first part.
    assert steps == [step for step in expected if step in steps or step >= expected[-2]]
    epochs = zip(record.layer_weights["input"], record.gamma["input"], strict=True)
    logged_then = dict(zip(record.history["updates"], epochs, strict=True))
    for row in [row for part in rows for row in part if row["_step"] in logged_then]:
        weights, gamma = logged_then[row["_step"]]
        assert [row[f"elmo/input/s{j}"] for j in range(3)] == weights
        assert row["elmo/input/gamma"] == gamma
    opening, whole = openings[1], summary(second)
    assert (opening["run_group"], opening["job_type"]) == ("others/open/toy", "elmo")
    assert opening["tags"][:3] == ["toy", "open", "biLM custom"]
    assert {"first", "second"} <= {*opening["tags"]}
    assert (opening["display_name"], opening["notes"]) == ("mine", "about it")
    assert whole["config"]["task"]["fit"]["epochs"] == 3
    assert whole["config"]["record"]["digest"] == wandb_runs.digest(record)
    assert "config" not in whole["config"]
    assert paths(whole["config"]) == []
    for split, metrics in record.metrics.items():
        assert all(whole["summary"][f"{split}/{name}"] == pytest.approx(value) for name, value in metrics.items())
    assert whole["summary"]["predictions"]["nrows"] == 40


# The table of predictions.


def test_the_table_has_a_row_for_every_row_of_the_test_set(tmp_path, file):
    scored = Items({"correct": np.array([1, 0, 1]), "gold": np.array([1, 1, 1])}, np.array([0, 2, 2]), np.arange(3), ())
    found = wandb_runs.table(scored, tmp_path / "no such file")
    assert ([*found], found.values.tolist()) == (["row", "correct", "gold"], [[0, 1.0, 1.0], [2, 1.0, 2.0]])
    file('"A"\n"B"\n["C"]\n', "p.jsonl")
    found = wandb_runs.table(scored, tmp_path / "p.jsonl")
    assert found.values.tolist() == [[0, '"A"', 1.0, 1.0], [2, '["C"]', 1.0, 2.0]]


# A run is never stopped.


class Slow(http.server.BaseHTTPRequestHandler):
    """A server that never answers."""

    def do_POST(self):
        time.sleep(60)

    def log_message(self, *_):
        pass


class Refusing(Slow):
    """A server that accepts no key."""

    def do_POST(self):
        self.send_response(401)
        self.end_headers()
        self.wfile.write(b'{"errors": [{"message": "permission denied"}]}')


@pytest.fixture
def server():
    """Starts a server on this machine; returns its address."""
    with ExitStack() as started:

        def start(handler):
            one = started.enter_context(serving(http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)))
            return f"http://127.0.0.1:{one.server_port}"

        yield start


def two_runs(folder: Path, seconds: float) -> None:
    """Two W&B runs of one process, which wait so long for the server; prints whether they are offline."""
    wandb_runs.SECONDS = seconds
    for name in ("first", "second"):
        run = wandb_runs.opened(folder, project="p", id=name)
        run.log({"loss": 1.0}, 1)
        print(run.offline)
        run.close()


def test_disabled_by_its_variable_nothing_is_logged(tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "disabled")
    assert wandb_runs.opened(tmp_path / "run", project="p").folder is None
    assert not (tmp_path / "run").exists()


def test_the_project_is_that_of_the_variable(bench, monkeypatch):
    monkeypatch.setenv("WANDB_PROJECT", "mine")
    assert bench.compose("logger=wandb").logger.wandb.project == "mine"


@pytest.mark.parametrize(
    "handler, seconds, said", [(Refusing, PATIENCE, "permission denied"), (Slow, 3, "deadline exceeded")]
)
def test_a_key_that_does_not_serve_is_one_line_and_the_run_is_offline(tmp_path, server, handler, seconds, said):
    environment = clean_environment() | {"WANDB_API_KEY": KEY, "WANDB_BASE_URL": server(handler)}
    code = f"import pathlib, {__name__} as tests; tests.two_runs(pathlib.Path({str(tmp_path)!r}), {seconds})"
    # A new process: W&B's threads and loggers of this one would have their say on stderr in a fork.
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=places.ROOT, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.split()) == (0, ["True", "True"]), done.stderr
    assert re.fullmatch(f"W&B: .*{said}.*; logging continues offline\n", done.stderr), done.stderr
    assert len(list(tmp_path.glob("wandb/offline-run-*"))) == 2


def test_without_wandb_a_run_goes_on(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "wandb", None)
    run = wandb_runs.opened(tmp_path, project="p")
    run.log({"loss": 1.0}, 1)
    run.conclude(finished(), None, None)
    run.close()
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("W&B: wandb is not installed")
    assert (run.folder, run.offline) == (None, False)


def test_an_error_of_wandb_ends_the_logging_in_one_line(capsys):
    class Broken:
        dir, offline = "/no/such/files", False

        def log(self, *_, **__):
            raise BrokenPipeError("the service has died")

    run = wandb_runs.WandbRun(Broken())
    for step in (1, 2):
        run.log({"loss": 1.0}, step)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("W&B: the service has died; logging has ended")


def test_a_value_that_wandb_refuses_is_named_in_one_line(tmp_path, capsys):
    wandb_runs.opened(tmp_path, project="p", tags=["x" * 100])
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("W&B: run_tags: ")
    assert line.endswith("between 1 and 64 characters; nothing is logged to W&B")


def test_a_key_that_wandb_login_has_left_is_found(tmp_path, monkeypatch, file):
    monkeypatch.setenv("WANDB_MODE", "online")
    assert not wandb_runs.has_key()
    asked = importlib.import_module("wandb").setup().settings.base_url
    for host, found in (("api.example.org", False), (urlsplit(asked).hostname, True)):
        file(f"machine {host} login user password {KEY}\n", "netrc")
        (tmp_path / "netrc").chmod(0o600)
        assert wandb_runs.has_key() == found


# Published.


def finished(seed=1, **more):
    """A record with a history."""
    columns = {"epoch": [1, 2], "updates": [5, 10], "loss": [2.0, 1.0], "learning_rate": [0.1, 0.1],
               "dev.f1": [80.0, 91.0], "tokens": [100, 100]}  # fmt: skip
    record = fake(seed=seed, updates=10, commit="c" * 40, history=columns, **more)
    record.config["task"]["name"] = "ner"
    return record


def save(root: Path, *records: Record) -> None:
    scored = Items({"correct": np.ones(4)}, np.arange(4), np.arange(4), ())
    for record in records:
        path = store.place(root, record.scale, record.task, record.run)
        store.write(path, record, {items.path_of(path): items.packed({"dev": scored, "test": scored})})


def published(root: Path) -> list[Path]:
    return sorted(root.glob("wandb/offline-run-*"))


def publish(root: Path, project: str = "p"):
    return publishing.publish(store.read_all(root), root, root, WandbConfig(project=project))


def test_every_record_is_published_once(tmp_path):
    save(tmp_path, finished(1), finished(2, variant={"elmo.layers": "last"}))
    assert publish(tmp_path) == {publishing.WRITTEN: 2}
    first, second = published(tmp_path)
    opening, rows = logged(first)
    assert (opening["run_id"], opening["run_group"], opening["job_type"]) == (finished().run, "table1/open/ner", "elmo")
    assert opening["tags"] == ["ner", "open", "biLM open", "commit cccccccccccc"]
    assert [(row["_step"], row["epoch"], row["dev/f1"], row["train/loss"]) for row in rows[:2]] == [
        (5, 1, 80.0, 2.0), (10, 2, 91.0, 1.0),
    ]  # fmt: skip
    assert [row["elmo/input/gamma"] for row in rows[:2]] == [1.0, 1.25]
    assert [rows[1][f"elmo/input/s{j}"] for j in range(3)] == [0.1, 0.3, 0.6]
    whole = summary(first)["summary"]
    assert (whole["test/f1"], whole["dev/f1"], whole["elmo/input/s2"]) == (90.0, 91.0, 0.6)
    assert whole["seconds"] == finished().seconds > whole["_runtime"]  # how long the run took, and not its publishing
    assert whole["predictions"]["nrows"] == 4
    assert logged(second)[0]["run_group"] == "table2/open/ner"
    before = [path.stat().st_mtime_ns for path in published(tmp_path)]
    assert publish(tmp_path) == {publishing.THERE: 2}
    assert [path.stat().st_mtime_ns for path in published(tmp_path)] == before


def test_a_record_is_published_once_to_each_project(tmp_path):
    save(tmp_path, finished())
    assert publish(tmp_path) == {publishing.WRITTEN: 1}
    time.sleep(1)  # the folder of a run is named by the second
    assert publish(tmp_path, "other") == {publishing.WRITTEN: 1}
    assert len(published(tmp_path)) == 2
    assert publish(tmp_path) == publish(tmp_path, "other") == {publishing.THERE: 1}


def test_a_record_that_has_changed_replaces_its_offline_run(tmp_path):
    save(tmp_path, finished())
    publish(tmp_path)
    save(tmp_path, finished(metrics={"dev": {"f1": 50.0}, "test": {"f1": 51.0}}))
    assert publish(tmp_path) == {publishing.WRITTEN: 1}
    (only,) = published(tmp_path)
    assert summary(only)["summary"]["test/f1"] == 51.0
    (only / publishing.DIGEST).unlink()  # as a killed process leaves it
    assert publish(tmp_path) == {publishing.WRITTEN: 1}
    assert len(published(tmp_path)) == 1


def test_what_was_logged_in_training_or_is_on_the_server_is_not_published_again(tmp_path, monkeypatch):
    first, second, third = map(finished, (1, 2, 3))
    save(tmp_path, first, second, third)
    work = store.work(tmp_path, "open", "ner", second.run)
    (work / "wandb" / f"offline-run-20260101_000000-{second.run}").mkdir(parents=True)
    monkeypatch.setattr(publishing, "has_key", lambda: True)
    monkeypatch.setattr(publishing, "on_server", lambda *_: {first.run: wandb_runs.digest(first)})
    assert publish(tmp_path) == {publishing.THERE: 1, publishing.LOGGED: 1, publishing.WRITTEN: 1}


def test_publish_says_how_long_it_takes_and_how_to_upload(call, refused, tmp_path):
    version = OmegaConf.load(pages.page("ner")).task.version  # the command reads the file, too
    save(tmp_path / "mine", *(finished(seed, version=version) for seed in (1, 2, 3)))
    status, out, err = call(Publish, f"results_root={tmp_path}/mine", "project=p")
    assert status == 0, err
    assert out.splitlines() == [
        "W&B, project p: runs: 3 written",
        f"offline; to upload, with a key: wandb sync {tmp_path}/mine/wandb/offline-run-*",
    ]
    assert re.search(r"^1 of 3 runs took \d+ s: the others take about \d+ s$", err, re.MULTILINE)
    status, out, err = call(Publish, f"results_root={tmp_path}/mine", "project=p")  # nothing is left to write
    assert (status, "the others take" in err, "3 already there" in out) == (0, False, True)
    assert "no run is recorded here" in refused(Publish, f"results_root={tmp_path}/none")


# The workspace and the report.


def test_without_the_extra_the_dashboards_are_one_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb_workspaces", None)
    with refuses(r"pip install 'elmo_bench\[dashboards\]'"):
        publishing.dashboards("me", "p", [[finished()]], "")


def test_the_workspace_shows_the_metrics_that_runs_log():
    pytest.importorskip("wandb_workspaces")
    records = [finished(), finished(2, scale="mini")]
    workspace = publishing.dashboards("me", "p", [[each] for each in records], "")["workspace"]
    made = json.loads(workspace._to_model().model_dump_json(by_alias=True))
    (runs,) = made["spec"]["section"]["runSets"]
    assert [group["name"] for group in runs["grouping"]] == ["table.value", "label.value"]
    sections = {each["name"]: each["panels"] for each in made["spec"]["section"]["panelBankConfig"]["sections"]}
    assert list(sections) == ["Scores", "Training", "Layer weights", "Cost"]
    shown = {name for panels in sections.values() for panel in panels for name in panel["config"]["metrics"]}
    row = wandb_runs.rows(wandb_runs.history(records[0]))[0]
    assert {"dev/f1", "train/loss", "elmo/input/s0", "elmo/input/s2", "elmo/input/gamma"} <= shown & {*row}
    assert "test/f1" in shown & {*wandb_runs.summary(records[0])}


def test_the_report_has_the_tables_and_the_curves_of_every_task():
    wr = pytest.importorskip("wandb_workspaces.reports.v2")
    made = publishing.dashboards("me", "p", [[finished()], [finished(2, scale="mini")]], "# Tables")["report"]
    assert made.blocks[1].text == "# Tables"
    grids = [block for block in made.blocks if isinstance(block, wr.PanelGrid)]
    assert [grid.runsets[0].filters for grid in grids] == [
        "Tags() in ['ner'] and Tags() in ['open']", "Tags() in ['ner'] and Tags() in ['mini']",
    ]  # fmt: skip
    assert {*map(str, grids[0].runsets[0].groupby)} == {"config.label"}


def test_a_dashboard_that_w_and_b_does_not_save_is_one_line(tmp_path, monkeypatch):
    def refused(*_):
        raise RuntimeError("no such entity\nand more")

    monkeypatch.setattr(publishing, "dashboards", refused)
    with refuses("W&B: no such entity; the workspace or the report was not saved"):
        publishing.publish_dashboards([[finished()]], "", tmp_path, WandbConfig(project="p", entity="me"))


def test_dashboards_are_made_once_and_then_replaced(tmp_path, monkeypatch):
    saved = []

    class Made:
        def __init__(self, sections, url="new"):
            self.sections, self.url = sections, url

        @classmethod
        def from_url(cls, url):
            return cls("old", url)

        def save(self):
            saved.append((self.sections, self.url))
            return self

    names = ("workspace", "report")
    monkeypatch.setattr(publishing, "dashboards", lambda *_: {name: Made(name, f"https://{name}") for name in names})
    urls = {"workspace": "https://workspace", "report": "https://report"}
    for _ in range(2):
        assert (
            publishing.publish_dashboards([[finished()]], "", tmp_path, WandbConfig(project="p", entity="me")) == urls
        )
    assert saved == [*urls.items()] * 2


def test_names_are_cut_to_what_the_server_takes():
    assert wandb_runs.cut("ner open +ELMo", ", seed 1") == "ner open +ELMo, seed 1"
    name = wandb_runs.cut("x" * 300, ", seed 1")
    assert (len(name), name[-11:]) == (128, "..., seed 1")
