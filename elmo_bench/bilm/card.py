"""The card of a biLM trained here: its training data, and the sha256 of its files, compared before use."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from functools import cache
from os import PathLike
from pathlib import Path
from typing import Any

from elmo_bench.system import places
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage import json_text
from elmo_bench.system.storage.files import private, write_text
from elmo_bench.system.storage.integrity import check_digests, check_note, digests
from elmo_bench.system.storage.json_text import read_sealed, sealed
from elmo_bench.text import hub

CARD = "card.json"
FILES = ("options.json", "weights.hdf5", "softmax.safetensors", "vocabulary.txt")
WEIGHTS = "weights.hdf5", "weights.safetensors", "*weights.hdf5", "*weights.safetensors"
REMEDY = "force=true trains it again"
RESTORE = "restore it (git checkout, or download it again), or train the biLM again"


def write_card(folder: Path, card: Mapping[str, Any]) -> dict[str, Any]:
    """Writes the card of the files in a folder; returns it with their sha256 (`files`) and its own checksum."""
    files = digests(folder, [name for name in FILES if (folder / name).is_file()])
    text = sealed(json_text.dumps({**card, "files": files}, indent=2) + "\n")
    write_text(folder / CARD, text)
    return json.loads(text)


def read_card(folder: Path, remedy: str = RESTORE) -> dict[str, Any]:
    """The card in a folder, without its checksum."""
    return read_sealed(folder / CARD, "card of a biLM", remedy)


def check_files(*paths: str | PathLike[str]) -> dict[Path, str]:
    """Compares files of biLMs with the cards or notes beside them; files without either are not checked.

    Whichever file is opened, all existing files that its card names are compared: a package may omit the softmax, but
    a biLM with one damaged file is not used at all.

    Returns:
        The sha256 of the files that a card names.
    """
    given = [Path(path) for path in paths]
    named = {folder: _files(folder) for folder in dict.fromkeys(path.parent for path in given)}
    for folder, files in named.items():
        if wanted := {path.name for path in given if path.parent == folder} & files.keys():
            there = {name: digest for name, digest in files.items() if name in wanted or (folder / name).is_file()}
            check_digests(folder, there, RESTORE)
    for path in given:
        if path.name not in named[path.parent]:
            check_note(path, RESTORE)
    return {path: digest for path in given if (digest := named[path.parent].get(path.name))}


def check_folder(folder: Path, remedy: str = RESTORE) -> None:
    """Compares all files that the card in a folder names. Raises `UserError` if one is missing, damaged or changed."""
    check_digests(folder, _files(folder), remedy)


def files_of(name: str | PathLike[str]) -> tuple[Path, Path]:
    """The options and the weights of a biLM."""
    named = places.shipped(places.ROOT / "models", str(name)) if len(Path(name).parts) == 1 else Path(name)
    folder = named if (named / FILES[0]).is_file() else places.expanded(name)
    if hub.is_model(str(name)):
        folder = hub.model_folder(str(name))
    if not folder.is_dir():
        other = (
            '"open" and "mini" come with the project; for a tuned biLM give its folder, for any other its files, as '
            "options= and weights=, in Python BiLM.from_files(options, weights)"
        )
        raise UserError(f"{name}: there is no biLM of that name, and no such folder; {other}")
    found = []
    for kind, patterns in (("options", ("options.json", "*options.json")), ("weights", WEIGHTS)):
        there = next((paths for pattern in patterns if (paths := sorted(folder.glob(pattern)))), [])
        if len(there) != 1:
            problem = f"{len(there)} files {patterns[-1]}" if there else f"no file {' or '.join(patterns)}"
            raise UserError(f"{problem}, and one is needed: BiLM.from_files(options, weights) takes any {kind}", folder)
        found += there
    return found[0], found[1]


def is_private(folder: Path) -> bool:
    """Whether nobody else could have written the biLM in a folder of the cache."""
    return private(*(folder / name for name in (*FILES, CARD)))


def _files(folder: Path) -> dict[str, str]:
    """The sha256 of each file, by name, from the card in a folder; empty without a card.

    Also empty if the card lacks them, which is reported once.
    """
    card = read_card(folder) if (folder / CARD).exists() else {"files": {}}
    if "files" not in card:
        _say(f"{folder / CARD}: does not name the sha256 of its biLM's files, so they cannot be checked for damage")
    files = card.get("files", {})
    if not isinstance(files, dict) or not all(re.fullmatch("[0-9a-f]{64}", str(each)) for each in files.values()):
        raise UserError(f"damaged: `files` does not name the sha256 of each file; {RESTORE}", folder / CARD)
    return files


@cache
def _say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)
