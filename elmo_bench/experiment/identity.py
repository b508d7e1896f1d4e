"""What makes two runs the same: the resolved configuration less places and machine, plus what lies at the places."""

from __future__ import annotations

import copy
import hashlib
import json
import os
from functools import lru_cache
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from elmo_bench.system.errors import UserError

PLACES = ("data_root", "models_root", "cache_root", "results_root")
ELSEWHERE = (*PLACES, "logger", "launcher", "hydra", "force", "debug")  # top-level keys that no result depends on
MACHINE = ("accelerator", "devices", "threads", "progress")  # of the trainer
SCALES = {"mini", "open", "paper"}
Plain = dict[str, Any]


class Identity:
    """A run's settings with every file replaced by its sha256, and the names that follow from them.

    Attributes:
        settings: plain containers; what the hashes are taken over.
        config: the whole resolved configuration as a record keeps it, without the places of this machine.
        run: 16 hexadecimal digits, the name of the run's record and of its work folder.
        group: the same less the seed: runs to be averaged.
        data: sha256 of the data files and of nothing else; `bilm`: of the biLM's weights, None in a baseline.

    Raises:
        UserError: a file that the configuration names is missing.
    """

    def __init__(self, cfg: DictConfig):
        check_places(cfg)
        self.settings = settings(cfg)
        self.config = placeless(cfg)
        self.run = fingerprint(self.settings)
        self.group = fingerprint({key: value for key, value in self.settings.items() if key != "seed"})
        self.data = fingerprint(self.settings["task"].get("data"), digits=64)
        self.bilm = self.settings["bilm"]["weights"].removeprefix("sha256:") if "bilm" in self.settings else None


def check_places(cfg: DictConfig) -> None:
    """Raises `UserError` where the scale's data need a data root and there is none, or a file is missing."""
    scale = cfg.scale.name
    raw = OmegaConf.to_container(cfg.task, resolve=False).get("data") or {}  # type: ignore[union-attr]
    if scale not in raw:
        raise UserError(f"task={cfg.task.name} has no data for scale={scale}; it has {', '.join(raw) or 'none'}")
    if "${data_root}" in json.dumps(raw[scale]):
        if not cfg.data_root:
            raise UserError(f"scale={scale} needs data_root=FOLDER (make: DATA_ROOT=FOLDER), and it is not set")
        if not Path(cfg.data_root).is_dir():
            raise UserError("no such folder; data_root=FOLDER must name the one that holds the data", cfg.data_root)
    data: Any = OmegaConf.to_container(cfg.task.data[scale], resolve=True)
    folder = data_folder(data)
    if folder is not None and not folder.is_dir():
        raise UserError(f"no such folder: task.data.{scale} names it; check data_root", folder)
    for split in ("train", "dev", "test"):
        name = data.get(split)
        if isinstance(name, str) and (folder is not None or os.sep in name) and not Path(folder or "", name).exists():
            raise UserError(f"no such file: task.data.{scale}.{split} names it", Path(folder or "", name))
    if cfg.elmo.where != "none":
        for key in ("options", "weights"):
            if not Path(cfg.bilm[key]).is_file():
                raise UserError(f"no such file: the {key} of bilm={cfg.bilm.name}; {_source(cfg)}", cfg.bilm[key])


def _at(scale: str, node: Any) -> Any:
    """Of a block with one entry a scale, this scale's: another scale's budget changes nothing here."""
    by_scale = isinstance(node, dict) and scale in node and set(node) <= SCALES
    return node[scale] if by_scale else node


def data_folder(data: Plain) -> Path | None:
    """Where the files lie that a `{root, folder, train, dev, test}` block names; None for any other block."""
    if not isinstance(data.get("folder"), str):
        return None
    return Path(data.get("root") or "", data["folder"]).expanduser()


def _source(cfg: DictConfig) -> str:
    source = cfg.bilm.source
    return f"get it: {source}" if source else "check bilm.options and bilm.weights"


