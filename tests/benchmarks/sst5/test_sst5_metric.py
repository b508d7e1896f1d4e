"""SST-5's accuracy, and `score` of two files."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from elmo_bench.system import places
from elmo_bench.system.errors import UserError
from tasks.sst5.metric import Sst5Metric, score


def test_accuracy_of_predicted_labels():
    metric = Sst5Metric()
    metric.update([0, 4, 2, 1], [{"label": 0}, {"label": 3}, {"label": 2}, {"label": 1}])
    assert metric.compute() == {"accuracy": 75.0}


def test_files_of_labels(tmp_path):
    gold, predictions = tmp_path / "gold", tmp_path / "predictions"
    gold.write_text("0\n4\n-\n2\n")
    predictions.write_text("0\n3\n1\n2\n")
    assert score(gold, predictions) == {"accuracy": pytest.approx(200 / 3)}
    predictions.write_text("0\n5\n1\n2\n")
    with pytest.raises(UserError, match="unknown label '5'; choose from 0, 1, 2, 3, 4") as caught:
        score(gold, predictions)
    assert caught.value.line == 2


def test_the_command_prints_one_json_object_and_loads_no_torch(tmp_path):
    (tmp_path / "gold").write_text("0\n4\n")
    probe = (
        "import sys; from elmo_bench import __main__; sys.argv[1:1] = ['score', 'task=sst5']; __main__.main(); "
        "assert not {'torch', 'datasets'} & set(sys.modules)"
    )
    command = [sys.executable, "-c", probe, f"gold={tmp_path}/gold", f"predictions={tmp_path}/gold"]
    done = subprocess.run(command, cwd=places.ROOT, capture_output=True, text=True, timeout=120)
    assert json.loads(done.stdout) == {"accuracy": 100.0}, done.stderr
