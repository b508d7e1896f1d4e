"""The files of a mini data set in their folder: made unless they are there, whole, and nobody else's."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import Any

from elmo_bench.configuration.schema import Places, ScaleConfig
from elmo_bench.mini.paths import FILES, TEXT, VERSION, Sizes, edited_language, edited_tables_named
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage import json_text
from elmo_bench.system.storage.files import private, write_text
from elmo_bench.system.storage.hashing import sha256
from elmo_bench.system.storage.locks import held

MANIFEST = "mini.json"  # names the sha256 of each file; written last


class MiniData:
    """Makes the data of `scale=mini`, at `scale.folder`: the text, and the data of the task of the run.

    Raises:
        UserError: the configuration asks for another version than this code generates, or as `ensure_data`.
    """

    files = (*(name for names in FILES.values() for name in names), *TEXT)

    def __init__(self, scale: ScaleConfig, places: Places):
        self.scale = scale

    def recipe(self) -> dict[str, Any]:
        """What the bytes depend on."""
        return {"version": self.scale.version, "seed": self.scale.seed, "sizes": self.scale.sizes, **edited_language()}

    def make(self) -> Path:
        """The folder with the data set in it."""
        assert self.scale.folder is not None
        if self.scale.version != VERSION:
            raise UserError(
                f"scale.version={self.scale.version} (conf/scale/mini.yaml): this code generates version {VERSION}; "
                "check out the other one"
            )
        only = (self.scale.only or "").removesuffix("5")  # the files of sst5 are called sst
        tasks = [only] if only in FILES else FILES
        return ensure_data(self.scale.folder, self.scale.seed, self.scale.sizes, tasks)


def ensure_data(
    folder: str | PathLike[str],
    seed: int = 1,
    sizes: Mapping[str, Any] | None = None,
    tasks: Iterable[str] = tuple(FILES),
) -> Path:
    """Makes a data set: what is missing, damaged, or may be somebody else's. Of several processes one generates it and
    the others wait.

    Args:
        folder: the folder, created if necessary; other files in it are left alone.
        seed: another seed gives another world.
        sizes: changes to the defaults of `Sizes`.
        tasks: those whose data are made, beside the text.

    Returns:
        The folder.

    Raises:
        UserError: invalid sizes, the folder contains mini data of another seed, version, language or sizes, or the
            tables of an edited language do not fit together.
    """
    folder, known = Path(folder), Sizes.of(sizes)
    needed = {"": TEXT} | {task: FILES[task] for task in tasks}
    wanted = {name for names in needed.values() for name in names}
    plain = json.loads(json_text.dumps(asdict(known)))
    identity = {"version": VERSION, "seed": seed, "sizes": plain, **edited_language()}
    if wanted <= _kept(folder, identity).keys():
        return folder
    with held(folder, "data: being generated once for both runs", wait=True):
        files = _kept(folder, identity)
        missing = [part for part, names in needed.items() if not files.keys() >= set(names)]
        if missing:
            for name, text in list(_generated(seed, known, missing)):  # nothing is written if the language has a fault
                write_text(folder / name, text)
                files[name] = sha256(folder / name)
            manifest = {**identity, "files": dict(sorted(files.items()))}
            write_text(folder / MANIFEST, json_text.sealed(json_text.dumps(manifest, indent=1) + "\n"))
    return folder


def mend(folder: str | PathLike[str]) -> None:
    """Generates files of a data set again if they are damaged; leaves any folder that is not one alone.

    Raises:
        UserError: the manifest itself is damaged, or another version of this code generated the files.
    """
    folder = Path(folder)
    if (folder / MANIFEST).is_file():
        manifest = _manifest(folder)
        tasks = [task for task, names in FILES.items() if names[0] in manifest["files"]]
        ensure_data(folder, manifest["seed"], manifest["sizes"], tasks)


def _kept(folder: Path, identity: Mapping[str, Any]) -> dict[str, str]:
    """The sha256 of those files of the data set that are as they were written, and that nobody else could have written.

    Raises:
        UserError: the folder contains another data set.
    """
    try:
        manifest = _manifest(folder)
    except UserError:  # missing or damaged
        return {}
    if {key: value for key, value in manifest.items() if key != "files"} != identity:
        raise UserError(
            "contains mini data of another seed, size, version or language (elmo_bench/mini/language); delete it, or "
            "choose another scale.folder (conf/scale/mini.yaml)",
            folder,
        )
    if not private(folder / MANIFEST):
        return {}
    return {name: digest for name, digest in manifest["files"].items() if _is_intact(folder / name, digest)}


def _is_intact(path: Path, digest: str) -> bool:
    try:
        return private(path) and sha256(path) == digest
    except (OSError, UserError):
        return False


def _manifest(folder: Path) -> dict[str, Any]:
    """Raises `UserError` if the manifest is missing or damaged."""
    remedy = "generate the data again into this folder"
    return json_text.read_sealed(folder / MANIFEST, "manifest of generated data", remedy, always=True)


def _generated(seed: int, sizes: Sizes, parts: list[str]) -> Iterator[tuple[str, str]]:
    """The files of the parts, of which "" is the text, with a line that tells how far it is."""
    from rich.console import Console

    with edited_tables_named(), Console(stderr=True).status("generating the data of scale=mini") as status:
        from elmo_bench.mini.build import Builder

        for name, text in Builder(seed, sizes).files(parts, text="" in parts):
            yield name, text
            status.update(f"generating the data of scale=mini: {name} is done")
