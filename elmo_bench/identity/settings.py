"""The settings that a result depends on: a run's identity is their hash, and its record stores them.

Typed keys whose value equals the default are left out, so that adding a key with a default changes no identity. In an
open block (reader, words, chars, head, metric, optimizer) every value counts. Files are represented by the sha256 of
their decompressed content, files that the project makes itself by their recipe.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from elmo_bench.configuration.schema import Plain, RunConfig, VectorSetConfig
from elmo_bench.identity.makers import maker
from elmo_bench.identity.vector_files import locate
from elmo_bench.layers import model_folder
from elmo_bench.sources import pages as sources
from elmo_bench.system import code
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage.hashing import MEMORY, content_sha256, fingerprint
from elmo_bench.text.conll2012 import find_files
from elmo_bench.text.documents import ENDING, named_beside
from elmo_bench.text.source import SPLITS

# Callbacks of Lightning that change no result.
WATCHING = (
    "LearningRateMonitor", "DeviceStatsMonitor", "ModelSummary", "RichModelSummary", "ThroughputMonitor",
    "TQDMProgressBar", "RichProgressBar", "ModelCheckpoint", "OnExceptionCheckpoint",
)  # fmt: skip
FORMAT = 2  # of the identity: raised when the hash of the same settings would change


def settings(run: RunConfig) -> Plain:
    """The settings that a run's identity is a hash of. Raises `UserError` for a file that cannot be read."""
    data: Any = maker(run.scale, run.places)
    made = {} if data is None else {Path(str(run.scale.folder), name): name for name in data.files}
    files = Files(made, Path(run.cache_root))
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
        "scale": run.scale.identifying(whole),
        "task": run.task.identifying(whole),
    }
    plain["elmo"] = {"where": "none"} if run.baseline else run.elmo.identifying(whole)
    if not run.baseline:
        plain["bilm"] = run.bilm.identifying(whole)
    if run.trains_vectors:
        plain["vectors"] = run.vectors.identifying(whole)
    if run.sets:  # otherwise task.words says it all
        sets = {name: block.identifying() | _files(block, run.vectors_root) for name, block in run.vectors.sets.items()}
        plain["vectors"] = {"source": "sets", "sets": dict(sorted(sets.items()))}
    plain["trainer"] = run.trainer.identifying(whole)
    if callbacks := changing(run):
        plain["callbacks"] = callbacks
    if run.fraction != 1:
        plain["fraction"] = run.fraction
    return {key: value for key, value in plain.items() if value != {}}


def changing(run: RunConfig) -> Plain:
    """The callbacks that may change what is trained: all but those that only watch."""
    return {
        name: block
        for name, block in run.callbacks.items()
        if block and not (isinstance(block, dict) and str(block.get("_target_")).rpartition(".")[2] in WATCHING)
    }


def _files(block: VectorSetConfig, root: str | None) -> Plain:
    """The files of a vector set; empty if they are not here."""
    vectors, words = locate(block, root) or (None, None)
    files = {"table": vectors, "words": words}
    return {key: str(path.absolute()) for key, path in files.items() if path is not None}


class Files:
    """Replaces the paths of files in plain containers by identifiers of their content.

    Args:
        made: the names of generated files, which the recipe of the scale identifies, by their paths.
        cache: folder that stores the digests of large files.
    """

    def __init__(self, made: Mapping[Path, str], cache: Path):
        self.made, self.memory = made, cache / MEMORY

    def digested(self, node: Any, folder: Path | None = None) -> Any:
        """The containers with "sha256:..." for files and "made:NAME" for generated ones.

        In a block with a `folder` (and a `root`), names are looked up in it, and these two keys are dropped.
        """
        if isinstance(node, dict):
            folder = data_folder(node) or folder
            kept = {key: each for key, each in node.items() if folder is None or key not in ("root", "folder")}
            return {key: (self._split if key in SPLITS else self.digested)(each, folder) for key, each in kept.items()}
        if isinstance(node, list):
            return [self.digested(each, folder) for each in node]
        if not isinstance(node, str):
            return node
        is_path = os.sep in node or (folder is not None and node)
        return (is_path and self._digest(Path(folder or "", node))) or code.written(node)

    def _split(self, named: Any, folder: Path | None) -> Any:
        """The content of all files that are opened for a split, wherever and in whatever order they lie."""
        names = named if isinstance(named, list) else [named]
        if not names or not all(isinstance(name, str) and name for name in names):
            return named
        found = [self._digest(path) or name for name in names for path in _opened(name, folder)]
        return found[0] if len(found) == 1 else f"sha256:{fingerprint(sorted(found), digits=64)}"

    def _digest(self, path: Path) -> str | None:
        """None if there is no such file."""
        if path in self.made:
            return f"made:{self.made[path]}"
        return f"sha256:{content_sha256(path, self.memory)}" if os.path.exists(path) else None


def _opened(name: str, folder: Path | None) -> Iterator[Path]:
    """The files that a reader opens for a name: the file, or those of a folder or a list, and what names documents."""
    try:
        files = find_files(name, folder)
    except UserError:  # it is no list, or the reader will say what is wrong with it
        files = [Path(os.path.expanduser(Path(folder or "", name)))]
    for path in files:
        yield path
        beside = named_beside(path)
        if beside is not None and content_sha256(beside) not in _documents_of_project():
            yield beside


@cache
def _documents_of_project() -> set[str]:
    """The digests of the documents that `elmo-bench data` writes, without which recorded runs are identified."""
    files = [file for page in sources.load().values() for file in page.files.items()]
    return {digest for name, digest in files if name.endswith(ENDING)}


def data_folder(data: Plain) -> Path | None:
    """The folder of the files that a `{root, folder, train, dev, test}` block names; None for any other block."""
    if not isinstance(data.get("folder"), str):
        return None
    return Path(os.path.expanduser(Path(data.get("root") or "", data["folder"])))
