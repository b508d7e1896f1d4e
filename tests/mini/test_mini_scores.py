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


PROBE = (
    "import sys; from elmo_bench import __main__; sys.argv[1:1] = ['score']; __main__.main(); "
    "assert not {'torch', 'datasets', 'pytorch_lightning'} & set(sys.modules)"
)


@pytest.mark.parametrize("task", FORMATS)
def test_gold_against_itself_scores_100_and_the_command_loads_nothing_heavy(task, folder, tmp_path):
    gold, predictions = FORMATS[task](folder, tmp_path)
    command = [sys.executable, "-c", PROBE, f"task={task}", f"gold={gold}", f"predictions={predictions}"]
    done = subprocess.run(command, cwd=places.ROOT, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert set(json.loads(done.stdout).values()) == {100.0}
