"""The files of pre-trained word vectors on this machine: below `vectors_root`, or in an installed package."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from elmo_bench.configuration.schema import RunConfig, VectorSetConfig
from elmo_bench.system import places
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage import limits


class VectorFiles(NamedTuple):
    """The files of a table of word vectors."""

    vectors: Path  # words and numbers in GloVe's text format; with `words`, only numbers (text or .npy)
    words: Path | None = None  # one word per line, or a .parquet file with one column


def located(run: RunConfig) -> list[tuple[VectorSetConfig, VectorFiles]]:
    """The vector sets of a run with their files; missing ones are an error."""
    pairs = []
    for block in run.sets:
        table = locate(block, run.vectors_root)
        if table is None:
            raise UserError(missing(block, run.vectors_root))
        pairs.append((block, table))
    return pairs


def locate(wanted: VectorSetConfig, root: str | None) -> VectorFiles | None:
    """The files of a vector set below `root`, or in the package that contains it; None if it is not installed."""
    words = wanted.words and Path(root or "", wanted.words)
    for name in wanted.files:
        vectors = Path(root or "", name)
        if vectors.is_file() and (not words or words.is_file()):
            return VectorFiles(vectors, words or None)
    if wanted.package is None:
        return None
    folder = places.packaged(wanted.package)
    vectors, words = (folder / name for name in wanted.package_files)
    return VectorFiles(vectors, words) if vectors.is_file() and words.is_file() else None


def missing(wanted: VectorSetConfig, root: str | None) -> str:
    """The message about a missing vector set: its files, their source, and how to name them."""
    first, *others = wanted.files or ["no file"]
    path = Path(root or "", first)
    besides = (f" and {wanted.words}" if wanted.words else "") + (f" (or {', '.join(others)})" if others else "")
    where = f"get it: {wanted.download}" if wanted.download else "check vectors.sets"
    return (
        f"{path}{besides}: {limits.absent(path)}: the word vectors {wanted.name} "
        f"(licence: {wanted.licence or 'unknown'}); {where}; vectors_root=FOLDER names another folder, and "
        "vectors=random needs none"
    )
