"""Accuracy, the metric of SNLI and SST-5: of predictions and of files, and what is said of files that do not fit."""

import pytest

from elmo_bench.metrics.accuracy import Accuracy, score_labels
from elmo_bench.text.labels import Labels
from elmo_bench.text.source import DataSource
from tasks.snli import metric as snli
from tasks.snli.pairs import LABELS as SNLI_LABELS
from tasks.sst5 import metric as sst5
from tasks.sst5.trees import LABELS as SST5_LABELS
from tests.fakes import cases, refuses

LABELS = ("yes", "no", "maybe")


@pytest.fixture
def files(tmp_path):
    def write(gold: str, predictions: str):
        (tmp_path / "gold").write_text(gold)
        (tmp_path / "predictions").write_text(predictions)
        return tmp_path / "gold", tmp_path / "predictions", Labels(LABELS), DataSource({}), list

    return write


def test_rows_without_a_gold_label_are_left_out():
    metric = Accuracy()
    metric.update(["yes", "no"], [{"label": "yes"}, {"label": "-"}])
    metric.update(["no", "no", 0], [{"label": None}, {"label": "maybe"}, {"label": 0}])
    assert metric.compute() == {"accuracy": pytest.approx(200 / 3)}


def test_two_files_a_label_a_line(files):
    assert score_labels(*files("yes\nno\n-\nmaybe\n", "yes\nyes\nno\nmaybe\n"))["accuracy"] == pytest.approx(200 / 3)
    assert score_labels(*files("yes\r\nno", '"yes"\n"no"\n')) == {"accuracy": 100.0}
    assert score_labels(*files("-\nno\n", "-\nno\n")) == {"accuracy": 100.0}  # whatever stands where nothing is gold


@cases(r"""
    gold          | predictions     | where         | what
    "yes\nsure\n" | "yes\nno\n"     | gold:2        | 'sure'
    "yes\nno\n"   | "yes\n-\n"      | predictions:2 | '-'
    "yes\n\nno\n" | "yes\nno\nno\n" | gold:2        | no label
    "yes\nno\n"   | "yes\n"         | predictions:2 | 1 lines where
    "-\n-\n"      | "yes\nno\n"     | gold          | no gold label
""")
def test_files_that_do_not_fit_are_refused_with_their_line(files, gold, predictions, where, what):
    with refuses(what) as caught:
        score_labels(*files(gold, predictions))
    assert f"{where}: " in str(caught.value)


@pytest.mark.parametrize(
    "task, labels, known",
    [(snli, ("entailment", "neutral", "contradiction"), SNLI_LABELS), (sst5, ("0", "1", "2", "3", "4"), SST5_LABELS)],
)
def test_each_task_has_its_labels(files, task, labels, known):
    """Those of SNLI in the order of the hub's numbers."""
    assert labels == known
    gold, predictions, *_ = files("\n".join([*labels, "-"]), "\n".join([labels[0]] * (len(labels) + 1)))
    assert task.score(gold, predictions) == {"accuracy": pytest.approx(100 / len(labels))}
    with refuses(f"gold:2: unknown label 'maybe'; choose from {', '.join(labels)}"):
        task.score(*files(f"{labels[0]}\nmaybe\n", f"{labels[0]}\n{labels[1]}\n")[:2])
