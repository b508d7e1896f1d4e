"""The files for resuming an unfinished run, verified first so that nothing else enters its record."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from elmo_bench.records import items, store
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage.integrity import check_archive, load_checkpoint

LAST, BEST = "last.ckpt", "best.ckpt"  # in a run's work folder
MADE = LAST, BEST, items.DEV, items.PREDICTIONS
JOB = "SLURM_JOB_ID"  # stays the same when Slurm queues the job again
REMEDY = items.RESTART
PARTS = {"state_dict": dict, "history": list, "loops": dict, "optimizer_states": list, "lr_schedulers": list}


def check_place(folder: Path) -> None:
    """Raises `UserError` for anything else in the work folder, such as a pipe, or a folder with the name of a file."""
    for path in folder.rglob("*"):
        if path.exists() and not path.is_file() and (path.name in (*MADE, store.AGAIN) or not path.is_dir()):
            raise UserError("neither a file nor a folder of a run; move it away", path)


def check(folder: Path) -> int:
    """The number of epochs that an unfinished run has completed; 0 if it has no checkpoint."""
    last = folder / LAST
    if not last.exists():
        return 0
    saved = load_checkpoint(last, REMEDY)
    try:
        epochs, run = len(saved["history"]), saved["callbacks"]["KeepBest"].get("run", folder.name)
        if not all(isinstance(saved[key], kind) for key, kind in PARTS.items()) or not epochs:
            raise TypeError
        [float(epoch["seconds"]) for epoch in saved["history"]]
    except (KeyError, TypeError, AttributeError, ValueError):
        raise UserError(f"not a checkpoint of a run; {REMEDY}", last) from None
    if run != folder.name:  # unknown in checkpoints of earlier versions
        raise UserError(f"a checkpoint of another run, {run}; {REMEDY}", last)
    check_archive(folder / BEST, REMEDY)
    items.read(folder / items.DEV, REMEDY)
    return epochs


def best(folder: Path, history: Sequence[dict[str, Any]] | None) -> dict[str, Any]:
    """The checkpoint of the best epoch.

    Args:
        folder: the run's work folder.
        history: the epochs up to the best one, which identify the checkpoint; None: not compared.
    """
    saved = load_checkpoint(folder / BEST, REMEDY)
    if history is not None and saved.get("history") != history:
        raise UserError(f"not the checkpoint of this run's best epoch; {REMEDY}", folder / BEST)
    return saved


def start_anew(folder: Path) -> None:
    """Removes the files of an unfinished run, and notes that it is trained again, and the Slurm job."""
    for part in MADE:
        (folder / part).unlink(missing_ok=True)
    for logged in ("csv", "wandb"):
        shutil.rmtree(folder / logged, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / store.AGAIN).write_text(os.environ.get(JOB, ""))


def is_restarted(folder: Path) -> bool:
    """Whether Slurm has queued this process's job again, and the run was started again in that job."""
    again, job = folder / store.AGAIN, os.environ.get(JOB)
    return "SLURM_RESTART_COUNT" in os.environ and again.is_file() and again.read_text() == job
