"""Checkpoints of trained models, and the heads that come with the project.

There is one head per task, in float16, with a card that contains its sha256.

A head is the part of a run's checkpoint that `predict` needs. It names its biLM relative to `models_root`.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from elmo_bench.configuration import composing, pages, stored
from elmo_bench.configuration.keys import shape, valid
from elmo_bench.configuration.schema import Plain
from elmo_bench.records import store
from elmo_bench.system import places
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage import json_text, outputs
from elmo_bench.system.storage.files import write_bytes, write_text
from elmo_bench.system.storage.integrity import check_digests, digests
from elmo_bench.system.storage.json_text import read_sealed, sealed
from elmo_bench.text.vocabulary import Vocabulary

REMEDY = "train the run again with force=true"


def load(checkpoint: str, remedy: str = REMEDY, task: str | None = None) -> dict[str, Any]:
    """A checkpoint of elmo_bench, with its parts checked by type; nothing in it is executed.

    Args:
        checkpoint: its path.
        remedy: the end of the message if it is damaged.
        task: the task that the user has typed: its files may name code outside this project (`stored.check`).
    """
    from elmo_bench.system.storage.integrity import load_checkpoint

    if not Path(checkpoint).is_file():
        raise UserError("no such checkpoint; a run's record gives its path, relative to results_root", checkpoint)
    with open(checkpoint, "rb") as file:
        if file.read(2) != b"PK":  # the first bytes of an archive by `torch.save`
            raise UserError(f"not a checkpoint of elmo_bench, or damaged; {remedy}", checkpoint)
    saved = load_checkpoint(checkpoint, remedy)
    _check_parts(saved, checkpoint)
    config = saved["hyper_parameters"]["config"]
    stored.check(config, checkpoint, task)
    if task not in (None, config["task"]["name"]):
        raise UserError(f"a model of task {config['task']['name']}, not of task={task}", checkpoint)
    trained, ours = config["task"].get("version", 1), pages.written("task", config["task"]["name"], "version", 1)
    if trained != ours:
        raise UserError(
            f"trained by version {trained} of task {config['task']['name']}; this is version {ours}, which computes "
            "something else: train it again, or use the code of its record's commit",
            checkpoint,
        )
    return saved


def _check_parts(saved: Any, checkpoint: str) -> None:
    """Raises `UserError` if a part is missing or has the wrong type."""
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
        reason = f"not a checkpoint of elmo_bench: wrong parts or types ({error})"
        raise UserError(reason, checkpoint) from None


FOLDER, HEAD, CARD = "heads", "head.ckpt", "card.json"
MODELS = "<models_root>"
TRAINING = "callbacks", "logger"  # blocks that name code of training
RESTORE = "restore it (git checkout), or export it again"
OF_THE_RECORD = ("task", "scale", "arm", "variant", "seed", "version", "run", "bilm", "metrics", "parameters", "commit",
                 "versions")  # fmt: skip


# Writing.


def export(checkpoint: Path, output: Path) -> Path:
    """Writes the head of a finished run and its card, each atomically; returns their folder, `output`/<task>.

    Args:
        checkpoint: best.ckpt in the run's work folder, from which its record is found.
        output: a folder such as models/heads.
    """
    work = checkpoint.absolute().parent
    scale, task, run = ("", "", "", *work.parts)[-3:]
    path = store.place((work / "../../../..").resolve(), scale, task, run)
    if not path.is_file():
        raise UserError(f"its run has no record ({path}); let the run finish, and leave its files in place", checkpoint)
    record = store.read(path)
    saved = load(str(checkpoint), task=record.task)
    history = saved.get("history") or [{}]  # a run trained again writes its checkpoint long before its record
    if history[-1].get("dev") != record.metrics["dev"] or saved["bilm_sha256"] != record.bilm["sha256"]:
        raise UserError(f"not the checkpoint of its record, run {record.run}; {REMEDY}", checkpoint)
    config = {key: value for key, value in record.config.items() if key not in TRAINING}
    stored.check(config, checkpoint, record.task)
    content, folder = _packed(saved, config, checkpoint), output / record.task
    outputs.apart(folder / HEAD, [checkpoint])
    write_bytes(folder / HEAD, content)
    card = {key: getattr(record, key) for key in OF_THE_RECORD}
    card |= {"weights": "float16", "bytes": len(content), "files": digests(folder, [HEAD])}
    write_text(folder / CARD, sealed(json_text.dumps(card, indent=2) + "\n"))
    return folder


def _packed(saved: dict[str, Any], config: dict[str, Any], checkpoint: Path) -> bytes:
    """The file of a head: the record's configuration, without folders of this machine, and weights in float16."""
    import torch

    weights = {name: each.half() if each.is_floating_point() else each for name, each in saved["state_dict"].items()}
    if large := [name for name, each in weights.items() if each.is_floating_point() and not each.isfinite().all()]:
        raise UserError(f"{large[0]}: too large for float16", checkpoint)
    kept = {key: saved[key] for key in ("vocabularies", "bilm_sha256")}
    stream = io.BytesIO()
    torch.save({"hyper_parameters": {"config": config}, "state_dict": weights, **kept}, stream)
    return stream.getvalue()


