"""Data sets and models from the Hugging Face hub, and uploads, with one clear error if it cannot be reached."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from elmo_bench.system.errors import UserError
from elmo_bench.system.places import expanded

if TYPE_CHECKING:
    from datasets import DatasetDict


def obtainable(name: str) -> bool:
    """Whether the hub may be asked for a data set, or the local cache has it. Does not contact the hub."""
    from huggingface_hub import constants  # not `datasets`, which takes seconds to import

    asked = os.environ.get("HF_DATASETS_OFFLINE", "").upper() not in constants.ENV_VARS_TRUE_VALUES
    cache = expanded(os.environ.get("HF_DATASETS_CACHE") or Path(constants.HF_HOME, "datasets"))
    return (asked and not constants.HF_HUB_OFFLINE) or (cache / name.replace("/", "___")).is_dir()


def load_from_hub(
    name: str, revision: str | None = None, configuration: str | None = None, hint: str = ""
) -> DatasetDict:
    """All splits of a data set from the hub, or from its local cache if there is no network.

    Args:
        name: "owner/name".
        revision: a branch, tag or commit; "refs/convert/parquet" has the data of old script-only data sets.
        configuration: one of its configurations.
        hint: the user's alternative, for the error message.
    """
    import datasets

    with _offline_unless_reachable() as reachable:
        try:
            return datasets.load_dataset(name, configuration, revision=revision)  # type: ignore[return-value]
        except Exception as error:  # the network, the hub and its cache can fail in many ways
            why = f"{type(error).__name__}: {error}" if reachable else "no connection, and it is not in the local cache"
            raise UserError(f"the data set {name} could not be loaded from the hub ({why}); {hint}") from error


OF_MODELS = ["*.json", "*.hdf5", "*.safetensors", "*.txt", "*.ckpt"]  # the files fetched of a model


def is_model(name: str) -> bool:
    """Whether this can only be the name of a model on the hub, "owner/name": there is no such local path."""
    two = re.fullmatch(r"[\w-][\w.-]*/[\w.-]+", name) and not name.endswith((".ckpt", ".json"))
    return bool(two) and not Path(name).exists() and not Path(name).parent.exists()


def model_folder(name: str) -> Path:
    """The folder of a model, a biLM or a trained head, from the hub or its local cache."""
    from huggingface_hub import snapshot_download

    with _offline_unless_reachable() as reachable:
        try:
            return Path(snapshot_download(name, allow_patterns=OF_MODELS))
        except Exception as error:  # as in `load_from_hub`
            why = f"{type(error).__name__}: {error}" if reachable else "no connection, and it is not in the local cache"
            raise UserError(f"{name}: there is no such folder here, and the hub gave no such model ({why})") from error


def upload(files: Mapping[str, bytes | Path], repo: str, private: bool = False) -> str:
    """Uploads files to a model on the hub, which is created if necessary; returns its address."""
    from huggingface_hub import CommitOperationAdd, HfApi, constants

    if not _reachable():
        raise UserError(f"the hub {constants.ENDPOINT} cannot be reached, so nothing is published")
    try:
        made = HfApi().create_repo(repo, private=private, exist_ok=True)
        added = [CommitOperationAdd(name, content) for name, content in files.items()]
        HfApi().create_commit(made.repo_id, added, commit_message="A trained head, by elmo_bench")
    except Exception as error:
        reason = getattr(error, "server_message", None) or str(error).partition("\n")[0]
        raise UserError(f"{repo}: the hub refuses ({reason}); `hf auth login` or HF_TOKEN says who you are") from error
    return str(made)


@contextmanager
def _offline_unless_reachable() -> Iterator[bool]:
    """Goes offline if the hub does not answer: its clients would retry for half a minute before using the cache."""
    import datasets.config
    import huggingface_hub.constants

    before = huggingface_hub.constants.HF_HUB_OFFLINE, datasets.config.HF_HUB_OFFLINE
    reachable = not any(before) and _reachable()
    if not reachable:
        huggingface_hub.constants.HF_HUB_OFFLINE = datasets.config.HF_HUB_OFFLINE = True
    try:
        yield reachable
    finally:
        huggingface_hub.constants.HF_HUB_OFFLINE, datasets.config.HF_HUB_OFFLINE = before


def _reachable(seconds: float = 5.0) -> bool:
    """One quick request to the hub, through the user's proxy if there is one."""
    from huggingface_hub import constants, get_session

    try:
        get_session().head(constants.ENDPOINT, timeout=seconds)
    except Exception:  # no name service, no route, a proxy that refuses, no answer in time
        return False
    return True
