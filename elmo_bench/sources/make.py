"""The files of a data set, made of its sources: complete, with the digests of conf/data, or not at all."""

from __future__ import annotations

import hashlib
import lzma
import shutil
from collections.abc import Mapping
from pathlib import Path

from hydra.utils import get_object

from elmo_bench.sources.fetch import SourcePlaces, obtain
from elmo_bench.sources.pages import DataSet
from elmo_bench.system import code
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage import integrity
from elmo_bench.system.storage.disk import writing
from elmo_bench.system.storage.files import replacing
from elmo_bench.system.storage.hashing import content_sha256


def is_made(page: DataSet, root: Path) -> bool:
    """Whether all files of a data set are there and as they should be."""
    return all(_is_right(root / name, page.files.get(name)) for name in page.targets)


def _is_right(path: Path, digest: str | None) -> bool:
    if not path.is_file():
        return False
    if digest is None:
        return integrity.is_as_noted(path)
    try:
        return content_sha256(path) == digest
    except UserError:  # damaged: it is made again
        return False


def make(page: DataSet, root: Path, places: SourcePlaces) -> None:
    """Fetches the sources of a data set, and writes its files.

    Args:
        page: the configuration file of the data set.
        root: the folder below which the files go.
        places: where the sources come from.

    Raises:
        UserError: a source cannot be had or is not the right one; a file that is made of it has another digest.
    """
    folders = {name: obtain(source, places) for name, source in page.sources.items()}
    if page.convert is not None:
        _write_texts(page, root, get_object(code.located(page.convert))(folders))
    for name, origin in page.copy.items():
        source, _, path = origin.partition("/")
        _copy(folders[source] / path, root / name, page.files.get(name))


def _write_texts(page: DataSet, root: Path, texts: Mapping[str, str]) -> None:
    """Writes the files once all of them are known to be right."""
    contents = {name: text.encode() for name, text in texts.items()}
    for name, content in contents.items():
        _compare(root / name, hashlib.sha256(content).hexdigest(), page.files[name])
    for name, content in contents.items():
        _folder(root / name)
        with replacing(root / name, "wb") as file:
            file.write(lzma.compress(content) if name.endswith(".xz") else content)


def _copy(source: Path, target: Path, digest: str | None) -> None:
    """Copies a file, packed if its new name ends in .xz; one whose digest nobody knows has it noted beside it."""
    if not source.is_file():
        raise UserError("its archive has no such file", source)
    if digest is not None:
        _compare(target, content_sha256(source), digest)
    _folder(target)
    with open(source, "rb") as content, replacing(target, "wb") as file:
        if target.suffix == ".xz":
            with lzma.open(file, "wb") as packed:
                shutil.copyfileobj(content, packed)
        else:
            shutil.copyfileobj(content, file)
    if digest is None:
        integrity.note(target)


def _compare(path: Path, found: str, expected: str) -> None:
    if found != expected:
        raise UserError(
            f"not written: its sources are as in conf/data, and yet its content has the sha256 {found[:12]}... and "
            f"not {expected[:12]}...; please report this",
            path,
        )


def _folder(path: Path) -> None:
    with writing(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
