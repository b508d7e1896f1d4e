"""Data sets from the Hugging Face hub, with one clear error where it cannot be reached."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from elmo_bench.system.errors import UserError
from elmo_bench.system.places import expanded

if TYPE_CHECKING:
    from datasets import DatasetDict


def obtainable(name: str) -> bool:
    """Whether the hub may be asked for a data set, or the local cache has it. Asks nothing of the hub."""
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
        revision: a branch, tag or commit; "refs/convert/parquet" holds the data of old script-only data sets.
        configuration: one of its configurations.
        hint: what the user can do instead, for the error message.
    """
    import datasets

    with _offline_unless_reachable() as reachable:
        try:
            return datasets.load_dataset(name, configuration, revision=revision)  # type: ignore[return-value]
        except Exception as error:  # anything outside can fail: the network, the hub, its cache
            why = f"{type(error).__name__}: {error}" if reachable else "no connection, and it is not in the local cache"
            raise UserError(f"the data set {name} could not be loaded from the hub ({why}); {hint}") from error


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
