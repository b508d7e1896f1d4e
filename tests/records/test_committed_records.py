"""The committed records: their names, and the report made of them."""

import importlib.metadata
import subprocess
from collections.abc import Mapping
from itertools import product
from pathlib import Path

import pytest

from elmo_bench.configuration import composing, pages, schema
from elmo_bench.configuration.keys import flat
from elmo_bench.records import items, store
from elmo_bench.records.record import Record
from elmo_bench.records.settings import Identity, relevant
from elmo_bench.reporting import report as page
from elmo_bench.system import places
from elmo_bench.system.storage.hashing import fingerprint
from tests.records.test_records import NEEDS_GIT

pytestmark = [pytest.mark.slow, NEEDS_GIT]

RESULTS = places.ROOT / "results"


def committed() -> list[Path]:
    """The records that are part of the project, a user's own runs aside."""
    listed = subprocess.run(
        ["git", "ls-files", "results/runs"], cwd=places.ROOT, capture_output=True, text=True, check=True
    )
    names = [line for line in listed.stdout.splitlines() if line.endswith(".json")]
    return [places.ROOT / name for name in names if (places.ROOT / name).is_file()]


@pytest.fixture(scope="module")
def records() -> Mapping[Path, Record]:
    """The committed records by their paths."""
    read = {path: store.read(path) for path in committed()}
    if not read:
        pytest.skip("no record is committed here")
    return read


def test_the_id_of_every_committed_record_follows_from_what_it_stores(records):
    for path, record in records.items():
        settings = record.settings
        assert record.run == path.stem == fingerprint(settings)
        data = [settings["scale"], settings["task"]["reader"].get("data")]
        assert record.data_sha256 == fingerprint(data, digits=64)


def test_the_settings_of_every_committed_record_follow_from_its_configuration(records):
    """Apart from digests and recipes, they are the values of the configuration that differ from the defaults."""
    for path, record in records.items():
        run = schema.from_plain(record.config)
        settings, values = flat(record.settings), flat(relevant(run))
        for key, value in values.items():
            stored = settings.get(key, settings.get("bilm.recipe.version") or settings.get("vectors.recipe.version"))
            digest = str(stored).startswith(("sha256:", "made:"))
            made = key.split(".")[0] in ("bilm", "vectors") and key not in settings
            assert stored == value or digest or made, (path, key)
        assert (record.arm, record.seed, record.version) == (run.arm, run.seed, run.task.version)


def test_runs_on_the_same_data_have_the_same_clusters_of_examples(records):
    """Else two arms could not be compared example by example, and intervals would be too narrow."""
    found = {}
    for path, record in records.items():
        for split, part in items.read(items.path_of(path)).items():
            of_data = found.setdefault((record.scale, record.task, record.data_sha256, split), set())
            of_data.add((part.rows.tobytes(), part.clusters.tobytes(), part.names))
    assert {data: len(kinds) for data, kinds in found.items()} == dict.fromkeys(found, 1)


def test_every_committed_record_is_of_its_tasks_version(records):
    assert all(record.version == pages.written("task", record.task, "version", 1) for record in records.values())


def test_the_row_of_the_selected_epoch_has_the_selected_score(records):
    for path, record in records.items():
        row = record.history["epoch"].index(record.epoch)
        assert record.dev_scores[row] == record.metrics["dev"][record.monitor], path
        assert record.history["updates"][row] == record.selected_updates, path


@pytest.mark.parametrize("task", pages.tasks())
def test_the_runs_of_table_1_at_mini_are_recorded_under_their_ids(task, records):
    ids = {record.run for record in records.values()}
    for arm, seed in product(("baseline", "elmo"), range(1, 6)):
        cfg = composing.compose([f"task={task}", f"arm={arm}", f"seed={seed}"])
        assert Identity(composing.validated(cfg)).run in ids, (arm, seed)


@pytest.mark.parametrize("task", pages.tasks())
def test_the_runs_of_table_1_at_open_are_recorded_under_their_ids(task, records, data_root):
    ids = {record.run for record in records.values()}
    chosen = [f"task={task}", "scale=open", "vectors=random", f"data_root={data_root}"]  # the control needs no download
    if task == "ner":  # on UNER's own split, whose runs keep their ids
        chosen += [f"task.data.{split}={data_root}/ner_uner_ewt/{split}.iob2" for split in ("train", "dev", "test")]
    for arm in ("baseline", "elmo"):
        assert Identity(composing.run_config([*chosen, f"arm={arm}"])).run in ids, arm


# The report of the committed records.


def libraries_are_pinned():
    """Whether the libraries that draw and lay out the report have the versions that the pins name."""
    pins = dict(line.split("==") for line in (places.ROOT / "constraints.txt").read_text().split() if "==" in line)
    names = ("matplotlib", "numpy", "scipy", "Jinja2", "MarkupSafe")
    return all(importlib.metadata.version(name) == pins[name] for name in names)


def test_the_committed_records_are_readable_and_the_report_is_theirs():
    names = {path.stem for path in committed()}
    there = store.read_all(RESULTS)
    found = [record for record in there if record.run in names]  # not a user's own runs
    if not found:
        pytest.skip("no record is committed here")
    text = "".join(map(store.dumps, found))
    assert "/root/" not in text
    assert "/home/" not in text
    if len(found) < len(there):
        pytest.skip("results/runs has runs that are not committed: the report is not compared")
    made = page.Report(found, RESULTS)
    pages = {str(path.relative_to(RESULTS)) for part in ("tables", "tasks") for path in (RESULTS / part).iterdir()}
    assert pages <= made.files.keys()
    for name, text in made.files.items():
        if name in ("README.md", "report.json") or libraries_are_pinned():
            assert (RESULTS / name).read_text() == text, f"{name}: make report writes another"
    readme = (places.ROOT / "README.md").read_text()
    assert page.embedded(readme, made.overview) == readme
