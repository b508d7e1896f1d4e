"""Reading single configuration files without composing: files of tasks and scales, and files of sweeps and
studies, with their tables and the findings that they test."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from omegaconf import OmegaConf
from pydantic import AfterValidator, model_validator

from elmo_bench.configuration.keys import Keys, Text, valid
from elmo_bench.system import places
from elmo_bench.system.console import choices
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage import yaml_text
from elmo_bench.system.storage.files import read_text


def page(task: str) -> Path:
    """The path of a task's configuration file. Raises `UserError` if there is no such task."""
    known = tasks()
    if task not in known:
        raise UserError(f"task={task}: there is no such task; {choices(task, known)}")
    return places.page("task", task)


tasks = partial(places.named, "task")  # the names of the tasks: those with a configuration file


def scales(task: str) -> list[str]:
    """The scales that a task supports, by its configuration file."""
    return list(OmegaConf.select(read(page(task)), "task.scales", default=[]))


def title(task: str) -> str:
    """The name of a task in tables, by its configuration file."""
    return written("task", task, "title") or task


def written(group: str, name: str, key: str, default: Any = None) -> Any:
    """A value in the file of a task or a scale, such as `note` of a scale; `default` without the key or the file."""
    path = places.page(group, name)
    return OmegaConf.select(read(path), f"{group}.{key}", default=default) if path.is_file() else default


def read(path: Path) -> Any:
    """The content of a file; do not change it. It is parsed once, as a report needs the same file often."""
    return _parsed(path, path.stat().st_mtime_ns)


_parsed = cache(lambda path, changed: yaml_text.read(path))


# Sweeps: the block `table` of each file in conf/sweep/.

OF_WEIGHTS = ("first_layer", "spread", "lower_layers")
TITLE_NEEDED = "the title of a column is needed, or of a row and a column: [row, column]"
GLOBAL = "# @package _global_"  # tells Hydra that the keys of a sweep's file are global
TASK = "override /task"
# Keys for where and how something is run; no result depends on them.
HOW_TO_RUN = {
    "data_root", "models_root", "vectors_root", "cache_root", "results_root", "trainer", "trainer.accelerator",
    "trainer.threads", "trainer.progress", "logger", "launcher", "sweeper", "compile", "force", "debug",
}  # fmt: skip
Setting = dict[str, Any]  # `arm`, `vectors`, `bilm` and other dotted keys, with their values in runs


class Column(Keys):
    """A column or a row: the runs `of` a setting, or the `gain` from one column to another; with neither, only the
    paper's figure.

    Attributes:
        interval: the gain is in points with its 95 % interval; otherwise also the share of the remaining error.
        recorded: the sweep does not train these runs; the column is shown if a task has some.
    """

    title: Text = ""
    of: Any = None  # a Setting
    gain: list[Text] = []
    interval: bool = False
    recorded: bool = False


def _bounds(region: Any) -> tuple[float, float]:
    """Two bounds of a region, the lower one first; infinite where they are null."""
    match region:
        case [int() | float() | None as low, int() | float() | None as high] if region != [None, None]:
            bounds = -float("inf") if low is None else float(low), float("inf") if high is None else float(high)
            if bounds[0] < bounds[1]:
                return bounds
    raise ValueError("two bounds are needed, the lower one first, as [0, null]")


class Finding(Keys):
    """A finding of the paper, tested by the runs of a table, or by a study of the biLM (`findings` of a file in
    conf/analysis/, on the scale's own biLM).

    Attributes:
        finding, where: its text, and the section or table of the paper.
        paper: the paper's figures or words, for the tasks for which it states the finding.
        more, less: the compared runs: the title of a column, or of a row and a column.
        measure: the compared quantity. "score": points of the task's metric; "error": the percentage of the errors of
            `less` that `more` avoids; "updates": the percentage of updates saved; for the weights s_j at `place`, in
            the runs `more` alone: "first_layer": s_1 minus the largest other, "spread": the smallest minus the largest,
            "lower_layers": the mean of all but the last, minus the last.
        place: the place of the weights, input or output.
        region: (low, high), where the difference lies if the finding holds; null in the file: no bound.
        quantity: for a study, the measured quantity of each task of `paper`, or of the biLM under "".
        layer, minus: the layer of the quantity, and the layer whose value is subtracted.
        unit: the unit of the quantity.
        untested: the reason if nothing here tests it.
    """

    finding: Text = ""
    where: Text = ""
    paper: dict[Text, Text] = {}
    more: Any = None
    less: Any = None
    measure: Literal["score", "error", "updates", "first_layer", "spread", "lower_layers"] = "score"
    place: Literal["input", "output"] = "input"
    region: Annotated[Any, AfterValidator(_bounds)] = (0.0, float("inf"))
    quantity: Text = ""
    layer: int | None = None
    minus: int | None = None
    unit: Text = "points"
    untested: Text = ""

    def check_titles(self, table: SweepTable | None) -> None:
        """Raises `ValueError` for unknown tasks, or titles that a table lacks; None: a study, without titles."""
        try:
            if not self.paper:
                raise UserError("paper: needs the tasks for which the paper states it, as {ner: words or figures}")
            for task in self.paper:
                if task not in tasks() and (table or task):
                    raise UserError(f"paper: {task}: {choices(task, tasks())}")
            for key in () if table is None else ("more",) if self.measure in OF_WEIGHTS else ("more", "less"):
                if getattr(self, key) is None:
                    raise UserError(f"{key}: {TITLE_NEEDED}")
            for titles in (each for each in (self.more, self.less) if each is not None):
                (table or SweepTable()).setting(titles)
        except UserError as error:
            raise ValueError(f"the finding {self.finding!r}: {error}") from None


