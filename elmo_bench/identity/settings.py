"""The settings that a result depends on: a run's identity is their hash, and its record stores them.

Typed keys whose value equals the default are left out, so that adding a key with a default changes no identity. In an
open block (reader, words, chars, head, metric, optimizer) every value counts. Files are represented by the sha256 of
their decompressed content, files that the project makes itself by their recipe.
"""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any

from elmo_bench.configuration.schema import KEYS, Plain, RunConfig, VectorSetConfig
from elmo_bench.identity.makers import maker
from elmo_bench.identity.vector_files import locate
from elmo_bench.layers import model_folder
from elmo_bench.system import code
from elmo_bench.system.storage.hashing import MEMORY, content_sha256

# Callbacks of Lightning that change no result.
WATCHING = (
    "LearningRateMonitor", "DeviceStatsMonitor", "ModelSummary", "RichModelSummary", "ThroughputMonitor",
    "TQDMProgressBar", "RichProgressBar", "ModelCheckpoint", "OnExceptionCheckpoint",
)  # fmt: skip
FORMAT = 2  # of the identity: raised when the hash of the same settings would change


def settings(run: RunConfig) -> Plain:
    """The settings that a run's identity is a hash of. Raises `UserError` for a file that cannot be read."""
    files = Files(Path(run.scale.folder) if run.scale.maker and run.scale.folder else None, Path(run.cache_root))
    plain = relevant(run)
    if run.trains_vectors and (vectors := maker(run.vectors, run.places)):
        plain["vectors"] = {"source": run.vectors.source, "recipe": vectors.recipe()}
    if not run.baseline and (bilm := maker(run.bilm, run.places)):
        made = {"options", "weights", "like", "seed"}
        plain["bilm"] = {key: value for key, value in plain["bilm"].items() if key not in made}
        plain["bilm"]["recipe"] = bilm.recipe()
    if "path" in plain.get("bilm", {}):  # hash only the files that decide the layers, not e.g. a README
        plain["bilm"]["path"] = f"sha256:{model_folder.sha256(plain['bilm']['path'])}"
    return {"identity": FORMAT, **files.digested(plain)}


def relevant(run: RunConfig, whole: bool = False) -> Plain:
    """The values that a result depends on, with files as paths; ELMo, biLM and vectors only if used.

    Args:
        run: the run.
        whole: also those that equal the default of their key.
    """
    plain: Plain = {
        "seed": run.seed,
        "scale": identifying(run.scale, whole),
        "task": identifying(run.task, whole),
    }
    plain["elmo"] = {"where": "none"} if run.baseline else identifying(run.elmo, whole)
    if not run.baseline:
        plain["bilm"] = identifying(run.bilm, whole)
    if run.trains_vectors:
        plain["vectors"] = identifying(run.vectors, whole)
    if run.sets:  # otherwise task.words says it all
        sets = {name: identifying(block) | _files(block, run.vectors_root) for name, block in run.vectors.sets.items()}
        plain["vectors"] = {"source": "sets", "sets": dict(sorted(sets.items()))}
    plain["trainer"] = identifying(run.trainer, whole)
    if changing := {name: block for name, block in run.callbacks.items() if block and _changes(block)}:
        plain["callbacks"] = changing
    if run.fraction != 1:
        plain["fraction"] = run.fraction
    return {key: value for key, value in plain.items() if value != {}}


def _changes(block: Any) -> bool:
    """Whether a callback may change what is trained: all but those that only watch."""
    return not (isinstance(block, dict) and str(block.get("_target_")).rpartition(".")[2] in WATCHING)


def _files(block: VectorSetConfig, root: str | None) -> Plain:
    """The files of a vector set; empty if they are not here."""
    vectors, words = locate(block, root) or (None, None)
    files = {"table": vectors, "words": words}
    return {key: str(path.absolute()) for key, path in files.items() if path is not None}


def identifying(block: Any, whole: bool = False) -> Plain:
    """The values of a typed block that a result depends on and, unless `whole`, that differ from the default."""
    values: Plain = {}
    for each in dataclasses.fields(block):
        value = getattr(block, each.name)
        if dataclasses.is_dataclass(value):
            value = identifying(value, whole)
        if each.metadata.get("beside"):
            values |= value
        elif each.metadata.get("identity", True) and (whole or value != default(each)):
            values[KEYS.get(each.name, each.name)] = value
    return values


def default(each: dataclasses.Field) -> Any:
    """The default of a field; {} for a nested block, as `identifying` gives for a block of defaults."""
    if each.default_factory is not dataclasses.MISSING:
        made = each.default_factory()
        return {} if dataclasses.is_dataclass(made) else made
    return each.default


class Files:
    """Replaces the paths of files in plain containers by identifiers of their content.

    Args:
        made: folder of generated data, whose files are identified by the recipe of the scale; None if there is none.
        cache: folder that stores the digests of large files.
    """

    def __init__(self, made: Path | None, cache: Path):
        self.made, self.memory = made, cache / MEMORY

    def digested(self, node: Any) -> Any:
        """The containers with "sha256:..." for files and "made:NAME" for generated ones.

        In a block with a `folder` (and a `root`), names are looked up in it, and these two keys are dropped.
        """
        if isinstance(node, dict):
            if (folder := data_folder(node)) is None:
                return dict(zip(node, map(self.digested, node.values()), strict=True))
            names = {key: value for key, value in node.items() if key not in ("root", "folder")}
            return {key: self._below(folder, value) for key, value in names.items()}
        if isinstance(node, list):
            return list(map(self.digested, node))
        if isinstance(node, str) and os.sep in node and len(node) < 4096:
            return self._identified(node)
        return code.written(node) if isinstance(node, str) else node

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
    """The folder of the files that a `{root, folder, train, dev, test}` block names; None for any other block."""
    if not isinstance(data.get("folder"), str):
        return None
    return Path(os.path.expanduser(Path(data.get("root") or "", data["folder"])))
