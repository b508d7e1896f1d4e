"""The paper's comparison: whatever data, vectors or model are used, its two arms stand in the row of their task."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from elmo_bench.configuration import composing
from elmo_bench.records import store
from elmo_bench.records.record import label
from elmo_bench.reporting import report as page
from elmo_bench.reporting import score_tables
from elmo_bench.reporting.gains import Outcome, by_scale
from elmo_bench.reporting.report import answer
from elmo_bench.running.launch import train
from elmo_bench.system import places
from tests.fakes import SPLITS, put
from tests.records.test_records import fake
from tests.reference_bilm import write_random

pytestmark = pytest.mark.slow

# Made-up files in the official formats: the overrides that name them.


def folder_of(folder: Path, texts: dict[str, str]) -> list[str]:
    """A folder with a file for each of the three splits."""
    return [f"task.data.folder={put(folder, texts)}"]


def ner(folder: Path) -> list[str]:
    text = (
        "-DOCSTART- -X- -X- O\n\n" + "Ida NNP I-NP I-PER\nsang VBD I-VP O\n\nin IN I-PP O\nRoma NNP I-NP I-LOC\n\n" * 2
    )
    return folder_of(folder, dict.fromkeys(("eng.train", "eng.testa", "eng.testb"), text))


def squad(folder: Path) -> list[str]:
    answers = [{"text": "Roma", "answer_start": 12}]
    articles = [
        {"title": name, "paragraphs": [{"context": "Ida sang in Roma . It was far .", "qas": [
            {"id": name, "question": "Where did Ida sing?", "answers": answers}
        ]}]}
        for name in "ab"
    ]  # fmt: skip
    text = json.dumps({"version": "1.1", "data": articles})
    folder_of(folder, {f"{split}.json": text for split in SPLITS})
    return [f"{'+' if split == 'dev' else ''}task.data.{split}={folder}/{split}.json" for split in SPLITS]


DATA = {"ner": ner, "squad": squad}
WORDS = "Ida ida Bell bell sang in Roma roma well was she . rain where far".split()


@pytest.mark.usefixtures("one_thread")
def test_the_papers_own_files_fill_the_rows_of_their_tasks(tmp_path, monkeypatch):
    """Files in a folder of the user's, the official layout of the biLM, and word vectors other than the paper's."""
    conf = shutil.copytree(places.CONF, tmp_path / "conf")
    for path in conf.glob("task/*/paper.yaml"):  # a single epoch, which is no change to the page
        path.write_text(re.sub(r"epochs: \d+", "epochs: 1", path.read_text()))
    monkeypatch.setattr(places, "CONF", conf)
    monkeypatch.delenv("WANDB_API_KEY", raising=False)
    bilm = write_random(tmp_path / "bilm")
    vectors = tmp_path / "vectors" / "glove.6B.50d.txt"
    vectors.parent.mkdir()
    random = np.random.default_rng(1)
    vectors.write_text("".join(f"{word} {' '.join(f'{x:.3f}' for x in random.normal(size=50))}\n" for word in WORDS))
    shared = [
        "scale=paper", "vectors=glove.6B.50d", "trainer=cpu", f"bilm.options={bilm.options}",
        f"bilm.weights={bilm.weights}", f"vectors_root={vectors.parent}", f"cache_root={tmp_path}/cache",
        f"results_root={tmp_path}/results",
    ]  # fmt: skip
    for task, write in DATA.items():
        given = [f"task={task}", *shared, *write(tmp_path / "data" / task)]
        for arm in ("baseline", "elmo"):
            record = train(composing.compose([*given, f"arm={arm}"]))
            assert (record.arm, record.variant) == (arm, {"vectors": "glove.6B.50d"}), task
    (table,) = score_tables.overview(by_scale(store.read_all(tmp_path / "results")))
    assert [remark[:4] for remark in table.remarks] == ["N ↑:"]  # of one epoch the last is the best
    assert {row[0] for row in table.rows} == {*DATA}
    page.refresh(tmp_path / "results")
    rows = json.loads((tmp_path / "results" / "report.json").read_text())["answer"]["tables"][0]["rows"]
    for (name, _, named, without, with_elmo, gain, _), shown in zip(table.rows, rows, strict=True):
        assert named == "glove.6B.50d"
        assert without.endswith("(1; 1 ↑)")
        assert with_elmo.endswith("(1; 1 ↑)")
        assert gain
        assert (shown[0], shown[1]["text"]) == (name, gain.partition(" ")[0])


# Labels.


ELSEWHERE = "task.data.folder=/a/b data_root=/c vectors_root=/d cache_root=/e models_root=/f".split()


@pytest.mark.parametrize(
    "given, expected",
    [
        (["scale=paper", *ELSEWHERE], "+ELMo (input)"),
        (["scale=paper", "vectors=glove.6B.50d", *ELSEWHERE], "+ELMo (input; glove.6B.50d vectors)"),
        (["scale=paper", "vectors=glove.6B.50d", "elmo.where=none"], "baseline (glove.6B.50d vectors)"),
        (["scale=paper", "vectors=page", "task.words.path=/x/mine.txt"], "+ELMo (input; mine.txt vectors)"),
        ("scale=open data_root=/c bilm=transformers bilm.path=/x/bert-tiny".split(), "+ELMo (input; biLM bert-tiny)"),
    ],
)
def test_a_label_names_content_and_no_place_or_python_path(given, expected):
    run = composing.run_config(["task=ner", *given])
    assert label(run.elmo.where, run.variant) == expected


# Tables of made-up records.


def arm(where: str, f1: float, vectors: str | None = None, **more):
    """A run of an arm; `vectors` other than those of the scale's configuration."""
    bilm = more.get("bilm", {}).get("name", "open")
    changes = ({"vectors": vectors} if vectors else {}) | ({"bilm": bilm} if bilm != "open" else {})
    record = fake(where, more.pop("seed", 1), f1, group=f"{where}-{vectors}", variant=changes, **more)
    record.config["vectors"] = {"source": "sets", "sets": {"glove": {"name": "glove.6B.50d"}}}
    return replace(record)


