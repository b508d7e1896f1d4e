"""The generated files of every task, through its official metric: gold against itself is 100."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from elmo_bench.mini import data as mini
from elmo_bench.system import places
from tests.mini.test_mini import SMALL

pytestmark = pytest.mark.slow

COLUMNS = {"ner": "ner/test.iob2", "srl": "srl/test.conll", "coref": "coref/test.conll"}


def answers(gold: Path) -> dict[str, str]:
    """Each question's last answer, which need not be the first."""
    paragraphs = [p for article in json.loads(gold.read_text())["data"] for p in article["paragraphs"]]
    return {qa["id"]: qa["answers"][-1]["text"] for paragraph in paragraphs for qa in paragraph["qas"]}


@pytest.fixture
def files(tmp_path) -> dict[str, list[str]]:
    """Of each task the gold file and one of predictions that are all right."""
    folder = mini.ensure_data(tmp_path / "mini", 5, SMALL)
    gold, predicted = folder / "squad/test-v1.1.json", tmp_path / "answers.json"
    predicted.write_text(json.dumps(answers(gold)))
    labels = {
        "snli": [line.split("\t")[0] for line in (folder / "snli/test.tsv").read_text().splitlines()[1:]],
        "sst5": [line[1] for line in (folder / "sst/test.txt").read_text().splitlines()],
    }
    for task, lines in labels.items():
        (tmp_path / task).write_text("".join(f"{line}\n" for line in lines))
    same = {task: folder / name for task, name in COLUMNS.items()} | {task: tmp_path / task for task in labels}
    return {"squad": [str(gold), str(predicted)]} | {task: [str(path)] * 2 for task, path in same.items()}


PROBE = """
import json, sys
from elmo_bench.commands.compare.score import score
found = {task: score(task, *files) for task, files in json.loads(sys.argv[1]).items()}
heavy = sorted({"torch", "datasets", "pytorch_lightning"} & set(sys.modules))
print(json.dumps([found, heavy]))
"""


def test_gold_against_itself_scores_100_and_scoring_loads_nothing_heavy(files):
    command = [sys.executable, "-c", PROBE, json.dumps(files)]
    done = subprocess.run(command, cwd=places.ROOT, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    found, heavy = json.loads(done.stdout)
    assert heavy == []
    tasks = ("ner", "srl", "coref", "squad", "snli", "sst5")
    assert {task: set(scores.values()) for task, scores in found.items()} == {task: {100.0} for task in tasks}
