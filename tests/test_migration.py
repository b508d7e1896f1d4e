"""The committed records: their names, the report made of them, and how records of identity 1 get their names."""

from __future__ import annotations

import importlib.metadata
import json
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from elmo_bench import report
from elmo_bench.configuration import pages, schema
from elmo_bench.configuration.schema import Places
from elmo_bench.experiment import store
from elmo_bench.experiment.identity import Identity
from elmo_bench.experiment.migration import migrate, migrated
from elmo_bench.experiment.settings import relevant
from elmo_bench.reporting import tables
from elmo_bench.reporting.groups import flat
from elmo_bench.system import places
from elmo_bench.system.errors import UserError
from elmo_bench.system.hashing import fingerprint, sha256

RESULTS = places.ROOT / "results"
# The version of the newest records, where it is earlier than that of their task's page.
BEHIND: dict[tuple[str, str], int] = {}


def committed() -> list[Path]:
    """The records that are part of the project, a user's own runs aside."""
    listed = subprocess.run(["git", "ls-files", "results/runs"], cwd=places.ROOT, capture_output=True, text=True)
    names = [line for line in listed.stdout.splitlines() if line.endswith(".json")]
    return [places.ROOT / name for name in names if (places.ROOT / name).is_file()]


@pytest.fixture(scope="module")
def records() -> Mapping[Path, store.Record]:
    """The committed records by their paths."""
    read = {path: store.read(path) for path in committed()}
    if not read:
        pytest.skip("no record is committed here")
    return read


def test_the_id_of_every_committed_record_follows_from_what_it_stores(records):
    for path, record in records.items():
        identity = Identity.from_settings(record["settings"])
        assert (identity.run, identity.group, identity.data) == (path.stem, record["group"], record["data_sha256"])
        assert record["run"] == path.stem


def test_the_settings_of_every_committed_record_follow_from_its_configuration(records):
    """Apart from digests and recipes, they are the values of the configuration that differ from the defaults."""
    for path, record in records.items():
        run = schema.from_plain(record["config"])
        settings, values = flat(record["settings"]), flat(relevant(run))
        for key, value in values.items():
            stored = settings.get(key, settings.get("bilm.recipe.version") or settings.get("vectors.recipe.version"))
            digest = str(stored).startswith(("sha256:", "made:"))
            made = key.split(".")[0] in ("bilm", "vectors") and key not in settings
            assert stored == value or digest or made, (path, key)
        assert (record["arm"], record["seed"], record["version"]) == (run.arm, run.seed, run.task.version)


@pytest.mark.parametrize("scale", ["mini", "open"])
@pytest.mark.parametrize("task", pages.tasks())
def test_the_newest_records_are_of_their_tasks_version_unless_they_are_known_to_be_behind(task, scale, records):
    newest = max(r["version"] for r in records.values() if (r["task"], r["scale"]) == (task, scale))
    assert newest == BEHIND.get((task, scale), pages.version(task))
    assert BEHIND.get((task, scale), 0) < pages.version(task)


def unless_behind(task: str, scale: str) -> None:
    """Skips where a task's pages have no record yet."""
    if (task, scale) in BEHIND:
        pytest.skip("recorded with an earlier version alone")


@pytest.mark.parametrize("task", pages.tasks())
def test_the_runs_of_table_1_at_mini_are_recorded_under_their_ids(task, records):
    unless_behind(task, "mini")
    ids = {record["run"] for record in records.values()}
    recorded = {each["arm"] for each in records.values() if (each["scale"], each["task"]) == ("mini", task)}
    for arm in ("baseline", "elmo", *(arm for arm in pages.pair("mini") if arm in recorded)):
        for seed in (1, 2, 3):
            cfg = pages.compose([f"task={task}", f"arm={arm}", f"seed={seed}"])
            assert Identity(schema.typed(cfg)).run in ids, (arm, seed)


@pytest.mark.parametrize("task", pages.tasks())
def test_the_runs_of_table_1_at_open_are_recorded_under_their_ids(task, records, data_root):
    unless_behind(task, "open")
    ids = {record["run"] for record in records.values()}
    chosen = [f"task={task}", "scale=open", f"data_root={data_root}"]
    for arm in ("baseline", "elmo"):  # the controls take hours more
        assert Identity(schema.typed(pages.compose([*chosen, f"arm={arm}"]))).run in ids, arm


def test_the_version_of_a_task_is_that_of_its_page():
    assert [pages.version(task) for task in ("sst5", "ner", "of another project")] == [3, 2, 1]


# The report of the committed records.


def libraries_are_pinned():
    """Whether the libraries that draw and lay out the report have the versions that the pins name."""
    pins = dict(line.split("==") for line in (places.ROOT / "constraints.txt").read_text().split() if "==" in line)
    names = ("matplotlib", "numpy", "scipy", "Jinja2", "MarkupSafe")
    return all(importlib.metadata.version(name) == pins[name] for name in names)


def test_the_committed_records_are_readable_and_the_report_is_theirs():
    names = {path.stem for path in committed()}
    found = [record for record in store.read_all(RESULTS) if record["run"] in names]  # not a user's own runs
    if not found:
        pytest.skip("no record is committed here")
    if len(found) == len(store.read_all(RESULTS)):
        for name, text in report.contents(found, RESULTS).items():
            if name in ("README.md", "report.json") or libraries_are_pinned():
                assert (RESULTS / name).read_text(encoding="utf-8") == text, f"{name}: make report writes another"
        readme = (places.ROOT / "README.md").read_text(encoding="utf-8")
        assert report.embedded(readme, tables.overview(found)) == readme
    assert "/root/" not in json.dumps(found)
    assert "/home/" not in json.dumps(found)


