"""The mini scale: a seeded world whose events become the data of all six tasks and the plain text for a biLM.

The same version, seed and sizes give the same bytes on any platform and Python. `generate` writes a data set, and
`MiniData` makes the one of a configuration unless it exists. The files are described in `build`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import Any

from elmo_bench.configuration.schema import Places, ScaleConfig
from elmo_bench.mini.bilm import MiniBilm
from elmo_bench.mini.build import VERSION, Builder, Progress, Sizes
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage import json_text
from elmo_bench.system.storage.files import write_bytes
from elmo_bench.system.storage.hashing import fingerprint
from elmo_bench.system.storage.integrity import check_digests
from elmo_bench.system.storage.locks import held
from elmo_bench.system.storage.owners import private

MANIFEST = "mini.json"

__all__ = ["MANIFEST", "VERSION", "MiniBilm", "MiniData", "Sizes", "ensure_data", "generate"]


def generate(
    folder: str | PathLike[str],
    seed: int = 1,
    sizes: Sizes | Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> dict[str, str]:
    """Writes a data set into a folder, file by file; `mini.json` is written last and marks it as complete.

    Args:
        folder: the folder, created if necessary; other files in it are left alone.
        seed: another seed gives another world.
        sizes: changes to the defaults of `Sizes`.
        progress: called from time to time with what is being written and how many of `Sizes.total` units are done.

    Returns:
        The sha256 of each file.

    Raises:
        UserError: invalid sizes, or a folder that is not writable.
    """
    sizes = sizes if isinstance(sizes, Sizes) else Sizes.of(sizes)
    folder = Path(folder)
    digests: dict[str, str] = {}
    for name, text in Builder(seed, sizes, progress).files():
        data = text.encode()
        digests[name] = hashlib.sha256(data).hexdigest()
        write_bytes(folder / name, data)
    manifest = {**_identity(seed, sizes), "files": digests}
    manifest["checksum"] = fingerprint(manifest)
    write_bytes(folder / MANIFEST, (json_text.dumps(manifest, indent=1) + "\n").encode())
    return digests


def ensure_data(folder: str | PathLike[str], seed: int = 1, sizes: Sizes | Mapping[str, Any] | None = None) -> Path:
    """Returns the folder with the data set, which is generated (with a progress bar) if it is missing, damaged,
    or may be somebody else's.

    Several processes may call it at once: all write the same bytes, and each file is replaced atomically.

    Raises:
        UserError: the folder contains mini data of another seed or version, or of other sizes.
    """
    folder = Path(folder)
    sizes = sizes if isinstance(sizes, Sizes) else Sizes.of(sizes)
    manifest = _manifest(folder)
    identity = _identity(seed, sizes)
    if manifest and {key: manifest.get(key) for key in identity} != identity:
        raise UserError(
            "contains mini data of another seed, size or version; delete it or choose another folder", folder
        )
    if not (manifest and _intact(folder, manifest["files"])):
        _generate_visibly(folder, seed, sizes)
    return folder


def mend(folder: str | PathLike[str]) -> None:
    """Generates a data set again if a file in it is damaged; leaves any folder that is not one alone.

    Raises:
        UserError: the manifest itself is damaged, or another version of this code generated the files.
    """
    folder = Path(folder)
    if not (folder / MANIFEST).is_file():
        return
    if (manifest := _manifest(folder)) is None:
        raise UserError("damaged; generate the data again into this folder", folder / MANIFEST)
    if not _intact(folder, manifest["files"]):
        ensure_data(folder, manifest["seed"], manifest["sizes"])


class MiniData:
    """Makes the data of `scale=mini`, at `scale.folder`.

    Raises:
        UserError: the configuration asks for another version than this code generates.
    """

    def __init__(self, scale: ScaleConfig, places: Places):
        self.scale = scale

    def recipe(self) -> dict[str, Any]:
        """What the bytes depend on."""
        return {"version": self.scale.version, "seed": self.scale.seed, "sizes": self.scale.sizes}

    def make(self) -> Path:
        """The folder with the data set in it; of several processes one generates it and the others wait."""
        if self.scale.version != VERSION:
            raise UserError(
                f"scale.version={self.scale.version}: this code generates version {VERSION}; check out the other one"
            )
        assert self.scale.folder is not None
        folder = Path(self.scale.folder)
        waiting = f"another process is generating the data in {folder}; waiting for it"
        with nullcontext() if (folder / MANIFEST).is_file() else held(folder, waiting):
            return ensure_data(folder, self.scale.seed, self.scale.sizes)


def _identity(seed: int, sizes: Sizes) -> dict[str, Any]:
    """What the bytes depend on, in the form that JSON gives back."""
    return {"version": VERSION, "seed": seed, "sizes": json.loads(json_text.dumps(asdict(sizes)))}


def _manifest(folder: Path) -> dict[str, Any] | None:
    """The manifest; None if it is missing or damaged, so that the data set has to be made again."""
    try:
        manifest = json_text.read(folder / MANIFEST)
    except UserError:
        return None
    if not isinstance(manifest, dict) or not isinstance(manifest.get("files"), dict):
        return None
    checksum = manifest.pop("checksum", None)  # older manifests have none
    return manifest if checksum in (None, fingerprint(manifest)) else None


def _intact(folder: Path, digests: Mapping[str, str]) -> bool:
    try:
        check_digests(folder, digests, "generate it again")
    except (OSError, UserError):
        return False
    return private(folder / MANIFEST, *(folder / name for name in digests))


def _generate_visibly(folder: Path, seed: int, sizes: Sizes) -> None:
    from rich.console import Console
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    with Bar(console=console, disable=not console.is_terminal, transient=True) as bar:
        task = bar.add_task("generating", total=sizes.total)
        generate(
            folder, seed, sizes, lambda what, done: bar.update(task, completed=done, description=f"generating {what}")
        )
