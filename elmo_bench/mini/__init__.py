"""The mini scale: a seeded world whose events become the data of all six tasks and the plain text for a biLM.

The same version, seed and sizes give the same bytes on any platform and Python. `generate` writes a data set, and
`MiniData` makes the one of a configuration unless it exists. The files are described in `build`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import Any

from elmo_bench.configuration.schema import Places, ScaleConfig
from elmo_bench.mini.bilm import MiniBilm
from elmo_bench.mini.build import VERSION, Builder, Progress, Sizes
from elmo_bench.system.errors import UserError
from elmo_bench.system.files import write_bytes

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
    write_bytes(folder / MANIFEST, (json.dumps(manifest, indent=1) + "\n").encode())
    return digests


def ensure_data(folder: str | PathLike[str], seed: int = 1, sizes: Sizes | Mapping[str, Any] | None = None) -> Path:
    """Returns the folder with the data set, which is generated (with a progress bar) if it is missing or damaged.

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
        """The folder with the data set in it."""
        if self.scale.version != VERSION:
            raise UserError(
                f"scale.version={self.scale.version}: this code generates version {VERSION}; check out the other one"
            )
        assert self.scale.folder is not None
        return ensure_data(self.scale.folder, self.scale.seed, self.scale.sizes)


def _identity(seed: int, sizes: Sizes) -> dict[str, Any]:
    """What the bytes depend on, in the form that JSON gives back."""
    return {"version": VERSION, "seed": seed, "sizes": json.loads(json.dumps(asdict(sizes)))}


def _manifest(folder: Path) -> dict[str, Any] | None:
    """The manifest; None if the data set is missing or incomplete."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return manifest if isinstance(manifest, dict) and isinstance(manifest.get("files"), dict) else None


def _intact(folder: Path, digests: Mapping[str, str]) -> bool:
    try:
        return all(hashlib.sha256((folder / name).read_bytes()).hexdigest() == d for name, d in digests.items())
    except OSError:
        return False


def _generate_visibly(folder: Path, seed: int, sizes: Sizes) -> None:
    from rich.console import Console
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    with Bar(console=console, disable=not console.is_terminal, transient=True) as bar:
        task = bar.add_task("generating", total=sizes.total)
        generate(
            folder, seed, sizes, lambda what, done: bar.update(task, completed=done, description=f"generating {what}")
        )