# A record as identity 1 wrote it, of the toy task.


@pytest.fixture
def old(bench):
    """The folder of results, and the path of the old record in it."""
    data = {"train": "train.txt", "dev": "dev.txt", "test": "test.txt", "root": "<data_root>", "folder": "toy"}
    digests = {s: f"sha256:{sha256(bench.data / 'toy' / f'{s}.txt')}" for s in ("train", "dev", "test")}
    elmo = {
        "where": "input", "layers": "all", "gamma": True, "lambda": 0.1, "layer_norm": False, "dropout": 0.5,
        "projection": None, "words": "beside", "finetune": "none",
    }  # fmt: skip
    task = {
        "name": "toy", "monitor": "accuracy", "paper": {"baseline": 50.0, "elmo": 60.0, "elmo_deviation": 0.5},
        "elmo": elmo, "arms": None, "schedule": None, "average": None, "chars": None,
        "data": {"open": data}, "fit": {"open": {"epochs": 4, "patience": None}, "paper": {"epochs": 9}},
        "reader": {"_target_": "tests.toy.ToyReader", "data": data},
        "words": {"_target_": "elmo_bench.text.vectors.word_embedding", "_partial_": True, "size": 4},
        "head": {"_target_": "tests.toy.ToyHead", "_partial_": True, "dropout": 0.5},
        "metric": {"_target_": "tests.toy.ToyMetric"}, "score": "tests.toy.score",
        "optimizer": {"_target_": "torch.optim.Adam", "_partial_": True, "lr": 0.01},
        "clip": {"value": 5.0, "by": "norm"}, "batch": {"batch_size": 8},
    }  # fmt: skip
    config = {
        "seed": 2, "data_root": "<data_root>", "models_root": "<models_root>", "cache_root": "<cache_root>",
        "results_root": "<results_root>", "elmo": elmo, "task": task, "vectors": {"source": "page"},
        "scale": {"name": "open", "note": "", "prepare": None, "options": None}, "launcher": {},
        "bilm": {
            "name": "mine", "options": "<models_root>/options.json", "weights": "<models_root>/weights",
            "state": "warm", "tuned": False, "cache": True, "source": None,
        },
        "trainer": {
            "accelerator": "cpu", "devices": 1, "threads": 1, "progress": "auto", "precision": "32-true",
            "limit_batches": None,
        },
        "logger": {"wandb": None},
    }  # fmt: skip
    record = {
        "task": "toy", "scale": "open", "seed": 2, "run": "former", "group": "formers", "variant": {},
        "metrics": {"dev": {"accuracy": 60.0}, "test": {"accuracy": 61.0}}, "epoch": 1, "epochs": 2,
        "layer_weights": {"input": [[0.3, 0.3, 0.4]]}, "gamma": {"input": [1.0]}, "seconds": 3.0, "machine": {},
        "versions": {}, "commit": None, "data_sha256": fingerprint(digests, digits=64), "config": config,
        "bilm": {"name": "mine", "sha256": sha256(bench.folder / "weights"), "tuned": False},
        "history": [{"epoch": i, "loss": 1.0 - i / 2, "dev": {"accuracy": 59.0 + i}} for i in range(2)],
    }  # fmt: skip
    path = store.place(bench.results, "open", "toy", "former")
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(record, indent=1))
    return bench, path


def here(bench) -> Places:
    return Places(str(bench.data), str(bench.folder), str(bench.folder / "cache"), str(bench.results))


def test_an_old_record_gets_the_name_that_its_run_has_today(old):
    bench, path = old
    files = [f"bilm.options={bench.folder}/options.json", f"bilm.weights={bench.folder}/weights"]
    expected = Identity(schema.typed(bench.compose("seed=2", *files))).run
    ((source, target),) = migrate(bench.results, here(bench))
    assert (source, target) == (path, path.with_name(f"{expected}.json"))
    assert not path.exists()
    record = store.read(path.with_name(f"{expected}.json"))
    assert (record["former"], record["arm"], record["variant"]) == (["former"], "elmo", {})
    assert record["history"] == {"epoch": [0, 1], "loss": [1.0, 0.5], "dev.accuracy": [59.0, 60.0]}
    assert record["metrics"]["test"] == {"accuracy": 61.0}
    assert list(migrate(bench.results, here(bench))) == []


@pytest.mark.parametrize(
    ("name", "message"), [("data/toy/dev.txt", "are not those of the record"), ("weights", "its biLM")]
)
def test_an_old_record_of_other_files_stays_as_it_is(old, name, message):
    bench, path = old
    before = path.read_bytes()
    with open(bench.folder / name, "a") as file:
        file.write("ba/A\n")
    ((source, reason),) = migrate(bench.results, here(bench))
    assert message in reason
    assert source.read_bytes() == before
    with pytest.raises(UserError, match=message):
        migrated(json.loads(before), here(bench))


def test_an_old_record_is_refused_with_the_command_that_renames_it(old):
    bench, path = old
    with pytest.raises(UserError, match="migrate"):
        store.read(path)
