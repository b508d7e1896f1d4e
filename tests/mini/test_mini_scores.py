"""The generated files of every task, through its reader and its official metric: gold against itself is 100."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hydra.utils import instantiate

from elmo_bench import mini
from elmo_bench.commands.compare.score import score
from elmo_bench.configuration import pages
from tests.mini.test_mini import SMALL

ROOT = Path(__file__).resolve().parents[2]
SPLITS = ("train", "dev", "test")


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
SIZES = {"sst5": "sst"}
TASKS = [task for task in FORMATS if (ROOT / "conf" / "task" / f"{task}.yaml").is_file()]  # as they land


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return mini.ensure_data(tmp_path_factory.mktemp("mini"), 5, SMALL)


@pytest.mark.parametrize("task", TASKS)
def test_gold_against_itself_scores_100(task, folder, tmp_path):
    gold, predictions = FORMATS[task](folder, tmp_path)
    scores = score(task, str(gold), str(predictions))
    assert scores
    assert set(scores.values()) == {100.0}, scores


@pytest.mark.parametrize("task", TASKS)
def test_the_readers_take_the_files_that_the_page_names(task, folder):
    cfg = pages.compose([f"task={task}", "scale=mini", f"scale.folder={folder}", f"cache_root={folder}/cache"])
    splits = instantiate(cfg.task.reader).load()
    if task == "squad":
        expected = [len(re.findall('"question":', (folder / f"squad/{s}-v1.1.json").read_text())) for s in SPLITS]
    else:
        expected = SMALL[SIZES.get(task) or task]
    if task in ("srl", "sst5"):  # a row a predicate, a labelled phrase
        assert all(len(splits[split]) >= n for split, n in zip(SPLITS, expected, strict=True))
    else:
        assert [len(splits[split]) for split in SPLITS] == expected
