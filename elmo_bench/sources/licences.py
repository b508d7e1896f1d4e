"""The licences of the data, shown and written down before anything else is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from elmo_bench.sources.pages import DataSet
from elmo_bench.system.places import LICENCES
from elmo_bench.system.storage.files import write_text

HEAD = "The data sets in this folder, their sources and licences. Keep this file with them, as most licences ask.\n"


def shown(pages: Mapping[str, DataSet]) -> str:
    """A line for each data set."""
    return "\n".join(f"{name}: {page.title}. Licence: {page.licence}" for name, page in pages.items())


def record(pages: Mapping[str, DataSet], added: Mapping[str, DataSet], roots: Mapping[str, Path]) -> None:
    """Writes the file LICENCES of the data sets that are there, and of those that will be.

    Args:
        pages: all data sets.
        added: those to be made.
        roots: the folders below which files lie, by their names; the file goes to `data_root`.
    """
    entries = [HEAD]
    for name, page in pages.items():
        if name in added or any((roots[page.root] / target).exists() for target in page.targets):
            entries.append(_entry(name, page))
    write_text(roots["data_root"] / LICENCES, "\n".join(entries))


def _entry(name: str, page: DataSet) -> str:
    origins = [source.origin for source in page.sources.values()] or [page.given.get if page.given else ""]
    lines = [f"{page.title} ({name})", f"  licence: {page.licence}", *(f"  source: {origin}" for origin in origins)]
    lines += [f"  changes: {page.changes}", f"  files: {', '.join(page.targets) or 'not passed on'}"]
    return "\n".join(lines) + "\n"
