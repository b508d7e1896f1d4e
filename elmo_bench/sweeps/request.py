"""What `sweep` and `reproduce` are asked for on the command line."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from elmo_bench.configuration import pages, tables
from elmo_bench.configuration.tables import Setting, SweepTable
from elmo_bench.identity.settings import relative
from elmo_bench.records import frame
from elmo_bench.sweeps import pages as sweeps
from elmo_bench.system import places
from elmo_bench.system.errors import UserError

CLUSTER = "cluster."  # keys of a file in conf/cluster/
# Overrides that say where and how something is run; no result depends on them.
AROUND = {
    "data_root", "models_root", "vectors_root", "cache_root", "results_root", "trainer", "trainer.accelerator",
    "trainer.threads", "trainer.progress", "logger", "launcher", "sweeper", "compile", "force", "debug",
}  # fmt: skip


class SweepRequest(NamedTuple):
    """A sweep of one or several tasks at a scale.

    Attributes:
        sweep: file in conf/sweep/.
        tasks: in the paper's order.
        scale: file in conf/scale/.
        seeds: the seeds from 1 to this number; None: those of the file.
        jobs: how many runs at a time; None: as many as the machine allows.
        run: whether runs without a record are trained.
        recorded: whether only the reference runs are shown.
        on: local, or a file in conf/cluster/.
        cluster: changes to the file of `on`.
        overrides: for every run.
    """

    sweep: str
    tasks: Sequence[str]
    scale: str = "mini"
    seeds: int | None = None
    jobs: int | None = None
    run: bool = True
    recorded: bool = False
    overrides: Sequence[str] = ()
    on: str = "local"
    cluster: Sequence[str] = ()

    @property
    def table(self) -> SweepTable:
        """What its configuration file says of it."""
        return tables.table(self.sweep)

    @property
    def all_seeds(self) -> list[int]:
        """Those asked for, or those of the sweep's file."""
        if self.seeds is not None:
            return list(range(1, self.seeds + 1))
        points = sweeps.points(self.sweep, [f"scale={self.scale}"])
        return sorted({seed for point in points for seed in sweeps.seeds_of(point)}) or [1]

    @property
    def changes(self) -> list[str]:
        """The overrides that results depend on; of a path, its last part."""
        pairs = [one.partition("=") for one in self.overrides]
        return [f"{key}={relative(value)}" for key, _, value in pairs if not _around(key)]

    @property
    def has_files(self) -> bool:
        """Whether these overrides name files of data or of word vectors, of which a setting says nothing."""
        return any(sweeps.is_file(one.partition("=")[0]) for one in self.overrides)

    def setting(self, task: str) -> Setting:
        """What these overrides make of all runs of a task, but for those that replace values of the sweep's file."""
        further = [one for one in self.overrides if not _around(one.partition("=")[0]) and one not in self.instead]
        return sweeps.made(further, task, self.scale) if further else {}

    def chosen(self, task: str) -> list[str]:
        """The overrides that all runs of a task have."""
        instead = self.instead
        return [f"task={task}", f"scale={self.scale}", *(one for one in self.overrides if one not in instead)]

    @property
    def instead(self) -> list[str]:
        """The overrides that replace values of the sweep's file."""
        varied = sweeps.varied(self.sweep)
        return [one for one in self.overrides if one.lstrip("+").partition("=")[0] in varied]

    def command(self) -> str:
        """The command that runs what is missing, on this machine."""
        jobs = [f"jobs={self.jobs}"] if self.jobs else []
        whole = len(self.tasks) > 1 and self.tasks == _tasks("all", self.table, self.scale)
        return self._command("all" if whole else ",".join(self.tasks), [*jobs, *self.overrides])

    def command_for(self, task: str) -> str:
        """The same for one task on any machine: it names no place."""
        return self._command(task, self.changes)

    def _command(self, task: str, others: Sequence[str]) -> str:
        seeds = [f"seeds={self.seeds}"] if self.seeds else []
        folder = ["-cd", str(there)] if (there := places.own()) else []
        own = [f"+sweep={self.sweep}", f"task={task}", f"scale={self.scale}"]
        return shlex.join(["elmo-bench", "sweep", *own, *seeds, *others, *folder])


