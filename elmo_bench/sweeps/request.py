"""Sweeps: files in conf/sweep/, each a table or figure of the paper as the overrides of its runs."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from omegaconf import DictConfig, OmegaConf

from elmo_bench.configuration import pages
from elmo_bench.configuration.composing import DATA, PLACES, compose, matters, parse, validated
from elmo_bench.configuration.keys import flat, relative
from elmo_bench.configuration.pages import Setting, changes_results, read
from elmo_bench.records import frame
from elmo_bench.records.frame import normal
from elmo_bench.system import console, places
from elmo_bench.system.errors import UserError


@dataclass
class SweepRequest:
    """A sweep of one or several tasks at a scale.

    Attributes:
        sweep: file in conf/sweep/.
        tasks: in the paper's order.
        scale: file in conf/scale/.
        seeds: the seeds from 1 to this number; None: as in the file.
        jobs: number of runs at a time; None: as many as the machine allows.
        run: whether runs without a record are trained.
        overrides: the overrides for every run.
        on: local, or a file in conf/cluster/.
        cluster: changes to the file of `on`.
        table: the block `table` of the sweep's file.
        changes: the overrides that results depend on, with the last part of paths.
        has_files: whether the overrides name files of data or of word vectors, which are not part of a setting.
        instead: the overrides that replace values of the sweep's file.
        all_seeds: the seeds asked for, or those of the sweep's file.
    """

    sweep: str
    tasks: Sequence[str]
    scale: str = "mini"
    seeds: int | None = None
    jobs: int | None = None
    run: bool = True
    overrides: Sequence[str] = ()
    on: str = "local"
    cluster: Sequence[str] = ()

    def __post_init__(self):
        self.table = pages.table(self.sweep)
        self.changes, self.has_files, self.instead = list[str](), False, list[str]()
        varied = {str(key).lstrip("+") for key in _params(self.sweep)}
        for one in self.overrides:
            key, _, value = one.partition("=")
            self.changes += [f"{key}={relative(value)}"] if changes_results(one) else []
            self.has_files |= is_file(key)
            self.instead += [one] if key.lstrip("+") in varied else []
        if self.seeds is not None:
            self.all_seeds = list(range(1, self.seeds + 1))
        else:
            every = (one for point in points(self.sweep, [f"scale={self.scale}"]) for one in point)
            seeds = {int(one.removeprefix("seed=")) for one in every if one.startswith("seed=")}
            self.all_seeds = sorted(seeds or {1})

    def setting(self, task: str, overrides: Sequence[str] | None = None) -> Setting:
        """The setting that overrides make of a run of a task: as typed, but with the names that its record will have.

        A choice of files is replaced by what it chooses ("vectors=paper" by the names of the vectors), and keys that no
        result depends on are left out. For a run that cannot be composed, because its task has no such key, the setting
        stays as typed.

        Args:
            task: the task of the run.
            overrides: by default the overrides of all runs, except those that replace values of the sweep's file.
        """
        if overrides is None:
            overrides = [one for one in self.overrides if changes_results(one) and one not in self.instead]
            if not overrides:
                return {}
        typed = setting(overrides)
        try:
            run = validated(compose([f"task={task}", f"scale={self.scale}", *overrides]))
        except Exception as error:
            if console.explain(error) is None:
                raise
            return typed
        found = {key: value for key, value in typed.items() if matters(run, key)}
        found |= {"vectors": run.vectors.name_with(run.task.words)} if "vectors" in typed else {}
        return found | run.variant | ({"arm": "baseline"} if run.baseline else {})

    def command(self, task: str | None = None) -> str:
        """The command for the missing runs, with the same roots and folders.

        For a single task, it leaves out arguments that no result depends on.
        """
        own, tasks = places.own(), [task] if task else self.tasks
        if len(tasks) > 1 and tasks == self.table.all_tasks(self.scale):
            tasks = ["all"]
        given = [f"+sweep={self.sweep}", f"task={','.join(tasks)}", f"scale={self.scale}"]
        given += [f"seeds={self.seeds}"] if self.seeds else []
        given += [f"jobs={self.jobs}"] if self.jobs and not task else []
        for one in self.overrides:
            if not task or one.partition("=")[0].endswith("_root") or changes_results(one):
                given.append(one)
        return shlex.join(["elmo-bench", "sweep", *given, *(["-cd", str(own)] if own else [])])

    def check(self) -> None:
        """Checks that the sweep's table shows its runs, and that no override sets a key that the sweep sets itself."""
        page = places.page("sweep", self.sweep)
        if files := [*filter(is_file, sorted(str(key).lstrip("+") for key in _params(self.sweep)))]:
            raise UserError(f"{', '.join(files)}: a table does not distinguish files; use a sweep for each", page)
        every = [setting(point) for point in points(self.sweep, [f"scale={self.scale}"], [1])]
        normalised = [normal(each, self.scale) for each in every]
        for each in self.table.settings:
            if normal(each, self.scale) not in normalised:
                known = ", ".join(map(frame.in_words, normalised))
                message = f"table: no run of the sweep has {frame.in_words(each)}; its runs have: {known}"
                raise UserError(message, page)
        within = {key for each in every if each.get("elmo.where") != "none" for key in each}
        for one in self.overrides:
            if (key := one.lstrip("+").partition("=")[0]) in within and one not in self.instead:
                only = "elmo-bench train makes a run with another value"
                raise UserError(f"{one}: the sweep {self.sweep} itself sets {key} in its runs; {only}")


