"""Renames records of identity 1 to identity 2, without training anything.

A record of identity 1 stores its whole resolved configuration, in which a task's page held all scales at once. The
current typed configuration is built from it, and from that the settings, the id, the arm and the variant. The data and
the biLM on this machine are compared with the record's digests, so that a new name is always verified.
"""

from __future__ import annotations

import copy
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from elmo_bench.configuration import pages, schema
from elmo_bench.configuration.schema import Places, Plain, RunConfig
from elmo_bench.experiment import store
from elmo_bench.experiment.arms import placed
from elmo_bench.experiment.identity import Identity, relative
from elmo_bench.experiment.settings import data_folder, settings
from elmo_bench.experiment.store import Record
from elmo_bench.system import places as project
from elmo_bench.system.errors import UserError
from elmo_bench.system.hashing import fingerprint, sha256

SHARED = ("elmo", "seed", "data_root", "models_root", "cache_root", "results_root", "launcher")
PARTS = ("name", "monitor", "paper", "reader", "words", "chars", "head", "metric", "score", "optimizer", "average")


@cache
def renamed() -> Plain:
    """Names that have changed since: targets, arguments of heads, recipes."""
    names: Any = OmegaConf.to_container(OmegaConf.load(project.CONF / "migration" / "identity1.yaml"))
    return names


def is_old(record: Record) -> bool:
    """Whether it is a record of identity 1."""
    return "settings" not in record


def migrate(results_root: Path, places: Places) -> Iterator[tuple[Path, Path | str]]:
    """Renames all old records below a folder; yields the path of each, and its new path or why it was left unchanged.

    Args:
        results_root: folder of `runs/`.
        places: folders of this machine that contain data and biLMs.
    """
    for path in sorted((results_root / "runs").glob("*/*/*.json")):
        record = store.read_any(path)
        if not is_old(record):
            continue
        try:
            new = migrated(record, places)
        except UserError as error:
            yield path, str(error)
            continue
        target = store.place(results_root, new["scale"], new["task"], new["run"])
        if target.exists():
            yield path, f"{target.name} exists already"
            continue
        store.write(target, new)
        path.unlink()
        yield path, target


def migrated(record: Record, places: Places) -> Record:
    """An old record converted to its new name; its old id is kept as `former`.

    Raises:
        UserError: the data or the biLM are missing, or differ from the record's.
    """
    roots = {f"<{key}>": value for key, value in vars(places).items()}
    plain = modern(record)
    here = schema.from_plain(_replaced(plain, roots))
    _check_data(record, roots)
    if not here.baseline:
        _find_bilm(record, plain, here)
        here = schema.from_plain(_replaced(plain, roots))
    identity = Identity.from_settings(settings(here))
    arm, variant = placed(here)
    return _record(record, identity, arm, variant, relative(plain), here)


def modern(record: Record) -> Plain:
    """The configuration of an old record in the current form: one scale, plain values, typed blocks."""
    old = copy.deepcopy(record["config"])
    scale, task = old["scale"]["name"], old["task"]
    today: Any = OmegaConf.to_container(pages.compose([f"task={task['name']}", f"scale={scale}", "data_root=x"]))
    plain = {key: old[key] for key in SHARED} | {"arm": "elmo", "logger": {"wandb": None}, "trainer": old["trainer"]}
    plain["scale"] = {key: value for key, value in old["scale"].items() if key != "prepare"}
    plain["scale"]["maker"] = today["scale"]["maker"]
    vectors = old.get("vectors", {"source": "page"})  # the oldest records have no such key
    plain["vectors"] = {key: value for key, value in vectors.items() if key != "passes"}
    if plain["vectors"]["source"] == "text":
        plain["vectors"]["maker"] = "elmo_bench.embedding.skipgram.SkipgramVectors"
        plain["vectors"]["text"] = renamed()["recipes"].get(vectors["text"], vectors["text"])
    plain["bilm"] = _bilm(old["bilm"], today["bilm"]["_target_"])
    plain["task"] = {key: task.get(key) for key in PARTS} | {
        "version": 1,
        "scales": today["task"]["scales"],
        "elmo": old["elmo"],
        "data": task["data"][scale],
        "fit": task["fit"][scale],
        "batch": task["batch"],
        "schedule": task.get("schedule") or {},
        "clip": task.get("clip") or {},
    }
    keys = renamed()["head"].get(task["name"], {})
    plain["task"]["head"] = {keys.get(key, key): value for key, value in task["head"].items()}
    return _replaced(plain, renamed()["targets"], whole=True)


