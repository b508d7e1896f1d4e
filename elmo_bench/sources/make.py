"""The files of a data set, made from its sources: complete, with the digests of conf/data, or not at all.

Data that may not be fetched are counted, to check whether the user's copy is complete. The licences are shown and
written before anything else.
"""

from __future__ import annotations

import hashlib
import lzma
import shutil
from collections import Counter
from collections.abc import Mapping
from itertools import chain
from pathlib import Path

from hydra.utils import get_object

from elmo_bench.sources.fetch import SourcePlaces, made_folder, missing, obtain
from elmo_bench.sources.pages import DataSet, Given, makers
from elmo_bench.system import code
from elmo_bench.system.errors import UserError
from elmo_bench.system.places import LICENCES
from elmo_bench.system.storage import integrity
from elmo_bench.system.storage.disk import writing
from elmo_bench.system.storage.files import replacing, write_bytes, write_text
from elmo_bench.system.storage.hashing import content_sha256
from elmo_bench.text.columns import read_blocks
from elmo_bench.text.conll2012 import find_files

HEAD = "The data sets in this folder, their sources and licences. Keep this file with them, as most licences ask.\n"


def with_needed(
    chosen: Mapping[str, DataSet], known: Mapping[str, DataSet], roots: Mapping[str, Path], places: SourcePlaces
) -> dict[str, DataSet]:
    """The chosen data sets, after the data sets that they are made from, if those files are missing."""
    wanted = [page for page in chosen.values() if not is_made(page, roots[page.root])]
    absent = [one for page in wanted for one in page.sources.values() if one.is_made and not made_folder(one, places)]
    needed = {name: page for source in absent for name, page in makers(known, source).items()}
    return {**needed, **chosen}


def made_or_checked(page: DataSet, root: Path, places: SourcePlaces) -> str:
    """Makes a data set, unless it exists or the user must provide it, and says which."""
    if page.given is not None:
        check_given(page.given, root)
    elif not is_made(page, root):
        if places.offline is not None and (absent := missing(page.sources.values(), places.offline)):
            raise UserError("files are missing", faults=absent)
        make(page, root, places)
        return "made"
    return "complete already"


def is_made(page: DataSet, root: Path) -> bool:
    """Whether all files of a data set exist and are correct."""
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
        root: the folder for the files.
        places: the places of the sources.
    """
    folders = {name: obtain(source, places) for name, source in page.sources.items()}
    texts = {} if page.convert is None else get_object(code.located(page.convert))(folders)
    contents = {name: text.encode() for name, text in texts.items()}
    for name, content in contents.items():  # nothing is written before all are checked
        _compare(root / name, hashlib.sha256(content).hexdigest(), page.files[name])
    for name, content in contents.items():
        write_bytes(root / name, lzma.compress(content) if name.endswith(".xz") else content)
    for name, origin in page.copied.items():
        source, _, path = origin.partition("/")
        _copy(folders[source] / path, root / name, page.files.get(name))


def _copy(source: Path, target: Path, digest: str | None) -> None:
    """Copies a file, compressed if its new name ends in .xz; an unknown digest is saved beside it."""
    if not source.is_file():
        raise UserError("its archive has no such file", source)
    if digest is not None:
        _compare(target, content_sha256(source), digest)
    with writing(target.parent):
        target.parent.mkdir(parents=True, exist_ok=True)
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
            f"not written: its sources are as in conf/data, but its content has the sha256 {found[:12]}..., "
            f"not {expected[:12]}...; please report this",
            path,
        )


def check_given(given: Given, root: Path) -> None:
    """Checks the counts of files.

    Args:
        given: the expected counts.
        root: the folder of `given.folder`.
    """
    folder = root / given.folder
    if not folder.is_dir():
        raise UserError(f"not there; it cannot be fetched. {given.get}", folder)
    for name, expected in given.counts.items():
        path = folder / name
        if not path.exists():
            raise UserError(f"missing. {given.get}", path)
        found = count(path)
        if wrong := [f"{n:,} {unit} (not {found[unit]:,})" for unit, n in expected.items() if found[unit] != n]:
            raise UserError(f"expected {', '.join(wrong)}; is the copy complete?", path)


def count(path: Path) -> Counter[str]:
    """The counts of documents, sentences and tokens of the column files below a folder; of a file, the last two."""
    files, how = (find_files(path), {"comment": "#", "apart": True}) if path.is_dir() else ([path], {})
    found: Counter[str] = Counter()
    for block in chain.from_iterable(read_blocks(file, widths="sentence", **how) for file in files):
        begun = any(comment.startswith("#begin document") for comment in block.comments)
        found.update(documents=begun, sentences=bool(block.rows), tokens=len(block.rows))
    return found


def write_licences(pages: Mapping[str, DataSet], added: Mapping[str, DataSet], roots: Mapping[str, Path]) -> None:
    """Writes the file LICENCES for the existing data sets and those about to be made.

    Args:
        pages: all data sets.
        added: the data sets to make.
        roots: the root folders by name; the file goes to `data_root`.
    """
    entries = [HEAD]
    for name, page in pages.items():
        if name not in added and not any((roots[page.root] / target).exists() for target in page.targets):
            continue
        origins = [source.origin for source in page.sources.values()] or [page.given.get if page.given else ""]
        lines = [f"{page.title} ({name})", f"  licence: {page.licence}", *(f"  source: {each}" for each in origins)]
        lines += [f"  changes: {page.changes}", f"  files: {', '.join(page.targets) or 'not passed on'}", ""]
        entries.append("\n".join(lines))
    write_text(roots["data_root"] / LICENCES, "\n".join(entries))
