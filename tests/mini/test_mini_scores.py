"""The generated files of every task, through its official metric: gold against itself is 100."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from elmo_bench import mini
from elmo_bench.system import places
from tests.mini.test_mini import SMALL

pytestmark = pytest.mark.slow


def columns(pattern: str) -> Callable[[Path, Path], tuple[Path, Path]]:
    """Gold columns are predictions as they stand."""
    return lambda folder, _: (folder / pattern, folder / pattern)


def answers(folder: Path, out: Path) -> tuple[Path, Path]:
    """Each question's last answer, which need not be the first."""
    gold = folder / "squad/test-v1.1.json"
    paragraphs = [p for article in json.loads(gold.read_text())["data"] for p in article["paragraphs"]]
    chosen = {qa["id"]: qa["answers"][-1]["text"] for paragraph in paragraphs for qa in paragraph["qas"]}
    (out / "answers.json").write_text(json.dumps(chosen))
    return gold, out / "answers.json"


def labels(lines: list[str], out: Path) -> tuple[Path, Path]:
    """One label a line."""
    (out / "labels.txt").write_text("".join(f"{line}\n" for line in lines))
    return out / "labels.txt", out / "labels.txt"


def pairs(folder: Path, out: Path) -> tuple[Path, Path]:
    lines = (folder / "snli/test.tsv").read_text().splitlines()[1:]
    return labels([line.split("\t")[0] for line in lines], out)


def trees(folder: Path, out: Path) -> tuple[Path, Path]:
    return labels([line[1] for line in (folder / "sst/test.txt").read_text().splitlines()], out)


FORMATS = {
    "ner": columns("ner/test.iob2"), "srl": columns("srl/test.conll"), "coref": columns("coref/test.conll"),
    "squad": answers, "snli": pairs, "sst5": trees,
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return mini.ensure_data(tmp_path_factory.mktemp("mini"), 5, SMALL)


PROBE = """
import json, sys
from elmo_bench.commands.compare.score import score
found = {task: score(task, *files) for task, files in json.loads(sys.argv[1]).items()}
heavy = sorted({"torch", "datasets", "pytorch_lightning"} & set(sys.modules))
print(json.dumps([found, heavy]))
"""


def test_gold_against_itself_scores_100_and_scoring_loads_nothing_heavy(folder, tmp_path):
    files = {}
    for task, make in FORMATS.items():
        (tmp_path / task).mkdir()
        files[task] = [str(path) for path in make(folder, tmp_path / task)]
    command = [sys.executable, "-c", PROBE, json.dumps(files)]
    done = subprocess.run(command, cwd=places.ROOT, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    found, heavy = json.loads(done.stdout)
    assert heavy == []
    assert {task: set(scores.values()) for task, scores in found.items()} == {task: {100.0} for task in FORMATS}
