"""From a trained model to answers over raw paragraphs, and to the file that the official evaluation reads."""

import json

import pytest

from elmo_bench.commands.use.predict import predict
from elmo_bench.configuration import pages
from elmo_bench.running.launch import train
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage.hashing import sha256
from tests.benchmarks.test_contract import SIZES


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A checkpoint of one epoch on a few generated paragraphs, and the record."""
    folder = tmp_path_factory.mktemp("squad")
    record = train(
        pages.compose([
            "task=squad", "scale=mini", f"scale.folder={folder}/mini", f"scale.sizes={SIZES}", "arm=baseline",
            "task.fit.epochs=1", "task.head.hidden=8", "trainer=cpu",
            f"results_root={folder}/results", f"cache_root={folder}",
        ])
    )  # fmt: skip
    return folder, record


def test_raw_paragraphs(trained, tmp_path):
    folder, record = trained
    assert record.generated_sha256["test"] == sha256(folder / "mini" / "squad" / "test-v1.1.json")
    context = "Ida \u201cBell\u201d sold a cart.  Tarvel  didn't."
    asked = [{"context": context, "question": "Who sold?"}, {"context": "x", "question": "What?", "id": "q2"}]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in asked))
    checkpoint = str(folder / "results" / record.checkpoint)
    assert predict(checkpoint, str(tmp_path / "in.jsonl"), str(tmp_path / "out.jsonl")) == 2
    first, second = map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines())
    answer = first["prediction"]
    assert context[answer["start"] : answer["end"]] == answer["answer"]
    assert 0 <= answer["score"] <= 1
    predicted = {"id": "q2", "answer": "x", "start": 0, "end": 1, "score": 1.0}
    assert second == asked[1] | {"prediction": predicted}
    long = "Ida sold a cart. " * 500  # 2,500 words, in windows of 1,000
    (tmp_path / "in.jsonl").write_text(json.dumps({"context": long, "question": "Who sold?"}) + "\n")
    assert predict(checkpoint, str(tmp_path / "in.jsonl"), str(tmp_path / "out.jsonl"), batch_size=4) == 1
    answer = json.loads((tmp_path / "out.jsonl").read_text())["prediction"]
    assert long[answer["start"] : answer["end"]] == answer["answer"]
    (tmp_path / "in.jsonl").write_text('{"context": "", "question": "What?"}\n')
    with pytest.raises(UserError, match=r"in\.jsonl:1: the context is empty"):
        predict(checkpoint, str(tmp_path / "in.jsonl"), str(tmp_path / "out.jsonl"))
