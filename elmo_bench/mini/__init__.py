"""The mini scale: a seeded world whose events become the data of all six tasks and the plain text for a biLM.

The same version, seed and sizes give the same bytes on any platform and Python. `generate` writes a data set, and
`MiniData` makes the one of a configuration unless it exists. The files are described in `build`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import Any

from elmo_bench.configuration.schema import Places, ScaleConfig
from elmo_bench.mini.bilm import MiniBilm
from elmo_bench.mini.build import FORMATS, SPLITS, VERSION, Builder, Progress, Sizes
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage import json_text
from elmo_bench.system.storage.files import write_bytes
from elmo_bench.system.storage.hashing import fingerprint
from elmo_bench.system.storage.integrity import check_digests
from elmo_bench.system.storage.locks import held
from elmo_bench.system.storage.owners import private

MANIFEST = "mini.json"
TEXT = ("lm/train.txt", "lm/dev.txt", "lm/test.txt", "lm/senses.tsv")
TASKS = {"sst5": "sst"}  # tasks whose folder has another name

__all__ = ["MANIFEST", "VERSION", "MiniBilm", "MiniData", "Sizes", "ensure_data", "generate"]


def generate(
    folder: str | PathLike[str],
    seed: int = 1,
    sizes: Sizes | Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    tasks: Iterable[str] = tuple(FORMATS),
    kept: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Writes a data set into a folder, file by file; `mini.json` is written last and marks it as complete.

    Args:
        folder: the folder, created if necessary; other files in it are left alone.
        seed: another seed gives another world.
        sizes: changes to the defaults of `Sizes`.
        progress: called from time to time with what is being written and how many of `Sizes.total` units are done.
        tasks: those whose data are written, beside the text.
        kept: sha256 of files that are there already and are not written again.

    Returns:
        The sha256 of each file.

    Raises:
        UserError: invalid sizes, or a folder that is not writable.
    """
    sizes = sizes if isinstance(sizes, Sizes) else Sizes.of(sizes)
    folder, digests = Path(folder), dict(kept or {})
    for name, text in Builder(seed, sizes, progress).files(tasks, text=not digests.keys() >= set(TEXT)):
        data = text.encode()
        digests[name] = hashlib.sha256(data).hexdigest()
        write_bytes(folder / name, data)
    manifest = {**_identity(seed, sizes), "files": dict(sorted(digests.items()))}
    manifest["checksum"] = fingerprint(manifest)
    write_bytes(folder / MANIFEST, (json_text.dumps(manifest, indent=1) + "\n").encode())
    return digests


def ensure_data(
    folder: str | PathLike[str],
    seed: int = 1,
    sizes: Sizes | Mapping[str, Any] | None = None,
    tasks: Iterable[str] = tuple(FORMATS),
) -> Path:
    """Returns the folder with the data set; what is missing, damaged, or may be somebody else's is generated, with a
    progress bar. Of several processes one generates it and the others wait.

    Raises:
        UserError: the folder contains mini data of another seed or version, or of other sizes.
    """
    folder, tasks = Path(folder), tuple(tasks)
    sizes = sizes if isinstance(sizes, Sizes) else Sizes.of(sizes)
    if _missing(folder, seed, sizes, tasks)[0] is None:
        return folder
    with held(folder, f"another process is generating the data in {folder}; waiting for it"):
        missing, kept = _missing(folder, seed, sizes, tasks)
        if missing is not None:
            _generate_visibly(folder, seed, sizes, missing, kept)
    return folder


def mend(folder: str | PathLike[str]) -> None:
    """Generates a data set again if a file in it is damaged; leaves any folder that is not one alone.

    Raises:
        UserError: the manifest itself is damaged, or another version of this code generated the files.
    """
    folder = Path(folder)
    if (folder / MANIFEST).is_file():
        if (manifest := _manifest(folder)) is None:
            raise UserError("damaged; generate the data again into this folder", folder / MANIFEST)
        tasks = [task for task, made in FORMATS.items() if made.path.format("train") in manifest["files"]]
        ensure_data(folder, manifest["seed"], manifest["sizes"], tasks)


class MiniData:
    """Makes the data of `scale=mini`, at `scale.folder`: the text, and the data of the task of the run.

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
        only = TASKS.get(self.scale.only or "", self.scale.only)
        return ensure_data(
            self.scale.folder, self.scale.seed, self.scale.sizes, (only,) if only in FORMATS else tuple(FORMATS)
        )


def _identity(seed: int, sizes: Sizes) -> dict[str, Any]:
    """What the bytes depend on, in the form that JSON gives back."""
    return {"version": VERSION, "seed": seed, "sizes": json.loads(json_text.dumps(asdict(sizes)))}


def _missing(
    folder: Path, seed: int, sizes: Sizes, tasks: tuple[str, ...]
) -> tuple[tuple[str, ...] | None, dict[str, str]]:
    """The tasks whose files have to be written (none of them: only the text; None: nothing), and the sha256 of files
    that may stay. Raises `UserError` for another data set.
    """
    identity, manifest = _identity(seed, sizes), _manifest(folder)
    if manifest and {key: manifest.get(key) for key in identity} != identity:
        raise UserError(
            "contains mini data of another seed, size or version; delete it or choose another folder", folder
        )
    files = manifest["files"] if manifest else {}
    if not _intact(folder, files):
        there = [task for task, made in FORMATS.items() if made.path.format("train") in files]
        return tuple(dict.fromkeys([*there, *tasks])), {}
    missing = tuple(task for task in tasks if any(FORMATS[task].path.format(split) not in files for split in SPLITS))
    return missing if missing or not files.keys() >= set(TEXT) else None, files


def _manifest(folder: Path) -> dict[str, Any] | None:
    """The manifest; None if it is missing or damaged, so that the data set has to be made again."""
    try:
        manifest = json_text.read(folder / MANIFEST)
    except UserError:
        return None
    if not isinstance(manifest, dict) or not isinstance(manifest.get("files"), dict):
        return None
    return manifest if manifest.pop("checksum", None) == fingerprint(manifest) else None


def _intact(folder: Path, digests: Mapping[str, str]) -> bool:
    try:
        check_digests(folder, digests, "generate it again")
    except (OSError, UserError):
        return False
    return not digests or private(folder / MANIFEST, *(folder / name for name in digests))


def _generate_visibly(folder: Path, seed: int, sizes: Sizes, tasks: tuple[str, ...], kept: Mapping[str, str]) -> None:
    from rich.console import Console
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    with Bar(console=console, disable=not console.is_terminal, transient=True) as bar:
        task = bar.add_task("generating", total=sizes.total)

        def show(what: str, done: int) -> None:
            bar.update(task, completed=done, description=f"generating {what}")

        generate(folder, seed, sizes, show, tasks, kept)