# The points of a sweep.


def points(
    sweep: str, overrides: Sequence[str] = (), seeds: Iterable[int] | None = None, instead: Sequence[str] = ()
) -> list[list[str]]:
    """The overrides of every run of a sweep, in Hydra's order: the last parameter varies fastest; then `also`.

    Args:
        sweep: file in conf/sweep/.
        overrides: the choice of task and scale, to which the configuration file may refer.
        seeds: instead of the configuration file's.
        instead: other values of keys that the configuration file varies, as "vectors=random,text".
    """
    from hydra._internal.core_plugins.basic_sweeper import BasicSweeper

    params = _params(sweep)
    if any(OmegaConf.is_interpolation(params, str(key)) for key in params):
        params._set_parent(compose(overrides))  # its interpolations refer to the run
    values: dict[str, Any] = OmegaConf.to_container(params, resolve=True)  # type: ignore[assignment]
    for key, _, value in (one.lstrip("+").partition("=") for one in instead):
        values = {name: value if name.lstrip("+") == key else given for name, given in values.items()}
    if seeds is not None:
        values["seed"] = ",".join(map(str, seeds))
    seeded = {"seed": values["seed"]} if "seed" in values else {}
    products = [values, *({**each, **seeded} for each in pages.table(sweep).also)]
    parsed = ([parse(f"{key}={value}") for key, value in product.items()] for product in products)
    batches = (BasicSweeper.split_arguments(each, max_batch_size=None) for each in parsed)
    return [point for (batch,) in batches for point in batch]


def _params(sweep: str) -> DictConfig:
    """The keys that a sweep's file varies, with their values in Hydra's syntax."""
    path = places.page("sweep", sweep)
    found = OmegaConf.select(read(path), "hydra.sweeper.params")
    for key in found or ():
        if OmegaConf.is_list(found._get_node(key)):
            written = ",".join(map(str, found[key]))
            raise UserError(f"{key}: several values are written as on the command line, {key}: {written}", path)
    return OmegaConf.create(OmegaConf.to_container(found) if found else {})  # type: ignore[return-value]


# Settings, by which the runs of a sweep are found among records.


def is_file(key: str) -> bool:
    """Whether it is a path of data or word vectors, which is not part of a setting."""
    return key in DATA or re.fullmatch(r"vectors\.sets\..+\.words", key) is not None


def setting(overrides: Iterable[str]) -> Setting:
    """The setting of typed overrides: "elmo={layers:last}" is `elmo.layers`. Seeds and paths of files are left out.

    A user's own source of layers is identified by its name, by default the name of its folder.
    """
    found: Setting = {}
    for text in overrides:
        override = parse(text)
        found |= flat({override.key_or_group: relative(override.value())})
    if named := found.get("bilm.name") or found.get("bilm.path"):
        found["bilm"] = PurePath(str(named)).name
    return {key: found[key] for key in found if found[key] != {} and not (key in PLACES or is_file(key))}
