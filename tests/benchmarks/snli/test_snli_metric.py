"""`score` for SNLI: accuracy over the pairs that have a gold label."""

from __future__ import annotations

import pytest

from elmo_bench.commands.compare.score import score
from elmo_bench.system.errors import UserError
from tasks.snli.metric import LABELS, SnliMetric


@pytest.fixture
def files(tmp_path):
    def write(gold: str, predictions: str) -> tuple[str, str]:
        places = tmp_path / "gold.txt", tmp_path / "predictions.txt"
        for path, text in zip(places, (gold, predictions), strict=True):
            path.write_text("".join(f"{label}\n" for label in text.split()))
        return str(places[0]), str(places[1])

    return write


def test_pairs_without_a_gold_label_do_not_count(files):
    gold, predictions = "neutral - entailment contradiction -", "neutral neutral neutral contradiction entailment"
    assert score("snli", *files(gold, predictions)) == {"accuracy": pytest.approx(100 * 2 / 3)}
    metric = SnliMetric()
    metric.update(predictions.split(), [{"label": label} for label in gold.split()])
    assert metric.compute() == {"accuracy": pytest.approx(100 * 2 / 3)}


def test_labels_are_in_the_order_of_the_hub():
    assert LABELS == ("entailment", "neutral", "contradiction")


@pytest.mark.parametrize(
    ("gold", "predictions", "where", "what"),
    [
        ("neutral maybe", "neutral neutral", "gold.txt:2", "unknown label 'maybe'"),
        ("neutral neutral", "neutral Neutral", "predictions.txt:2", "unknown label 'Neutral'"),
        ("neutral neutral", "neutral", "predictions.txt:2", "1 lines"),
        ("- -", "neutral neutral", "gold.txt", "no gold label"),
    ],
)
def test_files_that_do_not_fit_are_named_with_their_line(files, gold, predictions, where, what):
    with pytest.raises(UserError, match=what) as error:
        score("snli", *files(gold, predictions))
    assert f"{where}: " in str(error.value)
