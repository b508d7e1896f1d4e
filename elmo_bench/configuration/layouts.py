"""The tables that sweeps make, with the paper's figures: the entries of conf/tables.yaml."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from elmo_bench.configuration import pages
from elmo_bench.system import places
from elmo_bench.system.errors import UserError
from elmo_bench.system.terminal.console import choices


@dataclass
class Column:
    """A column: the runs `of` a setting, or the `gain` between two settings; with neither, only the paper's figure."""

    title: str = ""
    of: str | None = None
    gain: list[str] = field(default_factory=list)


@dataclass
class Layout:
    """The table of a sweep.

    Attributes:
        title, note: above the table.
        tasks, scales: those that the sweep is for; none named: all.
        split: whose scores are shown, dev or test.
        shows: "scores", or "weights" of the layers.
        rows: keys of the sweep whose values make the rows of a task; by default all that vary but the last; [task]: a
            task has one row.
        columns: by default one for each setting of the sweep, which settings without a column have in any case.
        paper: the paper's figures by task, one for each column.
        over: settings that all later ones are compared with, of a sweep of sources of layers (`tables/sources.py`); an
            override may then replace the settings, and columns that it left without runs are not shown.
        beyond: words in the error of a run that cannot be, which is no failure: its cell shows a dash.
    """

    title: str = ""
    note: str = ""
    tasks: list[str] = field(default_factory=list)
    scales: list[str] = field(default_factory=list)
    split: str = "dev"
    shows: str = "scores"
    rows: list[str] = field(default_factory=list)
    columns: list[Column] = field(default_factory=list)
    paper: dict[str, list[str]] = field(default_factory=dict)
    over: list[str] = field(default_factory=list)
    beyond: str | None = None

    def check(self, sweep: str, task: str, scale: str) -> None:
        """Raises `UserError` if the sweep is not for this task or scale."""
        for key, wanted, offered in (("task", task, self.tasks), ("scale", scale, self.scales)):
            if offered and wanted not in offered:
                only = " or ".join(f"{key}={each}" for each in offered)
                raise UserError(f"the sweep {sweep} is for {only}, not for {key}={wanted}")


def sweeps() -> list[str]:
    """The names of all sweeps: the pages of conf/sweep/."""
    return sorted(path.stem for path in (places.CONF / "sweep").glob("*.yaml"))


def layout(sweep: str, scale: str = "paper") -> Layout:
    """The table of a sweep at a scale, whose pair of arms stands where the entry has `${pair.without}`, and whose biLM
    where it has `${bilm}`.

    Raises:
        UserError: there is no such sweep, or its entry has a key or a value that a layout does not have.
    """
    if sweep not in sweeps():
        raise UserError(f"sweep={sweep}: there is no such sweep; {choices(sweep, sweeps())}")
    page = places.CONF / "tables.yaml"
    known = {"pair": pages.pair(scale)._asdict(), "bilm": pages.own_bilm(scale)}
    layouts = OmegaConf.merge(pages.read(page), known)
    try:
        entry = OmegaConf.select(layouts, sweep, default=OmegaConf.create({"title": sweep, "note": "Dev."}))
        entry = OmegaConf.to_container(entry, resolve=True)
        return OmegaConf.to_object(OmegaConf.merge(OmegaConf.structured(Layout), entry))  # type: ignore[return-value]
    except OmegaConfBaseException as error:
        raise UserError(f"the entry {sweep}: {str(error).splitlines()[0]}", page) from None


def titles() -> dict[str, str]:
    """The paper's tasks in the order of its tables, and their names there."""
    return dict(pages.read(places.CONF / "tables.yaml").tasks)


def in_order(tasks: Iterable[str]) -> list[str]:
    """Tasks in the paper's order, then the others by name."""
    first = list(titles())
    return sorted(tasks, key=lambda task: (first.index(task) if task in first else len(first), task))
