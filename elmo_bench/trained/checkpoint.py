"""Reading the checkpoint of a trained model, to apply it to new text."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from elmo_bench.configuration import stored
from elmo_bench.configuration.keys import shape, valid
from elmo_bench.configuration.schema import Plain
from elmo_bench.system.errors import UserError
from elmo_bench.text.vocabulary import Vocabulary

REMEDY = "train the run again with force=true"


def load(checkpoint: str, remedy: str = REMEDY, task: str | None = None) -> dict[str, Any]:
    """A checkpoint of elmo_bench, with parts of the types that training gives them; nothing in it is executed.

    Args:
        checkpoint: its path.
        remedy: what to do if it is damaged, as the end of the message.
        task: the one that the user has typed: its files may name code outside this project (`stored.check`).

    Raises:
        UserError: any other file; one of another task; one whose configuration is more than plain values, or names
            code that no configuration file names.
    """
    from elmo_bench.system.storage.integrity import load_checkpoint

    if not Path(checkpoint).is_file():
        raise UserError("no such checkpoint; a run's record gives its path, relative to results_root", checkpoint)
    with open(checkpoint, "rb") as file:
        if file.read(2) != b"PK":  # as `torch.save` begins an archive
            raise UserError(f"not a checkpoint of elmo_bench, or damaged; {remedy}", checkpoint)
    saved = load_checkpoint(checkpoint, remedy)
    _check_parts(saved, checkpoint)
    config = saved["hyper_parameters"]["config"]
    stored.check(config, checkpoint, task)
    if task not in (None, config["task"]["name"]):
        raise UserError(f"a model of task {config['task']['name']}, and not of task={task}", checkpoint)
    _check_version(config["task"], checkpoint)
    return saved


def _check_parts(saved: Any, checkpoint: str) -> None:
    """Raises `UserError` if a part is missing or of another type than training gives it."""
    from torch import Tensor

    config = shape(task=shape(name=str), elmo=Plain, bilm=Plain)
    parts = shape(
        hyper_parameters=shape(config=config), state_dict=dict[str, Tensor], vocabularies=dict[str, Any],
        bilm_sha256=str | None, history=(list[Plain], []),
    )  # fmt: skip
    try:
        valid(parts, saved)
        for state in saved["vocabularies"].values():
            Vocabulary.restore(state)
    except (UserError, LookupError, TypeError, AttributeError, ValueError) as error:
        reason = f"not a checkpoint of elmo_bench: other parts, or of other types ({error})"
        raise UserError(reason, checkpoint) from None


def _check_version(task: Mapping[str, Any], checkpoint: str) -> None:
    from elmo_bench.configuration import pages

    trained, ours = task.get("version", 1), pages.version(task["name"])
    if trained != ours:
        raise UserError(
            f"trained by version {trained} of task {task['name']}; this is version {ours}, which computes something "
            "else: train it again, or use the code of its record's commit",
            checkpoint,
        )