def _around(key: str) -> bool:
    return key in AROUND or key.lstrip("+").startswith("logger.")


def of(given: Mapping[str, Any], overrides: Sequence[str], sweep: str | None = None) -> SweepRequest:
    """What the arguments of a command ask for.

    Args:
        given: the command's own arguments, parsed.
        overrides: all others.
        sweep: for a command that has only this one.

    Raises:
        UserError: an argument without "=", an unknown sweep or task, or one that the sweep is not for.
    """
    _check(overrides)
    name = sweep or given["sweep"]
    if not name:
        named = next((one for one in overrides if one.startswith("name=")), "name=...")  # as `make sweep` has it
        problem = f"missing argument {named.replace('name', '+sweep', 1)}"
        raise UserError(f"{problem}; choose from {', '.join(tables.sweeps())}")
    table, scale = tables.table(name), given["scale"] or "mini"
    tasks = _tasks(given["task"] or (table.tasks or ["ner"])[0], table, scale)
    for task in tasks:
        table.check_offered(name, task, scale)
    _check_columns(name, scale)
    cluster = [one.removeprefix(CLUSTER) for one in overrides if one.startswith(CLUSTER)]
    others = [one for one in overrides if not one.startswith(CLUSTER)]
    on = given.get("on") or "local"
    if cluster and on == "local":
        raise UserError(f"{CLUSTER}{cluster[0]}: only with on=slurm or another file in conf/cluster")
    flags = given.get("run", True), given.get("recorded", False)
    request = SweepRequest(name, tasks, scale, given["seeds"], given["jobs"], *flags, others, on, cluster)
    _check_blocks(request)
    return request


def _tasks(task: str, table: SweepTable, scale: str) -> list[str]:
    """The tasks that are asked for, by commas; all: those that the sweep is for and that offer the scale."""
    if task != "all":
        return tables.in_order({pages.page(each).stem for each in task.split(",")})
    offered = [each for each in table.tasks or pages.tasks() if scale in pages.scales(each)]
    if not offered:
        raise UserError(f"no task offers scale={scale}")
    return tables.in_order(offered)


def _check_columns(sweep: str, scale: str) -> None:
    """Raises `UserError` for a page that varies files, or has a row or column that shows none of the sweep's runs."""
    if files := [*filter(sweeps.is_file, sorted(sweeps.varied(sweep)))]:
        message = f"{', '.join(files)}: a table does not tell files apart; give one to each of several sweeps"
        raise UserError(message, places.page("sweep", sweep))
    made = sweeps.settings(sweep, scale)
    for setting in tables.table(sweep).settings:
        if frame.normal(setting, scale) not in made:
            known = ", ".join(map(frame.in_words, made))
            message = f"table: no run of the sweep has {frame.in_words(setting)}; its runs have: {known}"
            raise UserError(message, places.page("sweep", sweep))


def _check_blocks(request: SweepRequest) -> None:
    """Raises `UserError` for an override that runs of the sweep would pass over, as a block of its file has the key."""
    points = [sweeps.setting(point) for point in sweeps.points(request.sweep, [f"scale={request.scale}"], [1])]
    within = {key for point in points if point.get("elmo.where") != "none" for key in point}
    for one in request.overrides:
        if (key := one.lstrip("+").partition("=")[0]) in within and one not in request.instead:
            raise UserError(
                f"{one}: the sweep {request.sweep} sets {key} in its runs itself; elmo-bench train makes one otherwise"
            )


def _check(overrides: Sequence[str]) -> None:
    """Raises `UserError` for what no run of a sweep can be given."""
    for argument in overrides:
        key, equals, value = argument.partition("=")
        if not equals:
            raise UserError(f"{argument}: arguments are written key=value")
        if key == "seed":
            raise UserError("seed: the runs have the seeds 1 to N; give seeds=N")
        if key.lstrip("+") == "trainer.fast_dev_run" and value.lower() not in ("false", "0"):
            raise UserError(
                "trainer.fast_dev_run: a smoke run leaves no record for a table; elmo-bench train makes one"
            )
