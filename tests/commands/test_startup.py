"""What makes an answer quick: help, an error and a recorded run load nothing that trains."""

import json
import shutil
import subprocess
import sys

import pytest

from elmo_bench.configuration import pages, schema
from elmo_bench.identity.identity import Identity
from elmo_bench.records import store
from elmo_bench.system import places
from tests.conftest import PATIENCE

PROBE = """
import json, sys
from elmo_bench import __main__
heavy = {"torch", "pytorch_lightning", "datasets", "pandas", "wandb", "h5py", "gensim", "matplotlib", "scipy"}
loaded = {}
for what, arguments in json.loads(sys.argv[1]).items():
    sys.argv = ["elmo-bench", "train", *arguments]
    try:
        __main__.main()
    except SystemExit as end:
        loaded[f"status of {what}"] = end.code
    loaded[what] = sorted(heavy & set(sys.modules))
print(json.dumps(loaded))
"""


@pytest.mark.slow
def test_help_errors_and_recorded_runs_load_nothing_that_trains(tmp_path):
    chosen = ["task=ner", f"results_root={tmp_path}", "seed=1"]
    path = store.place(tmp_path, "mini", "ner", Identity(schema.typed(pages.compose(chosen))).run)
    path.parent.mkdir(parents=True)
    shutil.copy(places.ROOT / "results" / "runs" / "mini" / "ner" / path.name, path)
    calls = {"help": ["--help"], "a wrong key": ["sed=1"], "a wrong page": ["task=nre"], "a recorded run": chosen}
    done = subprocess.run(
        [sys.executable, "-c", PROBE, json.dumps(calls)],
        cwd=places.ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert "not run again" in done.stdout, done.stderr
    loaded = json.loads(done.stdout.splitlines()[-1])
    assert [loaded[f"status of {what}"] for what in ("a wrong key", "a wrong page")] == [2, 2]
    assert [loaded[what] for what in calls] == [[]] * 4
