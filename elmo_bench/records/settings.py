"""The settings that a result depends on: a run's identity is their hash, and its record stores them.

Typed keys whose value equals the default are left out, so adding a key with a default changes no identity. In an open
block (reader, words, chars, head, metric, optimizer) every value counts. Files are represented by the sha256 of their
decompressed content. Files that the project makes itself (generated data, the biLM trained on it, an untrained biLM,
skip-gram vectors) are identified by their recipe, because the last digits of their numbers differ from machine to
machine; a configuration file names the class that makes them as `maker`.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, NamedTuple

from omegaconf import DictConfig, OmegaConf

from elmo_bench.configuration.composing import ROOTS
from elmo_bench.configuration.keys import relative
from elmo_bench.configuration.schema import Plain, RunConfig
from elmo_bench.system import code
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage.hashing import MEMORY, content_sha256, fingerprint


def is_seeded(block: Any) -> bool:
    """Whether the files of a block are made here, from its seed."""
    return block.maker is not None and getattr(resolve_name(block.maker), "seeded", False)


def maker(block: Any, run: RunConfig) -> Any:
    """The maker that a block of a run names, if any: a class constructed from the block and the run.

    It has two methods. `recipe()` is everything that the files depend on, including a version of the code: plain
    values, and paths of other files. `make()` makes the files if they are missing; several processes may call it at
    once. Neither the constructor nor `recipe` reads or makes any of the files. A class whose attribute `seeded` is true
    makes other files for another `seed` in its block. The maker of a scale has `files`, the names of all files in its
    folder.
    """
    return None if block is None or block.maker is None else resolve_name(block.maker)(block, run)


def make(run: RunConfig) -> Path | None:
    """Makes all missing files that a run needs, the data first because the others are trained on them.

    Returns:
        The file of skip-gram vectors, if the run uses them.
    """
    blocks = run.scale, None if run.baseline else run.bilm, run.vectors if run.trains_vectors else None
    makers = [maker(block, run) for block in blocks]
    *_, vectors = [None if each is None else each.make() for each in makers]
    return vectors


SPLITS = ("train", "dev", "test")
FORMAT = 2  # the version of the identity: raised when the hash of the same settings would change


def relevant(run: RunConfig) -> Plain:
    """The values that a result depends on, with files as paths; ELMo, biLM and vectors only if used."""
    plain: Plain = {
        "seed": run.seed,
        "scale": run.scale.identifying(),
        "task": run.task.identifying(),
    }
    plain["elmo"] = {"where": "none"} if run.baseline else run.elmo.identifying()
    if not run.baseline:
        plain["bilm"] = run.bilm.identifying()
    if run.trains_vectors:
        plain["vectors"] = run.vectors.identifying()
    if run.sets:  # otherwise task.words has everything
        from elmo_bench.embedding.tables import locate

        plain["vectors"] = {"source": "sets", "sets": {}}
        for name, block in sorted(run.vectors.sets.items()):
            files = zip(
                ("table", "words"), locate(block, run.vectors_root) or (), strict=False
            )  # missing files are left out
            paths = {key: str(path.absolute()) for key, path in files if path is not None}
            plain["vectors"]["sets"][name] = block.identifying() | paths
    plain["trainer"] = run.trainer.identifying()
    if callbacks := run.changing_callbacks:
        plain["callbacks"] = callbacks
    if run.fraction != 1:
        plain["fraction"] = run.fraction
    return {key: value for key, value in plain.items() if value != {}}


class Files(NamedTuple):
    """Replaces the paths of files in plain containers by identifiers of their content.

    Attributes:
        generated: the names of generated files, which the recipe of the scale identifies, by their paths.
        cache: the folder that stores the digests of large files.
    """

    generated: Mapping[Path, str]
    cache: Path

    def digested(self, node: Any, folder: Path | None = None) -> Any:
        """The containers with "sha256:..." for files and "made:NAME" for generated ones.

        In a block with a `folder` (and a `root`), names are relative to it, and these two keys are dropped.
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
        if is_path and (digest := self._digest(Path(folder or "", node))):
            return digest
        return node.removeprefix("elmo_bench.") if node.startswith(f"{code.INSIDE}.") else node  # as files write it

    def _split(self, named: Any, folder: Path | None) -> Any:
        """A digest of all files that are opened for a split, independent of their paths and order."""
        names = named if isinstance(named, list) else [named]
        if not names or not all(isinstance(name, str) and name for name in names):
            return named
        if len(names) == 1 and (name := self.generated.get(Path(folder or "", names[0]))):
            return f"made:{name}"
        found = [self._digest(path) or name for name in names for path in _opened(name, folder)]
        return found[0] if len(found) == 1 else f"sha256:{fingerprint(sorted(found), digits=64)}"

    def _digest(self, path: Path) -> str | None:
        """The digest of a file; None if there is no such file."""
        if path in self.generated:
            return f"made:{self.generated[path]}"
        return f"sha256:{content_sha256(path, self.cache / MEMORY)}" if os.path.exists(path) else None


