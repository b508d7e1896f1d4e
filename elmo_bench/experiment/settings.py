"""The settings that a result depends on: what a run's identity is a hash of, and what a record keeps of them.

Values of typed keys that equal their default are left out, so that a new key with a default changes no identity; in an
open block (reader, words, chars, head, metric, optimiser) every value counts. Files count by the sha256 of their
decompressed content, what the project makes itself by its recipe.
"""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any

from elmo_bench.configuration.schema import KEYS, Plain, RunConfig
from elmo_bench.experiment.makers import Makers
from elmo_bench.layers import model_folder
from elmo_bench.system.hashing import MEMORY, content_sha256

FORMAT = 2  # of the identity: raised when the same settings would be hashed otherwise


def settings(run: RunConfig) -> Plain:
    """What the identity of a run is a hash of. Raises `UserError` for a file that cannot be read."""
    files = Files(Path(run.scale.folder) if run.scale.maker and run.scale.folder else None, Path(run.cache_root))
    makers = Makers.of(run)
    plain = relevant(run)
    if makers.vectors is not None:
        plain["vectors"] = {"source": run.vectors.source, "recipe": makers.vectors.recipe()}
    if makers.bilm is not None:
        made = {"options", "weights", "like"}
        plain["bilm"] = {key: value for key, value in plain["bilm"].items() if key not in made}
        plain["bilm"]["recipe"] = makers.bilm.recipe()
    if "path" in plain.get("bilm", {}):  # of a model's folder counts what decides its layers, not a README in it
        plain["bilm"]["path"] = f"sha256:{model_folder.sha256(plain['bilm']['path'])}"
    return {"identity": FORMAT, **files.digested(plain)}


def relevant(run: RunConfig) -> Plain:
    """The values that a result depends on, files as paths; of ELMo, biLM and vectors only what is in use."""
    plain: Plain = {"seed": run.seed, "scale": counted(run.scale), "task": counted(run.task)}
    plain["elmo"] = {"where": "none"} if run.baseline else counted(run.elmo)
    if not run.baseline:
        plain["bilm"] = counted(run.bilm)
    if run.vectors.source != "page":  # else task.words says it all
        plain["vectors"] = counted(run.vectors)
    plain["trainer"] = counted(run.trainer)
    return {key: value for key, value in plain.items() if value != {}}


def counted(block: Any) -> Plain:
    """The values of a typed block that count: those that a result depends on and that are not the default."""
    values: Plain = {}
    for each in dataclasses.fields(block):
        value = getattr(block, each.name)
        if dataclasses.is_dataclass(value):
            value = counted(value)
        if each.metadata.get("identity", True) and value != default(each):
            values[KEYS.get(each.name, each.name)] = value
    return values


def default(each: dataclasses.Field) -> Any:
    """The default of a field; for a nested block, that of a block whose values are all defaults."""
    if each.default_factory is not dataclasses.MISSING:
        made = each.default_factory()
        return {} if dataclasses.is_dataclass(made) else made
    return each.default


class Files:
    """Replaces the paths of files in plain containers by what identifies the files.

    Args:
        made: folder of generated data, whose files are identified by the recipe of the scale; None where there is none.
        cache: keeps the digests of large files.
    """

    def __init__(self, made: Path | None, cache: Path):
        self.made, self.memory = made, cache / MEMORY

    def digested(self, node: Any) -> Any:
        """The containers with "sha256:..." for files, "made:NAME" for generated ones.

        In a block with a `folder` (and a `root`), names are looked up there, and these two keys go.
        """
        if isinstance(node, dict):
            if (folder := data_folder(node)) is None:
                return {key: self.digested(value) for key, value in node.items()}
            names = {key: value for key, value in node.items() if key not in ("root", "folder")}
            return {key: self._below(folder, value) for key, value in names.items()}
        if isinstance(node, list):
            return [self.digested(value) for value in node]
        if isinstance(node, str) and os.sep in node and len(node) < 4096:
            return self._identified(node)
        return node

    def _below(self, folder: Path, value: Any) -> Any:
        if isinstance(value, list):
            return [self._below(folder, one) for one in value]
        there = isinstance(value, str) and value and (folder / value).exists()
        return self._identified(str(folder / value)) if there else value

    def _identified(self, path: str) -> str:
        if self.made is not None and Path(path).is_relative_to(self.made):
            return f"made:{Path(path).relative_to(self.made).as_posix()}"
        return f"sha256:{content_sha256(path, self.memory)}" if os.path.exists(path) else path


def data_folder(data: Plain) -> Path | None:
    """Where the files lie that a `{root, folder, train, dev, test}` block names; None for any other block."""
    if not isinstance(data.get("folder"), str):
        return None
    return Path(data.get("root") or "", data["folder"]).expanduser()