def _bilm(old: Plain, target: str) -> Plain:
    block = {key: value for key, value in old.items() if key not in ("source", "prepare")}
    block |= {"_target_": target, "download": old.get("source"), "maker": None}
    if old["name"] == "mini":
        block["maker"] = "elmo_bench.mini.MiniBilm"
    if old["name"] == "untrained":
        folder, sizes = os.path.split(old["weights"])
        block |= {"maker": "elmo_bench.bilm.untrained.UntrainedBilm", "options": f"{folder}/{Path(sizes).stem}.json"}
        block["like"] = old["options"]
        if old["options"].endswith("/bilm/options.json"):  # of the mini scale, whose recipe has the same sizes
            block["like"] = str(project.CONF / "pretrain" / "mini.yaml")
    return block


def _replaced(node: Any, names: Mapping[str, str | None], whole: bool = False) -> Any:
    """Containers with strings replaced: those that begin with a name, or with `whole` those that equal one."""
    if isinstance(node, dict):
        return {key: _replaced(value, names, whole) for key, value in node.items()}
    if isinstance(node, list):
        return [_replaced(value, names, whole) for value in node]
    if not isinstance(node, str):
        return node
    if whole:
        return names.get(node, node)
    for name, value in names.items():
        if value is not None and node.startswith(name):
            return value + node.removeprefix(name)
    return node


def _check_data(record: Record, roots: Mapping[str, str | None]) -> None:
    """Raises `UserError` unless the data on this machine are the record's; generated data need no check."""
    scale = record["config"]["scale"]
    if scale.get("prepare"):
        return
    data = _replaced(record["config"]["task"]["data"][scale["name"]], roots)
    if fingerprint(_raw_digests(data), digits=64) != record["data_sha256"]:
        raise UserError("the data on this machine are not those of the record; give data_root=FOLDER")


def _raw_digests(node: Any) -> Any:
    """Containers with paths of files replaced by "sha256:..." of their bytes, as in identity 1."""
    if isinstance(node, dict):
        folder = data_folder(node)
        if folder is None:
            return {key: _raw_digests(value) for key, value in node.items()}
        names = {key: value for key, value in node.items() if key not in ("root", "folder")}
        there = {key for key, value in names.items() if value and isinstance(value, str) and (folder / value).exists()}
        return {key: _raw_digest(folder / value) if key in there else value for key, value in names.items()}
    if isinstance(node, list):
        return [_raw_digests(value) for value in node]
    return _raw_digest(node) if isinstance(node, str) and os.sep in node and os.path.exists(node) else node


def _raw_digest(path: str | Path) -> str:
    path = Path(path)
    if path.is_file():
        return f"sha256:{sha256(path)}"
    files = sorted(file.relative_to(path).as_posix() for file in path.rglob("*") if file.is_file())
    text = json.dumps({name: sha256(path / name) for name in files}, sort_keys=True, ensure_ascii=True)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def _find_bilm(record: Record, plain: Plain, here: RunConfig) -> None:
    """Sets in `plain` the name and files of the biLM page whose weights the record's run used.

    Raises:
        UserError: no page has these weights on this machine.
    """
    if here.bilm.maker is not None:
        return
    for page in sorted((project.CONF / "bilm").glob("*.yaml")):
        block: Any = OmegaConf.to_container(OmegaConf.load(page), resolve=False)
        files = {key: str(block.get(key)).replace("${models_root}", "<models_root>") for key in ("options", "weights")}
        weights = Path(files["weights"].replace("<models_root>", here.models_root))
        if weights.is_file() and sha256(weights) == record["bilm"]["sha256"]:
            plain["bilm"] |= {"name": block["name"], **files}
            return
    named = here.bilm.weights
    if named and Path(named).is_file() and sha256(named) == record["bilm"]["sha256"]:
        return
    raise UserError(f"its biLM, sha256 {record['bilm']['sha256'][:8]}..., is not on this machine")


def _record(
    old: Record, identity: Identity, arm: str, variant: dict[str, Any], config: Plain, run: RunConfig
) -> Record:
    """The record with new names; all measurements are unchanged."""
    new: Record = {
        "task": old["task"], "scale": old["scale"], "arm": arm, "variant": variant, "seed": old["seed"],
        "version": run.task.version, "run": identity.run, "group": identity.group,
        "former": [*old.get("former", []), old["run"]],
    }  # fmt: skip
    replaced = {*new, "data_sha256", "history", "config"}
    new |= {key: value for key, value in old.items() if key not in replaced}
    if not run.baseline:
        new["bilm"] = {**old["bilm"], "name": run.bilm.name}
    config["arm"] = arm
    new |= {"data_sha256": identity.data, "history": store.columns(old["history"]), "settings": identity.settings}
    return {**new, "config": config}
