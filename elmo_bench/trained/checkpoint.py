"""Reading the checkpoint of a trained model, to apply it to new text."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from elmo_bench.configuration import code
from elmo_bench.system.errors import UserError

AGAIN = "train the run again with force=true"


def load(checkpoint: str, remedy: str = AGAIN) -> dict[str, Any]:
    """A checkpoint of elmo_bench; nothing in it is executed, nor does it name code that pages of conf/ do not.

    Raises:
        UserError: any other file; if it is damaged, `remedy` ends the message.
    """
    from elmo_bench.system.storage.integrity import load_checkpoint

    if not Path(checkpoint).is_file():
        raise UserError("no such checkpoint; a run's record gives its path, relative to results_root", checkpoint)
    if not _is_archive(checkpoint):
        raise UserError(f"not a checkpoint of elmo_bench, or damaged; {remedy}", checkpoint)
    saved = load_checkpoint(checkpoint, remedy)
    config = saved.get("hyper_parameters", {}).get("config", {})
    if not {"task", "elmo", "bilm"} <= set(config) or not {"vocabularies", "state_dict", "bilm_sha256"} <= set(saved):
        raise UserError("not a checkpoint of elmo_bench (other keys)", checkpoint)
    code.check(config, checkpoint)
    _check_version(config["task"], checkpoint)
    return saved


def _is_archive(path: str) -> bool:
    """Whether a file begins as `torch.save` begins one."""
    with open(path, "rb") as file:
        return file.read(2) == b"PK"


def _check_version(task: Mapping[str, Any], checkpoint: str) -> None:
    from elmo_bench.configuration import pages

    trained, ours = task.get("version", 1), pages.version(task["name"])
    if trained != ours:
        raise UserError(
            f"trained by version {trained} of task {task['name']}; this is version {ours}, which computes something "
            "else: train it again, or use the code of its record's commit",
            checkpoint,
        )
