"""The example of tasks/README.md: a seventh task in four files and a configuration file, in a copy of the project."""

import json
import re
import runpy
import shutil
import subprocess
from pathlib import Path

import pytest

from elmo_bench.records import store
from elmo_bench.system.places import ROOT
from tests.command import anew
from tests.conftest import clean_environment
from tests.fakes import pages_of, put

pytestmark = pytest.mark.slow

GUIDE = (ROOT / "tasks" / "README.md").read_text()
FILES = dict(re.findall(r"^`([^`\n]+)`:\n\n```\w+\n(.*?)^```$", GUIDE, re.DOTALL | re.MULTILINE))
HERE = "tasks/chunking/"


def python(folder: Path, module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`python -m MODULE ARGUMENTS` in a folder, whose code is used."""
    return anew(folder, module, arguments, clean_environment() | {"OMP_NUM_THREADS": "1"})


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Path:
    """A copy of the project with the example's files and no other change."""
    folder = tmp_path_factory.mktemp("project")
    for part in "elmo_bench tasks conf tests".split():
        shutil.copytree(ROOT / part, folder / part)  # with what is compiled
    for part in "pyproject.toml constraints.txt README.md Makefile".split():
        shutil.copy(ROOT / part, folder / part)
    for name, text in FILES.items():
        assert not (folder / name).exists()
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_a_task_is_four_files_and_a_page_of_fewer_than_150_lines():
    names = [f"{HERE}{name}" for name in "README.md reader.py head.py metric.py".split()]
    assert set(FILES) == {*names, "conf/task/chunking.yaml"}
    code = [line for name, text in FILES.items() if not name.endswith(".md") for line in text.splitlines()]
    assert 50 < len(code) < 150


def test_it_passes_the_contract_and_the_rules_of_the_layout(project):
    files, rules = ("benchmarks/test_contract.py", "project/test_layout.py"), "chunking or no_task or tasks_import"
    files = [f"tests/{name}" for name in files]
    environment = clean_environment() | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "OMP_NUM_THREADS": "1"}
    tests = anew(project, "pytest", ["-q", "-p", "no:cacheprovider", *files, "-k", rules], environment)
    assert tests.returncode == 0, tests.stdout
    assert int(re.search(r"(\d+) passed", tests.stdout)[1]) >= 16


def test_its_code_is_in_order(project):
    lint = python(project, "ruff", "check", "--no-cache", "tasks/chunking")
    assert lint.returncode == 0, lint.stdout
    lint = python(project, "ruff", "format", "--no-cache", "--check", "tasks/chunking")
    assert lint.returncode == 0, lint.stdout


def test_it_is_trained_reported_and_scored(project):
    runpy.run_path(str(project / HERE / "reader.py"))["write_example"](project / "data")
    quick = ["task.fit.epochs=3", "task.batch.batch_size=4", "task.optimizer.lr=0.02"]
    arguments = [
        "task=chunking",
        "scale=open",
        "arm=baseline",
        "vectors=random",
        *quick,
        f"data_root={project}/data",
        "trainer=cpu",
    ]
    run = python(project, "elmo_bench", "train", *arguments)
    assert run.returncode == 0, run.stderr
    (path,) = project.glob("results/own/runs/open/chunking/*.json")
    record = store.read(path)
    assert (record.task, record.arm) == ("chunking", "baseline")
    assert record.metrics["test"]["f1"] > 50
    shown = python(project, "elmo_bench", "reproduce", *arguments)
    assert "1 of 1 runs are recorded and not run again" in shown.stdout
    assert "chunking, scale open" in shown.stdout
    assert "## chunking, scale open" in pages_of(project / "results" / "own")
    gold = f"{project}/data/chunking/test.txt"
    done = python(project, "elmo_bench", "score", "task=chunking", f"gold={gold}", f"predictions={gold}")
    assert json.loads(done.stdout)["f1"] == 100


def test_it_is_trained_and_scored_from_a_folder_outside_the_project(tmp_path, file):
    """The folder is named by the flag, and when predictions are made, by the variable."""
    put(tmp_path, FILES)
    runpy.run_path(str(tmp_path / HERE / "reader.py"))["write_example"](tmp_path / "data")
    folder, variable = ("-cd", str(tmp_path)), clean_environment() | {"ELMO_BENCH_FOLDER": str(tmp_path)}
    asked = ["task=chunking", "scale=open", "arm=baseline", "vectors=random", "task.fit.epochs=1", "trainer=cpu",
             f"data_root={tmp_path}/data", f"results_root={tmp_path}/results"]  # fmt: skip
    run = anew(ROOT, "elmo_bench", ["train", *folder, *asked], clean_environment())
    assert run.returncode == 0, run.stderr
    (path,) = tmp_path.glob("results/runs/open/chunking/*.json")
    gold = f"{tmp_path}/data/chunking/test.txt"
    file('{"tokens": ["The", "barn", "left"]}\n', "in.jsonl")
    checkpoint = tmp_path / "results" / store.read(path).checkpoint
    for environment, command in (
        (clean_environment(), ["score", *folder, "task=chunking", f"gold={gold}", f"predictions={gold}"]),
        (variable, ["predict", f"checkpoint={checkpoint}", f"input={tmp_path}/in.jsonl", f"output={tmp_path}/out"]),
    ):
        done = anew(ROOT, "elmo_bench", command, environment)
        assert done.returncode == 0, done.stderr
    assert "chunks" in json.loads((tmp_path / "out").read_text())["prediction"]


def test_a_folder_that_is_not_there_is_one_line(tmp_path):
    done = anew(ROOT, "elmo_bench", ["train", "-cd", str(tmp_path / "nosuch"), "task=ner"], clean_environment())
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "no such folder; -cd FOLDER" in done.stderr
