"""`sweep` with a stand-in for `train` that imports nothing large: `python -m tests.pretend CONF sweep KEY=VALUE ...`.

The stand-in goes from epoch to epoch, goes on where it was ended, and writes a record whose scores follow from all of
them.
"""

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from elmo_bench.commands.run import Sweep
from elmo_bench.configuration import composing, schema
from elmo_bench.records import store
from elmo_bench.records.record import Record, label, run_name
from elmo_bench.records.settings import Identity
from elmo_bench.sweeps import local
from elmo_bench.system import console, places
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage.files import write_text
from elmo_bench.system.storage.locks import held

EPOCH = 0.05  # seconds
RECORD = """
{"task": "toy", "scale": "open", "version": 1, "epoch": 1, "epochs": 1, "updates": 1, "selected_updates": 1,
 "layer_weights": {}, "gamma": {}, "seconds": 1.0, "device_seconds": 1.0, "tokens_per_second": 1.0, "parameters": 1,
 "checkpoint": "", "bilm": {"name": null, "sha256": null}, "word_vectors": null, "data_sha256": "",
 "generated_sha256": {}, "machine": {"cpu": "", "accelerator": "cpu", "cores": 1, "threads": 1}, "versions": {},
 "commit": null, "dirty": null, "finished": "2026-01-01"}
"""


def train() -> None:
    """A run of the toy task."""
    run = composing.run_config([one for one in sys.argv[1:] if not one.startswith("hydra.")])
    if run.elmo.layers == 7:
        raise UserError("elmo.layers=7: the biLM's layers are 0 (tokens) to 2")
    identity = Identity(run)
    names = run.results_root, run.scale.name, run.task.name, identity.run
    changes = run.variant
    print(f"{run_name('toy', 'open', label(run.elmo.where, changes), run.seed)}: training", flush=True)
    with held(store.work(*names), "another process is training this run", wait=True):  # as `launch.train`
        score = sum(_epochs(store.work(*names) / "epochs.json", run.task.fit.epochs, int(identity.run, 16)))
    named = {"arm": run.arm, "variant": changes, "seed": run.seed, "run": identity.run, "group": identity.group}
    store.write(store.place(*names), Record(**named, settings=identity.settings, **_measured(run, float(score))))


def _measured(run: schema.RunConfig, score: float) -> dict[str, Any]:
    """The rest of a record."""
    return json.loads(RECORD) | {
        "metrics": {split: {"accuracy": score} for split in ("dev", "test")},
        "history": {"epoch": [0], "updates": [1], "dev.accuracy": [score]},
        "config": {"task": {"monitor": "accuracy"}, "scale": {"note": ""}, "elmo": {"where": run.elmo.where}},
    }


def _epochs(path: Path, number: int, start: int) -> list[float]:
    """A score of every epoch, each of which follows from the one before."""
    scores: list[float] = json.loads(path.read_text()) if path.exists() else [start % 97]
    while len(scores) <= number:
        time.sleep(EPOCH)
        scores.append(scores[-1] * 31 % 97)
        write_text(path, json.dumps(scores))
    return scores


def run(conf: Path, name: str, arguments: Sequence[str]) -> None:
    """`sweep`, or the stand-in for `train`, with the files in a folder."""
    places.CONF = conf
    sys.argv = [name, *arguments]
    local.TRAIN = [sys.executable, "-m", "tests.pretend", str(conf), "train"]
    if name == "sweep":
        Sweep.main()
    else:
        console.report(train)


if __name__ == "__main__":
    run(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])
