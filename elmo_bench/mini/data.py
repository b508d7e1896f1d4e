"""The files of a mini data set: their identity, and their folder, in which those that are not intact are generated."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

from elmo_bench.configuration.keys import valid
from elmo_bench.configuration.schema import RunConfig, ScaleConfig
from elmo_bench.mini.files import FILES, TEXT, Sizes
from elmo_bench.system.errors import StrPath, UserError
from elmo_bench.system.storage import json_text
from elmo_bench.system.storage.files import private, write_text
from elmo_bench.system.storage.hashing import sha256
from elmo_bench.system.storage.locks import held

VERSION = 7  # of the generator; raised whenever the same seed gives different bytes
MANIFEST = "mini.json"  # names the sha256 of each file; written last
LANGUAGE = Path(__file__).parent / "language"
# The digests of the tables that come with this version of the generator.
SHIPPED = {"grammar.yaml": "fd9acb601f57f093", "reviews.yaml": "a22bdaf116b2d921", "words.yaml": "4e59dbd596c4313c"}


@cache
def edited_language() -> dict[str, Any]:
    """What an edited language adds to the identity of the data: the digests of its tables, comments aside."""
    digests = {}
    for path in sorted(LANGUAGE.glob("*.yaml")):
        lines = re.sub(r"(?m)(^| +)#.*$", "", path.read_text(encoding="utf-8")).splitlines()
        digests[path.name] = hashlib.sha256("\n".join(filter(str.strip, lines)).encode()).hexdigest()[:16]
    return {} if digests == SHIPPED else {"language": digests}


class MiniData:
    """Makes the data of `scale=mini`, at `scale.folder`: the text, and the data of the task of the run."""

    files = (*chain(*FILES.values()), *TEXT)

    def __init__(self, scale: ScaleConfig, places: RunConfig):
        self.scale = scale

    def recipe(self) -> dict[str, Any]:
        """What the bytes depend on."""
        return {"version": self.scale.version, "seed": self.scale.seed, "sizes": self.scale.sizes, **edited_language()}

    def make(self) -> Path:
        """The folder with the data set in it."""
        assert self.scale.folder is not None
        if self.scale.version != VERSION:
            given = f"scale.version={self.scale.version} (conf/scale/mini.yaml)"
            raise UserError(f"{given}: this code generates version {VERSION}; check out the other one")
        only = (self.scale.only or "").removesuffix("5")  # the files of sst5 are called sst
        return ensure_data(self.scale.folder, self.scale.seed, self.scale.sizes, [only] if only in FILES else FILES)


def ensure_data(
    folder: StrPath, seed: int = 1, sizes: Mapping[str, Any] | None = None, tasks: Iterable[str] = tuple(FILES)
) -> Path:
    """Makes the text and the data of the tasks, as far as they are missing or damaged or somebody else may have
    written them. Other files in the folder, which it returns, are left alone; `sizes` changes the defaults. Of several
    processes one generates them and the others wait.
    """
    folder, known = Path(folder), valid(Sizes, sizes or {}, "sizes")
    needed = {"": TEXT} | {task: FILES[task] for task in tasks}
    identity = {"version": VERSION, "seed": seed, "sizes": known.model_dump(mode="json"), **edited_language()}
    if {*chain(*needed.values())} <= _intact(folder, identity).keys():
        return folder
    with held(folder, "data: being generated once for both runs", wait=True):
        files = _intact(folder, identity)
        if missing := [part for part, names in needed.items() if not files.keys() >= set(names)]:
            for name, text in _generated(seed, known, missing).items():
                write_text(folder / name, text)
                files[name] = sha256(folder / name)
            manifest = {**identity, "files": dict(sorted(files.items()))}
            write_text(folder / MANIFEST, json_text.sealed(json_text.dumps(manifest, indent=1) + "\n"))
    return folder


def _intact(folder: Path, identity: Mapping[str, Any]) -> dict[str, str]:
    """The sha256 of the files that are as they were written, and that nobody else could have written. A folder that
    contains another data set is an error.
    """
    try:
        manifest = _manifest(folder)
    except UserError:  # missing or damaged
        return {}
    files = manifest.pop("files")
    if manifest != identity:
        other = "contains mini data of another seed, size, version or language (elmo_bench/mini/language)"
        raise UserError(f"{other}; delete it, or choose another scale.folder (conf/scale/mini.yaml)", folder)
    trusted = [name for name in files if private(folder / MANIFEST, folder / name) and (folder / name).is_file()]
    return {name: files[name] for name in trusted if sha256(folder / name) == files[name]}


def _manifest(folder: Path) -> dict[str, Any]:
    remedy = "generate the data again into this folder"
    return json_text.read_sealed(folder / MANIFEST, "manifest of generated data", remedy, always=True)


def mend(folder: Path) -> None:
    """Generates damaged files of a data set again, by its own manifest; leaves any folder without one alone."""
    if (folder / MANIFEST).is_file():
        manifest = _manifest(folder)
        tasks = [task for task, names in FILES.items() if names[0] in manifest["files"]]
        ensure_data(folder, manifest["seed"], manifest["sizes"], tasks)


def _generated(seed: int, sizes: Sizes, parts: list[str]) -> dict[str, str]:
    """The texts of all files of the tasks and, for the part "", of the plain text, by their names. A fault in edited
    tables of the language, such as a missing word, is one line that names their files.
    """
    from rich.console import Console

    texts = {}
    try:
        with Console(stderr=True).status("generating the data of scale=mini") as status:
            from elmo_bench.mini.build import Builder

            for name, text in Builder(seed, sizes).files(parts, text="" in parts):
                texts[name] = text
                status.update(f"generating the data of scale=mini: {name} is done")
    except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
        found = edited_language().get("language", SHIPPED)
        if not (edited := sorted({name for name, _ in found.items() ^ SHIPPED.items()})):
            raise  # a fault of the generator itself
        fault = f"the tables of the language do not fit together ({type(error).__name__}: {error}); correct them"
        raise UserError(fault, LANGUAGE / ", ".join(edited)) from error
    return texts