def settings(cfg: DictConfig) -> Plain:
    """All that a result depends on, files as "sha256:...". A baseline does not depend on the biLM."""
    plain = relevant(OmegaConf.to_container(cfg, resolve=True))  # type: ignore[arg-type]
    if "vectors" in plain:
        from elmo_bench.embedding.skipgram import settings as text_settings  # it imports this module

        plain["vectors"] = text_settings(plain["vectors"])
    return hash_files(plain)


def relevant(plain: Plain) -> Plain:
    """A resolved configuration less places, machine, the other scales, and what the report alone reads."""
    plain = copy.deepcopy({key: value for key, value in plain.items() if key not in ELSEWHERE})
    scale = plain["scale"] = plain["scale"]["name"]
    plain["trainer"] = {key: value for key, value in plain["trainer"].items() if key not in MACHINE}
    task = {key: value for key, value in plain["task"].items() if key not in ("elmo", "paper", "score", "arms")}
    plain["task"] = {key: _at(scale, value) for key, value in task.items()}
    if plain["elmo"]["where"] == "none":
        plain["elmo"] = {"where": "none"}
        del plain["bilm"]
    else:
        plain["bilm"].pop("source", None)
    if plain["vectors"]["source"] == "page":
        del plain["vectors"]  # task.words says it all
    return plain


def hash_files(node: Any) -> Any:
    """Containers with every path of a file or folder replaced by "sha256:" and the digest of what lies there.

    In a block with a `folder` (and a `root`), names are looked up there, and these two keys go.
    """
    if isinstance(node, dict):
        if (folder := data_folder(node)) is None:
            return {key: hash_files(value) for key, value in node.items()}
        names = {key: value for key, value in node.items() if key not in ("root", "folder")}
        there = {key for key, value in names.items() if value and isinstance(value, str) and (folder / value).exists()}
        return {key: _digest(folder / value) if key in there else value for key, value in names.items()}
    if isinstance(node, list):
        return [hash_files(value) for value in node]
    if isinstance(node, str) and os.sep in node and len(node) < 4096 and os.path.exists(node):
        return _digest(node)
    return node


def _digest(path: str | os.PathLike[str]) -> str:
    stat = os.stat(path)
    return f"sha256:{_sha256_of_version(os.fspath(path), stat.st_size, stat.st_mtime_ns)}"


@lru_cache
def _sha256_of_version(path: str, size: int, mtime: int) -> str:
    """A configuration names a file several times, and a sweep composes it again for every run."""
    return sha256(path)


def sha256(path: str | os.PathLike[str]) -> str:
    """Of a file's bytes, or of the names and digests of all files below a folder."""
    path = Path(path)
    if path.is_dir():
        files = sorted(file.relative_to(path).as_posix() for file in path.rglob("*") if file.is_file())
        return fingerprint({name: sha256(path / name) for name in files}, digits=64)
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fingerprint(plain: Any, digits: int = 16) -> str:
    """A hash of plain containers that does not depend on the order of keys."""
    text = json.dumps(plain, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:digits]


def placeless(cfg: DictConfig) -> Plain:
    """The resolved configuration with `<data_root>` and so on for places, and of other absolute paths the last part."""
    cfg = copy.deepcopy(cfg)
    for place in PLACES:
        cfg[place] = f"<{place}>"
    plain: Any = OmegaConf.to_container(cfg, resolve=True)
    return relative({key: value for key, value in plain.items() if key not in ("hydra", "force", "debug")})


def relative(node: Any) -> Any:
    """Containers with the last part of absolute paths alone: a record names no folder of this machine."""
    if isinstance(node, dict):
        return {key: relative(value) for key, value in node.items()}
    if isinstance(node, list):
        return [relative(value) for value in node]
    return f"<elsewhere>/{Path(node).name}" if isinstance(node, str) and os.path.isabs(node) else node


def differences(one: Any, other: Any, prefix: str = "") -> Plain:
    """Dotted keys at which two nested containers differ, with the value in the first."""
    if isinstance(one, dict) and isinstance(other, dict):
        found: Plain = {}
        for key in sorted({*one, *other}):
            found |= differences(one.get(key), other.get(key), f"{prefix}{key}.")
        return found
    return {} if one == other else {prefix.rstrip("."): one}