class SweepTable(Keys):
    """The table of a sweep.

    Attributes:
        title, note: above the table.
        tasks, scales: the tasks and scales of the sweep; all if none is named.
        also: settings of runs outside the product of Hydra's parameters, with the same seeds.
        split: of the scores shown, dev or test.
        shows: "scores", or "weights" of the layers.
        rows: settings of a task's rows; by default one row.
        columns: by default one for each setting of the sweep; settings without a column always get one.
        paper: the paper's figures by task, one for each column.
        over: columns that all later ones are compared with, in a sweep of sources of layers; an override may then
            replace the settings, and columns left without runs are not shown.
        impossible: a run whose error has this text cannot be trained and has not failed; its cell shows a dash.
        findings: the paper's findings that the table tests.
    """

    title: Text = ""
    note: Text = ""
    tasks: list[Text] = []
    scales: list[Text] = []
    also: list[dict[Text, Any]] = []
    split: Literal["dev", "test"] = "dev"
    shows: Literal["scores", "weights"] = "scores"
    rows: list[Column] = []
    columns: list[Column] = []
    paper: dict[Text, list[Text]] = {}
    over: list[Text] = []
    impossible: Text | None = None
    findings: list[Finding] = []

    @model_validator(mode="after")
    def _check(self) -> Self:
        titles = [column.title for column in self.columns if column.of is not None]
        for column in self.columns:
            if column.gain and (len(column.gain) != 2 or not {*column.gain} <= {*titles}):
                known = f"the titles of two columns with runs are needed: {', '.join(titles)}"
                raise ValueError(f"the column {column.title!r}: gain=[{', '.join(column.gain)}]: {known}")
        for finding in self.findings:
            finding.check_titles(self)
        return self

    @property
    def settings(self) -> list[Setting]:
        """The settings of all cells that the sweep trains."""
        of_columns = [column.of for column in self.columns if column.of is not None and not column.recorded]
        return [row | column for row in [each.of for each in self.rows] or [{}] for column in of_columns]

    def setting(self, titles: Any) -> Setting:
        """The setting of a column by its title, or of a row and a column by both."""
        found: Setting = {}
        if isinstance(titles, str):
            axes = [(titles, self.columns)]
        elif isinstance(titles, list) and len(titles) == 2:
            axes = [(str(titles[0]), self.rows), (str(titles[1]), self.columns)]
        else:
            raise UserError(f"{titles}: {TITLE_NEEDED}")
        for title, among in axes:
            of = {each.title: each.of for each in among if each.of is not None}
            if title not in of:
                raise UserError(f"{title}: {choices(title, list(of)) if of else 'the table has no rows'}")
            found |= of[title]
        return found

    def all_tasks(self, scale: str) -> list[str]:
        """The tasks of the sweep that support the scale, in the paper's order."""
        return in_order(task for task in self.tasks or tasks() if scale in scales(task))


def sweeps() -> list[str]:
    """The names of all sweeps, files in conf/sweep/: the paper's tables, its figures, then the others."""
    return sorted(places.named("sweep"), key=lambda name: (not name.startswith("table"), not name.startswith("figure")))


def table(sweep: str) -> SweepTable:
    """The table of a sweep; do not change it."""
    if sweep not in places.named("sweep"):
        raise UserError(f"sweep={sweep}: there is no such sweep; {choices(sweep, sweeps())}")
    path = places.page("sweep", sweep)
    return _table(path, path.stat().st_mtime_ns)


@cache
def _table(path: Path, changed: int) -> SweepTable:
    page = read(path)
    if GLOBAL not in read_text(path):
        raise UserError(f"the first line must be `{GLOBAL}`, as in the other files of conf/sweep/", path)
    chosen = [key for one in page.get("defaults") or [] if not isinstance(one, str) for key in one if key != TASK]
    for key in [*(key for key in page if key not in ("defaults", "hydra", "table")), *chosen]:
        where = "give it its single value under hydra.sweeper.params, and in the `of` of each column"
        raise UserError(f"{key}: a setting that all runs share is part of the sweep, too: {where}", path)
    block = OmegaConf.to_container(page.table) if page.get("table") else {"title": path.stem, "note": "Dev."}
    return valid(SweepTable, block, "table", path=path)


def study_findings() -> dict[str, list[Finding]]:
    """The findings that each study of the biLM tests, by its file in conf/analysis/."""
    found = {}
    for path in sorted((places.CONF / "analysis").glob("*.yaml")):
        block = OmegaConf.to_container(read(path).get("findings") or OmegaConf.create([]))
        found[path.stem] = valid(list[Finding], block, "findings", path=path)
        for finding in found[path.stem]:
            try:
                finding.check_titles(None)
            except ValueError as error:
                raise UserError(f"findings: {error}", path) from None
    return found


def changes_results(override: str) -> bool:
    """Whether results depend on the typed settings, not only where and how something is run."""
    key = override.partition("=")[0]
    return key not in HOW_TO_RUN and not key.lstrip("+").startswith("logger.")


def in_order(tasks: Iterable[str]) -> list[str]:
    """Tasks in the order of the paper's Table 1, then the others by name."""
    first = list(table("table1").paper)
    return sorted(tasks, key=lambda task: (first.index(task) if task in first else len(first), task))