def test_random_vectors_are_a_control_below_the_papers_comparison():
    scores = {("none", "random"): 50.0, ("input", "random"): 70.0, ("none", None): 65.0, ("input", None): 72.0}
    records = [arm(where, f1 + n, vectors, seed=n) for (where, vectors), f1 in scores.items() for n in (1, 2)]
    main, control = score_tables.overview(by_scale(records))
    assert [row[2:5] for row in main.rows] == [("glove.6B.50d", "66.50 ± 0.71 (2)", "73.50 ± 0.71 (2)")]
    assert [row[2:5] for row in control.rows] == [("random", "51.50 ± 0.71 (2)", "71.50 ± 0.71 (2)")]
    assert control.title == "all tasks, scale open, without pre-trained word vectors"
    assert [row[:2] for row in score_tables.gains_of(Outcome(records))[0].rows] == [  # no arm beside other vectors
        ("+ELMo (input), biLM open", "baseline"),
        ("+ELMo (input; random vectors), biLM open", "baseline (random vectors)"),
    ]
    (answered,) = answer(by_scale(records)).tables[0].rows
    assert answered[1] == "+7.00"


def test_the_papers_figures_stand_beside_its_comparison_alone(monkeypatch):
    monkeypatch.setattr(score_tables, "read_all", lambda *place: [])
    (table,) = score_tables.beside([arm("none", 65.0), arm("input", 72.0), arm("input", 7.0, "random")])
    paper = {"baseline": "90.15", "+ELMo (input)": "92.22 ± 0.1", "gain of +ELMo": "+2.07"}
    assert {row[0]: row[-1] for row in table.rows} == paper | {"+ELMo (input; random vectors)": ""}
    assert table.rows[-1][2] == "+7.00"
