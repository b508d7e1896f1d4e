"""The identity of a run, and the check that the files it names exist."""

from __future__ import annotations

import copy
import json
import os
from pathlib import Path
from typing import Any, NamedTuple

from omegaconf import DictConfig, OmegaConf

from elmo_bench.configuration.schema import Plain, RunConfig
from elmo_bench.experiment.settings import data_folder, settings
from elmo_bench.system import places
from elmo_bench.system.errors import UserError
from elmo_bench.system.hashing import fingerprint

PLACES = ("data_root", "models_root", "cache_root", "results_root")


class Identity:
    """The settings that a run's result depends on, and the names derived from them.

    Attributes:
        settings: plain containers, from which the hashes are computed.
        run: 16 hexadecimal digits, the name of the run's record and of its work folder.
        group: the same without the seed: runs with the same group are averaged.
        data: a hash of the data only.

    Raises:
        UserError: a file that the configuration names is missing.
    """

    def __init__(self, run: RunConfig):
        check_files(run)
        self._take(settings(run))

    @classmethod
    def from_settings(cls, plain: Plain) -> Identity:
        """From the settings stored in a record."""
        identity = cls.__new__(cls)
        identity._take(plain)
        return identity

    def _take(self, plain: Plain) -> None:
        self.settings = plain
        self.run = fingerprint(plain)
        self.group = fingerprint({key: value for key, value in plain.items() if key != "seed"})
        self.data = fingerprint([plain["scale"], plain["task"]["reader"].get("data")], digits=64)


class Description(NamedTuple):
    """What is known about a run before it starts.

    Attributes:
        identity: its settings and their hashes.
        arm, variant: its page of conf/arm/, and the differences from it.
        config: the resolved configuration, for the checkpoint.
        placeless: the same without paths of this machine, for the record.
    """

    identity: Identity
    arm: str
    variant: dict[str, Any]
    config: Plain
    placeless: Plain


def check_files(run: RunConfig) -> None:
    """Raises `UserError` if the task does not offer the scale or cannot use the word vectors, or if files are missing
    (all of them named in one line)."""
    check_scale(run)
    check_vectors(run)
    if problems := [*_missing_data(run), *_missing_layers(run)]:
        raise UserError("; ".join(problems))


def check_scale(run: RunConfig) -> None:
    """Raises `UserError` if the task does not offer the scale."""
    if run.scale.name not in run.task.scales:
        offered = ", ".join(f"scale={scale}" for scale in run.task.scales) or "no scale"
        raise UserError(f"task={run.task.name} has no data for scale={run.scale.name}; it offers {offered}")


def check_vectors(run: RunConfig) -> None:
    """Raises `UserError` if the task's model cannot use vectors trained on the biLM's text (`vectors=text`)."""
    if run.vectors.source != "text" or run.words_dropped:
        return
    if run.task.words is None or "size" not in run.task.words:
        raise UserError(f"vectors=text: the page of task={run.task.name} has no word vectors with a size")
    if run.task.words.get("path") is not None:
        raise UserError("vectors=text and task.words.path: vectors from the text or from a file, not both")


def _missing_data(run: RunConfig) -> list[str]:
    data: Any = run.task.data or {}
    if run.scale.maker:  # the data are generated
        return []
    if run.data_root is None and _below_nothing(data):
        return [f"scale={run.scale.name} needs {places.DATA_ROOT}, and it is not set"]
    if run.data_root is not None and run.data_root in json.dumps(data) and not Path(run.data_root).is_dir():
        return [f"{run.data_root}: no such folder; data_root=FOLDER must name the one that holds the data"]
    folder = data_folder(data)
    if folder is not None and not folder.is_dir():
        return [f"{folder}: no such folder: task.data.folder names it; check data_root"]
    missing = []
    for split in ("train", "dev", "test"):
        name = data.get(split)
        if isinstance(name, str) and (folder is not None or os.sep in name) and not Path(folder or "", name).exists():
            missing.append(f"{Path(folder or '', name)}: no such file: task.data.{split} names it")
    return missing


def _below_nothing(data: Plain) -> bool:
    """Whether a path of the data begins with a folder that is not set."""
    paths = [path for value in data.values() for path in (value if isinstance(value, list) else [value])]
    return data.get("root", "") is None or any(str(path).startswith("None/") for path in paths)


def _missing_layers(run: RunConfig) -> list[str]:
    bilm = run.bilm
    if run.baseline or bilm.maker:
        return []
    files = {key: value for key, value in vars(bilm).items() if key in ("options", "weights", "path")}
    if unnamed := [key for key, place in files.items() if place is None]:
        give = " ".join(f"bilm.{key}=..." for key in unnamed)
        return [f"bilm={bilm.name} names no {' and no '.join(unnamed)}: give {give}, or choose an arm without ELMo"]
    where = f"get it: {bilm.download}" if bilm.download else "check the bilm block"
    absent = {key: place for key, place in files.items() if not Path(place).exists()}
    return [f"{place}: no such file: the {key} of bilm={bilm.name}; {where}" for key, place in absent.items()]


def placeless(cfg: DictConfig) -> Plain:
    """The resolved configuration with `<data_root>` etc., and other absolute paths cut to their last part."""
    cfg = copy.deepcopy(cfg)
    for place in PLACES:
        cfg[place] = f"<{place}>"
    plain: Any = OmegaConf.to_container(cfg, resolve=True)
    return relative({key: value for key, value in plain.items() if key not in ("hydra", "force", "debug")})


def relative(node: Any) -> Any:
    """Containers with absolute paths cut to their last part: a record names no folder of this machine."""
    if isinstance(node, dict):
        return {key: relative(value) for key, value in node.items()}
    if isinstance(node, list):
        return [relative(value) for value in node]
    return f"<elsewhere>/{Path(node).name}" if isinstance(node, str) and os.path.isabs(node) else node


def differences(one: Any, other: Any, prefix: str = "") -> Plain:
    """Dotted keys at which two nested containers differ, with the value in the first."""
    if isinstance(one, dict) and isinstance(other, dict):
        changed: Plain = {}
        for name in sorted({*map(str, one), *map(str, other)}):
            ours, theirs = ({str(key): value for key, value in each.items()}.get(name) for each in (one, other))
            changed |= differences(ours, theirs, f"{prefix}{name}.")
        return changed
    return {} if one == other else {prefix.rstrip("."): one}