def _opened(name: str, folder: Path | None) -> Iterator[Path]:
    """The files that a reader opens for a name: the file, or files of a folder or list, and `.documents` files."""
    from elmo_bench.text.columns import documents_beside
    from elmo_bench.text.conll2012 import find_files

    try:
        files = find_files(name, folder)
    except UserError:  # it is not a list, or the reader will report its fault
        files = [Path(os.path.expanduser(Path(folder or "", name)))]
    for path in files:
        yield path
        beside = documents_beside(path)
        if beside is not None and content_sha256(beside) not in _documents_of_project():
            yield beside


@cache
def _documents_of_project() -> set[str]:
    """The digests of the `.documents` files from `elmo-bench data`, which recorded runs' identities leave out."""
    from elmo_bench.sources import pages as sources
    from elmo_bench.text.columns import DOCUMENTS

    files = [file for page in sources.load().values() for file in page.files.items()]
    return {digest for name, digest in files if name.endswith(DOCUMENTS)}


def data_folder(data: Plain) -> Path | None:
    """The folder of the files that a `{root, folder, train, dev, test}` block names; None for any other block."""
    if not isinstance(data.get("folder"), str):
        return None
    return Path(os.path.expanduser(Path(data.get("root") or "", data["folder"])))


NOT_STORED = ("hydra", "force", "debug", "table", "typed")  # keys not stored with a configuration


class Identity:
    """The settings that a run's result depends on, and the names derived from them.

    Attributes:
        settings: plain containers, from which the hashes are computed.
        run: 16 hexadecimal digits, the name of the run's record and of its work folder.
        group: the same without the seed: runs with the same group are averaged.
        data: a hash of the data alone.
    """

    def __init__(self, run: RunConfig):
        data = maker(run.scale, run)
        generated = {} if data is None else {Path(str(run.scale.folder), name): name for name in data.files}
        plain = relevant(run)
        if run.trains_vectors and (vectors := maker(run.vectors, run)):
            plain["vectors"] = {"source": run.vectors.source, "recipe": vectors.recipe()}
        if not run.baseline and (bilm := maker(run.bilm, run)):
            replaced = {"options", "weights", "like", "seed"}
            plain["bilm"] = {key: value for key, value in plain["bilm"].items() if key not in replaced}
            plain["bilm"]["recipe"] = bilm.recipe()
        if "path" in plain.get("bilm", {}):  # hash only the files that decide the layers, not e.g. a README
            from elmo_bench.layers import model_folder

            plain["bilm"]["path"] = f"sha256:{model_folder.sha256(plain['bilm']['path'])}"
        plain = {"identity": FORMAT, **Files(generated, Path(run.cache_root)).digested(plain)}
        self.settings = plain
        self.run = fingerprint(plain)
        self.group = fingerprint({key: value for key, value in plain.items() if key != "seed"})
        self.data = fingerprint([plain["scale"], plain["task"]["reader"].get("data")], digits=64)


class Description(NamedTuple):
    """The facts known about a run before it starts.

    Attributes:
        identity: its settings and their hashes.
        config: the resolved configuration, for the checkpoint.
        portable: the same without paths of this machine, for the record.
    """

    identity: Identity
    config: Plain
    portable: Plain


def portable(cfg: DictConfig) -> Plain:
    """The resolved configuration with `<data_root>` etc., and other absolute paths cut to their last part."""
    cfg = copy.deepcopy(cfg)
    for place in ROOTS:
        cfg[place] = f"<{place}>"
    plain: Any = OmegaConf.to_container(cfg, resolve=True)
    return relative({key: value for key, value in plain.items() if key not in NOT_STORED})
