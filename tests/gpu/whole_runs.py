"""Whole runs on a device, by the command that users type: how long a step takes there, beside the step measured alone.

Each trains some batches and scores dev and test. What a step of it takes beyond the measured one is what the device
waits for: batches, copies, averages, Lightning.
"""

import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from elmo_bench.records import store
from elmo_bench.records.record import Record
from elmo_bench.running import unfinished
from elmo_bench.system import processes
from tests.fakes import table

COLD, RESUMED = "cold", "resumed"
RUNS: dict[str, str] = dict(
    table("""
    squad         | task=squad
    squad-cold    | task=squad cold
    squad-bf16    | task=squad trainer.precision=bf16-mixed
    srl           | task=srl
    srl-bf16      | task=srl trainer.precision=bf16-mixed
    snli          | task=snli
    snli-16       | task=snli trainer.precision=16-mixed
    coref-resumed | task=coref resumed trainer.deterministic=true
    squad-tf32    | task=squad trainer.tf32=true
    snli-tf32     | task=snli trainer.tf32=true
""")
)


def names(kind: str) -> list[str]:
    """The runs that a kind of device can do."""
    return [name for name in RUNS if kind == "cuda" or not name.endswith("-16")]


def measured(name: str, kind: str, data: Sequence[str], batches: int) -> dict[str, Any]:
    """The figures of a run of so many batches; of one that is resumed, whether it equals an undisturbed one.

    Raises:
        subprocess.CalledProcessError: the command failed.
    """
    epochs = 2 if RESUMED in RUNS[name] else 1
    own = [*data, *(key for key in RUNS[name].split() if "=" in key), f"task.fit.epochs={epochs}",
           f"trainer.accelerator={kind}", f"trainer.limit_batches={batches}", "trainer.progress=false"]  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        if COLD in RUNS[name]:
            own.append(f"cache_root={folder}/cache")
        started = time.monotonic()
        record = _trained(own, Path(folder, "whole"))
        wall = time.monotonic() - started
        figures = {
            "run": name,
            "seconds_a_step": sum(record.history["training_seconds"]) / record.updates,
            "tokens_a_second": record.tokens_per_second,
            "seconds_before_and_after": wall - sum(record.history["seconds"]),
            "peak_mib": getattr(record, "device_peak_memory_mib", None) or record.peak_memory_mib,
            "loss": record.history["loss"][-1],
        }
        if RESUMED in RUNS[name]:
            _kill_after_an_epoch(own, Path(folder, "killed"))
            again = _trained(own, Path(folder, "killed"))
            figures["same"] = (again.history["loss"], again.metrics) == (record.history["loss"], record.metrics)
    return figures


def _command(own: Sequence[str], results: Path) -> list[str]:
    return processes.python("elmo_bench", "train", *own, f"results_root={results}")


def _trained(own: Sequence[str], results: Path) -> Record:
    subprocess.run(_command(own, results), check=True, capture_output=True, text=True)
    (path,) = (results / "runs").rglob("*.json")
    return store.read(path)


def _kill_after_an_epoch(own: Sequence[str], results: Path) -> None:
    """The run is killed as soon as its first epoch is kept."""
    process = subprocess.Popen(_command(own, results), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None and not [*results.rglob(unfinished.LAST)]:
        time.sleep(0.05)
    process.kill()
    process.wait()
