"""The identity of a run, and its settings without the places of this machine."""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from omegaconf import DictConfig, OmegaConf

from elmo_bench.configuration.composing import ROOTS
from elmo_bench.configuration.schema import Plain, RunConfig
from elmo_bench.identity.settings import settings
from elmo_bench.system.storage.hashing import fingerprint

AROUND = ("hydra", "force", "debug", "table", "typed")  # keys that are no part of a stored configuration


class Identity:
    """The settings that a run's result depends on, and the names derived from them.

    Attributes:
        settings: plain containers, from which the hashes are computed.
        run: 16 hexadecimal digits, the name of the run's record and of its work folder.
        group: the same without the seed: runs with the same group are averaged.
        data: a hash of the data only.
    """

    def __init__(self, run: RunConfig):
        self.settings = plain = settings(run)
        self.run = self.with_seed(run.seed)
        self.group = fingerprint({key: value for key, value in plain.items() if key != "seed"})
        self.data = fingerprint([plain["scale"], plain["task"]["reader"].get("data")], digits=64)

    def with_seed(self, seed: int) -> str:
        """The `run` of the same settings with another seed."""
        return fingerprint(self.settings | {"seed": seed})


class Description(NamedTuple):
    """What is known about a run before it starts.

    Attributes:
        identity: its settings and their hashes.
        arm, variant: baseline or elmo, and what else it changes of its task's configuration.
        config: the resolved configuration, for the checkpoint.
        placeless: the same without paths of this machine, for the record.
    """

    identity: Identity
    arm: str
    variant: dict[str, Any]
    config: Plain
    placeless: Plain


def placeless(cfg: DictConfig) -> Plain:
    """The resolved configuration with `<data_root>` etc., and other absolute paths cut to their last part."""
    cfg = copy.deepcopy(cfg)
    for place in ROOTS:
        cfg[place] = f"<{place}>"
    plain: Any = OmegaConf.to_container(cfg, resolve=True)
    return relative({key: value for key, value in plain.items() if key not in AROUND})


def relative(node: Any) -> Any:
    """Containers with absolute paths cut to their last part: a record names no folder of this machine."""
    if isinstance(node, dict):
        return {key: relative(value) for key, value in node.items()}
    if isinstance(node, list):
        return [relative(value) for value in node]
    return f"<elsewhere>/{Path(node).name}" if isinstance(node, str) and os.path.isabs(node) else node


def flat(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings by dotted key."""
    by_key: dict[str, Any] = {}
    for key, value in settings.items():
        if isinstance(value, Mapping) and value:
            by_key |= flat(value, f"{prefix}{key}.")
        else:
            by_key[f"{prefix}{key}"] = value
    return by_key
