"""Fetches the data sets of a scale: `elmo-bench data scale=open task=all data_root=FOLDER`, or `make data`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal

from elmo_bench.commands.command import Argument, Command, whole
from elmo_bench.system import places
from elmo_bench.system.errors import UserError

COMMAND = Command(
    (
        Argument("scale", "open or paper (mini is generated)", "open", kind=Literal["mini", "open", "paper"]),
        Argument("task", "a task, or all", "all"),
        Argument("sets", "data sets by name instead, with commas: the files in conf/data", None, "NAMES"),
        Argument("data_root", f"folder to write to; by default DATA_ROOT or {places.ROOT / 'data'}", None, "FOLDER"),
        Argument(
            "source",
            "folder with the archives and files of the sources, or an older data folder; nothing is fetched then",
            None,
            "FOLDER",
        ),
        Argument("mirror", "address of a server with such a folder, which is asked first", None, "URL"),
        Argument("stall", "seconds without a byte after which a connection is tried again", 30, kind=whole(1, 3600)),
        Argument("models_root", "folder of biLMs; by default models/", None, "FOLDER"),
        Argument("vectors_root", "folder of word vectors; by default VECTORS_ROOT or models/vectors", None, "FOLDER"),
    ),
    (
        ("", "all data of scale=open"),
        ("task=ner data_root=FOLDER", "what one task needs"),
        ("sets=snli_1.0,glove.6B", "all of SNLI, and word vectors"),
        ("source=FOLDER", "without a network"),
        ("scale=paper task=ner", "says where to get CoNLL-2003, and checks it"),
    ),
    (
        "The licences are shown first, and written to the file LICENCES in the folder. Every source is pinned to a "
        "commit or a release, and what is fetched or written is compared with the sha256 in its file in conf/data. "
        "What is there already is not fetched again; an interrupted command goes on where it stopped.",
        "In the folder of source=, a repository is NAME-COMMIT.tar.gz, as GitHub calls its archive, or a folder "
        "NAME-COMMIT; other files have the name that they have on the server. If some are missing, the command "
        "lists them with their addresses.",
    ),
    again="what has been fetched is kept; the same command goes on there",
    page="data",
)
DOWNLOADS = ".downloads"  # in data_root


def main() -> None:
    """The entry point."""
    from elmo_bench.sources import make, pages
    from elmo_bench.system.storage import outputs
    from elmo_bench.system.storage.locks import held

    given = COMMAND.parse()
    if given["scale"] == "mini":
        raise UserError("scale=mini: its data are generated when they are needed; nothing is fetched")
    known = pages.load()
    chosen = pages.chosen(known, given["scale"], given["task"], given["sets"])
    roots = _roots(given)
    downloads = roots["data_root"] / DOWNLOADS
    fetching = _fetching(given, downloads)
    chosen = _needed(known, chosen, roots, fetching) | chosen
    print(make.licences(chosen), flush=True)
    outputs.scratch(downloads)
    with held(downloads, "another process fetches data into this folder; wait for it"):
        make.write_licences(known, chosen, roots)
        failures = _make_all(chosen, roots, fetching)
    if failures:
        raise UserError(failures[0]) if len(failures) == 1 else UserError("not all could be made:", faults=failures)
    outputs.remove(downloads)
    _tell_next(given, chosen, roots["data_root"])


def _roots(given: dict[str, Any]) -> dict[str, Path]:
    models = Path(given["models_root"] or places.ROOT / "models")
    return {
        "data_root": Path(given["data_root"] or os.environ.get("DATA_ROOT") or places.MADE),
        "models_root": models,
        "vectors_root": Path(given["vectors_root"] or os.environ.get("VECTORS_ROOT") or models / "vectors"),
    }


def _fetching(given: dict[str, Any], downloads: Path):
    from elmo_bench.sources.download import Patience
    from elmo_bench.sources.fetch import SourcePlaces

    offline = given["source"]
    if offline is not None and not Path(offline).is_dir():
        raise UserError("no such folder; source=FOLDER must name the one that holds the archives", offline)
    if given["mirror"] is not None and not given["mirror"].startswith(("http://", "https://")):
        raise UserError(f"mirror={given['mirror']}: an address begins with https:// or http://")
    return SourcePlaces(downloads, Path(offline) if offline else None, given["mirror"], Patience(stall=given["stall"]))


def _needed(known, chosen, roots: dict[str, Path], fetching) -> dict[str, Any]:
    """The data sets of whose files one of the chosen is made, if these files are not here."""
    from elmo_bench.sources import fetch, make, pages

    wanted = [page for page in chosen.values() if not make.is_made(page, roots[page.root])]
    made = [source for page in wanted for source in page.sources.values() if source.is_made]
    absent = [source for source in made if fetch.made_folder(source, fetching) is None]
    return {name: page for source in absent for name, page in pages.makers(known, source).items()}


def _make_all(chosen, roots: dict[str, Path], fetching) -> list[str]:
    """Makes or checks each data set; what is wrong with those that failed, and each missing file of the user's once."""
    failures = []
    for name, page in chosen.items():
        try:
            print(f"{name}: {_made(page, roots[page.root], fetching)}", flush=True)
        except UserError as error:
            failures += error.faults or [f"{name}: {error}"]
    return list(dict.fromkeys(failures))


def _made(page, root: Path, fetching) -> str:
    from elmo_bench.sources import fetch, make

    if page.given is not None:
        make.check_given(page.given, root)
    elif not make.is_made(page, root):
        if fetching.offline is not None and (absent := fetch.missing(page.sources.values(), fetching.offline)):
            raise UserError("files are missing", faults=absent)
        make.make(page, root, fetching)
        return "made"
    return "there, and as it should be"


def _tell_next(given: dict[str, Any], chosen, data_root: Path) -> None:
    root = "" if data_root == places.MADE else f" data_root={data_root}"
    for task in sorted({task for page in chosen.values() for task in page.tasks}):
        pages = [page for page in chosen.values() if task in page.tasks and given["scale"] in page.scales]
        templates = [page.settings for page in pages if page.settings and given["scale"] == "paper"]
        settings = "".join(f" {setting.format(data_root=data_root)}" for setting in templates)
        print(f"next: elmo-bench reproduce task={task} scale={given['scale']}{root}{settings}")
