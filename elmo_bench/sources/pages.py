"""The files in conf/data: one for each data set, with its sources, its licence and the files made from it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Literal
from urllib.parse import quote, urlsplit

from omegaconf import OmegaConf
from pydantic import Field

from elmo_bench.configuration.keys import Keys, Text, valid
from elmo_bench.system.console import choices
from elmo_bench.system.errors import UserError
from elmo_bench.system.places import CONF
from elmo_bench.system.storage import yaml_text


class Source(Keys):
    """A repository at a commit (some of its files, or an archive of all), or a single file at an address.

    With neither, it consists of files of other data sets, which are in the data folder or are made first.
    """

    repository: Text | None = None  # OWNER/NAME on GitHub
    commit: Text | None = None
    files: dict[str, str] = {}  # path -> sha256 of the (unpacked) content: fetched one by one
    members: list[Text] = []  # patterns of paths in an archive; of a repository: fetched as one
    url: Text | None = None
    sha256: Text | None = None  # of the file at `url`; of a repository's members: of the list that sha256sum prints
    megabytes: int = 200  # limit on both the fetched and the unpacked size

    @property
    def name(self) -> str:
        """The name of the fetched source: NAME-COMMIT, as in GitHub's archives, or the file's own name."""
        if self.url is not None:
            return PurePosixPath(urlsplit(self.url).path).name
        return f"{str(self.repository).rpartition('/')[2]}-{self.commit}"

    @property
    def folder(self) -> str:
        """The path of the source's files, below the folder of downloads or the user's folder."""
        if self.url is None:
            return self.name
        return f"{self.name}.unpacked" if self.members else "."

    @property
    def is_made(self) -> bool:
        """Whether it consists of files of other data sets."""
        return self.url is None and self.repository is None

    @property
    def limit(self) -> int:
        """The limit in bytes."""
        return self.megabytes * 1_000_000

    def downloads(self) -> dict[str, tuple[str, str | None]]:
        """For the path of each fetched file below the folder of downloads: its address, and its sha256 if known."""
        if self.url is not None:
            return {self.name: (self.url, self.sha256)}
        if self.members:  # an archive, which the host may repack at any time, so only its content has a known sha256
            return {
                f"{self.name}.tar.gz": (f"https://codeload.github.com/{self.repository}/tar.gz/{self.commit}", None)
            }
        raw = f"https://raw.githubusercontent.com/{self.repository}/{self.commit}"
        return {f"{self.name}/{path}": (f"{raw}/{quote(path)}", digest) for path, digest in self.files.items()}

    @property
    def origin(self) -> str:
        """The source in readable form."""
        if self.is_made:
            return ", ".join(self.files)
        return self.url or f"https://github.com/{self.repository} @ {self.commit}"


class Given(Keys):
    """Data that may not be redistributed: what to get, from whom, and counts that show that it is complete."""

    get: Text
    folder: Text  # below data_root
    counts: dict[Text, dict[Text, int]] = {}  # of a file or folder: documents, sentences, tokens


class DataSet(Keys):
    """A configuration file of a data set."""

    title: Text
    scales: list[Text]
    tasks: list[Text] = []  # empty: belongs to no task, fetched with task=all
    licence: Text
    changes: Text = "none"  # the files' differences from their source, as licences require
    root: Literal["data_root", "models_root", "vectors_root"] = "data_root"
    sources: dict[Text, Source] = {}
    convert: Text | None = None  # a function of the folders of the sources that returns the text of each file
    copied: dict[str, str] = Field(default={}, alias="copy")  # file -> SOURCE/path: copied unchanged
    files: dict[str, str] = {}  # file below the root -> sha256 of its (unpacked) content
    given: Given | None = None
    settings: Text = ""  # the settings with which a run at scale=paper uses the files

    @property
    def targets(self) -> list[str]:
        """The files to make, below the root."""
        return [*self.files, *(name for name in self.copied if name not in self.files)]


def load(folder: Path = CONF / "data") -> dict[str, DataSet]:
    """All data sets, by the names of their configuration files; do not change them, since each file is read once."""
    return {path.stem: _page(path, path.stat().st_mtime_ns) for path in sorted(folder.glob("*.yaml"))}


@cache
def _page(path: Path, changed: int) -> DataSet:
    return valid(DataSet, OmegaConf.to_container(yaml_text.read(path), resolve=True), path=path)


def makers(pages: Mapping[str, DataSet], source: Source) -> dict[str, DataSet]:
    """The data sets whose files form a source."""
    return {name: page for name, page in pages.items() if page.files.keys() & source.files.keys()}


def chosen(pages: dict[str, DataSet], scale: str, task: str, names: str | None = None) -> dict[str, DataSet]:
    """The data sets of a task at a scale, of all tasks, or by name (separated by commas)."""
    if names is not None:
        wanted = names.split(",")
        if unknown := [name for name in wanted if name not in pages]:
            raise UserError(f"sets={unknown[0]}: there is no such data set; {choices(unknown[0], list(pages))}")
        return {name: pages[name] for name in wanted}
    offered = {name: page for name, page in pages.items() if scale in page.scales}
    if task == "all":
        return offered
    tasks = sorted({task for page in offered.values() for task in page.tasks})
    if task not in tasks:
        raise UserError(f"task={task}: no data to fetch at scale={scale}; {choices(task, [*tasks, 'all'])}")
    return {name: page for name, page in offered.items() if task in page.tasks}