# Reading.


def read(task: str | None, models_root: str | None = None, folder: Path | None = None) -> dict[str, Any]:
    """The head of a task, in the form of `load`, with the folders of this machine.

    Args:
        task: the name of the task; None: as in the folder's card.
        models_root: the folder with heads/ and the biLMs; None: the configuration's.
        folder: the folder of the head itself, as written by `export_head`; None: the task's folder below models_root.
    """
    folder = folder or find(str(task), models_root)
    card = read_sealed(folder / CARD, "card of a head", RESTORE)
    files = card.get("files")
    if not isinstance(files, dict) or not isinstance(files.get(HEAD), str):  # a head without a digest is not opened
        raise UserError(f"damaged: `files` does not name the sha256 of {HEAD}; {RESTORE}", folder / CARD)
    check_digests(folder, {HEAD: files[HEAD]}, RESTORE)
    saved = load(str(folder / HEAD), RESTORE, task)
    saved["hyper_parameters"]["config"] = _with_folders(
        saved["hyper_parameters"]["config"],
        {f"<{place}>": root for place, root in composing.roots(models_root).items() if root},
        models_root is not None,
    )
    return saved


def find(task: str, models_root: str | None = None) -> Path:
    """The folder of a task's head; as for `read`."""
    pages.page(task)
    folder = folder_of(task, str(composing.roots(models_root)["models_root"]), models_root is not None)
    if not (folder / HEAD).is_file():
        raise UserError(
            f"there is no trained head for task={task}; train one (elmo-bench train task={task} scale=open) and give "
            "its checkpoint=FILE.ckpt, or make it the head with elmo-bench export_head checkpoint=FILE.ckpt",
            folder / HEAD,
        )
    return folder


def folder_of(task: str, models_root: str, typed: bool) -> Path:
    """The folder of a task's head; `typed` says whether the user has written `models_root`."""
    return places.shipped(models_root, FOLDER, typed) / task


def _with_folders(node: Any, folders: dict[str, str], typed: bool) -> Any:
    """Containers with the folders of this machine in place of `<models_root>` and the like."""
    if isinstance(node, dict):
        return {key: _with_folders(value, folders, typed) for key, value in node.items()}
    if isinstance(node, list):
        return [_with_folders(value, folders, typed) for value in node]
    begun = next((mark for mark in folders if isinstance(node, str) and node.startswith(mark)), None)
    if begun is None:
        return node
    rest = node.removeprefix(begun).lstrip("/")
    first, _, below = rest.partition("/")
    folder = places.shipped(folders[begun], first, typed) if begun == MODELS else Path(folders[begun]) / first
    return str(folder / below)
