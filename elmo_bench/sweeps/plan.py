"""The runs of a sweep, composed before anything is trained: which are recorded, which are not, which cannot be run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from omegaconf import OmegaConf

from elmo_bench.configuration import pages, schema
from elmo_bench.configuration.schema import RunConfig
from elmo_bench.identity.arms import variant
from elmo_bench.identity.missing import check_files
from elmo_bench.identity.settings import Identity
from elmo_bench.records import store
from elmo_bench.records.record import Record
from elmo_bench.records.run_names import label, run_name
from elmo_bench.records.times import in_time, making, on_one_processor, start, typical
from elmo_bench.sweeps.pages import points, seeds_of
from elmo_bench.sweeps.request import SweepRequest
from elmo_bench.system import places
from elmo_bench.system.errors import UserError
from elmo_bench.system.machine import processor
from elmo_bench.system.terminal import console


class Point(NamedTuple):
    """One run of a sweep.

    Attributes:
        setting: the values of the sweep's keys, without the seed, as "key=value".
        overrides: all of them, as `train` takes them.
    """

    task: str
    setting: tuple[str, ...]
    seed: int
    overrides: tuple[str, ...]


class Planned(NamedTuple):
    """A point that can be run: its configuration, and the names of its record and of its group."""

    point: Point
    config: RunConfig
    run: str
    group: str

    @property
    def title(self) -> str:
        """The run in words."""
        arm = label(self.config.elmo.where, variant(self.config))
        return run_name(self.config.task.name, self.config.scale.name, arm, self.config.seed)


class Plan(NamedTuple):
    """All runs that are asked for.

    Attributes:
        runs: in the sweep's order, each once: without ELMo, the points of all biLMs are one run. Those with less than a
            batch of training data are left out, once that is known.
        errors: why the other points cannot be run.
        records: by the name of the run, of all runs at this scale: the table has rows of other tasks, too.
        refused: the errors of tasks whose points cannot be listed.
    """

    request: SweepRequest
    runs: list[Planned]
    errors: Mapping[Point, Exception]
    records: Mapping[str, Record]
    refused: list[Exception]

    @property
    def config(self) -> RunConfig:
        """The configuration of the first run, for what all of them share."""
        return self.runs[0].config

    @property
    def asked(self) -> dict[str, set[str]]:
        """By task the groups of its runs; without a task that has errors, unless files tell its runs from others."""
        failed = set() if self.request.has_files else {point.task for point in self.errors}
        tasks = {each.point.task for each in self.runs} - failed
        return {task: {each.group for each in self.runs if each.point.task == task} for task in tasks}

    @property
    def new(self) -> list[Planned]:
        """The runs to train."""
        finished = {run for run, record in self.records.items() if record.path and store.is_finished(record.path)}
        return [each for each in self.runs if each.run not in finished or each.config.force]

    def cost(self, new: Sequence[Planned]) -> str:
        """How many runs are to be trained and, from recorded runs of their tasks and arms, how long they compute.

        Raises:
            UserError: a reference run that cannot be read.
        """
        counted = Counter((each.config.task.name, each.config.arm) for each in new)
        total, unknown, prepared = 0.0, 0, False
        known = store.whole([*self.records.values()]), [*store.read_all(places.RECORDED, self.request.scale)]
        here = processor()
        for kind, number in counted.items():
            alike = ([record for record in there if (record.task, record.arm) == kind] for there in known)
            found = next(filter(None, alike), [])
            found = [record for record in found if record.machine.get("cpu") == here] or on_one_processor(found)[1][0]
            total += number * (typical(found) + start(found)) if found else 0.0
            unknown += 0 if found else number
            prepared |= any(record.preparing for record in found)
        recorded = [*known[0], *known[1]]
        there = {name for record in known[0] for name in (record.task, "")}
        total += making(recorded, {"", *(task for task, _ in counted)} - there)
        message = f"{len(new)} run{'s' * (len(new) > 1)} to train"
        if unknown == len(new):
            return f"{message}; none like them is recorded, so that their time is not known"
        but = f", without {unknown} of which none like them is recorded" if unknown else ""
        what = "of computing, preparation included" if prepared else "of training alone"
        return f"{message}: about {in_time(total)} {what} (medians of recorded runs{but})"


def plan(request: SweepRequest) -> Plan:
    """Composes every run.

    Raises:
        UserError: no point can be listed, or a record of this scale cannot be read.
    """
    listed: list[Point] = []
    refused: list[Exception] = []
    for task in request.tasks:
        try:
            listed += _points(request, task)
        except Exception as error:
            refused.append(_mendable(error))
    if not listed:
        for error in {console.explain(error): error for error in reversed(refused)}.values():  # each once
            console.show(error)
        raise refused[0]
    runs, errors = _planned(listed)
    known = records(request, runs)
    return Plan(request, _possible(runs, known), errors, known, refused)


def records(request: SweepRequest, runs: Iterable[Planned]) -> dict[str, Record]:
    """All records at the scale, by the name of the run. Raises `UserError` for one that cannot be read."""
    roots = {each.config.results_root for each in runs}
    return {record.run: record for root in roots for record in store.read_all(root, request.scale)}


def _points(request: SweepRequest, task: str) -> list[Point]:
    seeds = None if request.seeds is None else range(1, request.seeds + 1)
    chosen, listed = request.chosen(task), []
    for values in points(request.sweep, chosen, seeds, request.instead):
        setting = tuple(value.lstrip("+") for value in values if not value.startswith("seed="))
        (seed,) = seeds_of(values) or [1]
        listed.append(Point(task, setting, seed, (f"+sweep={request.sweep}", *chosen, *values)))
    return listed


def _planned(listed: Sequence[Point]) -> tuple[list[Planned], dict[Point, Exception]]:
    """The runs that can be composed and lack no file; of the other points, the errors."""
    settings: dict[tuple, list[Point]] = {}  # the points of each, which differ in their seed
    for point in listed:
        settings.setdefault((point.task, point.setting), []).append(point)
    configs: dict[Point, list[RunConfig]] = {}  # by the first of them
    errors: dict[Point, Exception] = {}
    planned: dict[Point, Planned] = {}
    for alike in settings.values():
        try:
            configs[alike[0]] = _configs(alike)
        except Exception as error:
            errors |= dict.fromkeys(alike, _mendable(error))
    lacking = _lacking({first: each[0] for first, each in configs.items()})
    for alike in settings.values():
        if alike[0] in lacking:
            errors |= dict.fromkeys(alike, lacking[alike[0]])
        elif alike[0] in configs:
            try:
                planned |= _named(alike, configs[alike[0]])
            except Exception as error:
                errors |= dict.fromkeys(alike, _mendable(error))
    runs: dict[str, Planned] = {}
    for point in listed:
        if point in planned:
            runs.setdefault(planned[point].run, planned[point])
    return [*runs.values()], errors


def _possible(runs: Sequence[Planned], known: Mapping[str, Record]) -> list[Planned]:
    """Leaves out runs whose fraction of the data is less than a batch, as a recorded run on all data shows."""
    whole = {_on_all(each): known[each.run] for each in runs if each.config.fraction == 1 and each.run in known}
    return [
        each
        for each in runs
        if each.run in known or not (there := whole.get(_on_all(each))) or there.fills_batch(each.config.fraction)
    ]


def _on_all(run: Planned) -> tuple[str, ...]:
    """The settings of a run without the fraction, as a key."""
    return (run.point.task, *(value for value in run.point.setting if not value.startswith("fraction=")))


def _configs(points: Sequence[Point]) -> list[RunConfig]:
    """The configurations of points that differ in their seed alone: the first is composed.

    Where a configuration file or an override has `${seed}` somewhere, all are.
    """
    cfg = pages.compose(points[0].overrides)
    first = schema.typed(cfg)
    if "${seed}" in str(OmegaConf.to_container(cfg, resolve=False)):
        return [first, *(schema.typed(pages.compose(point.overrides)) for point in points[1:])]
    return [first.model_copy(update={"seed": point.seed}) for point in points]


def _is_seed_of(other: RunConfig, first: RunConfig) -> bool:
    """Whether two runs differ in their seed alone."""
    return first.model_copy(update={"seed": other.seed}) == other


def _named(points: Sequence[Point], configs: Sequence[RunConfig]) -> dict[Point, Planned]:
    """The points with the names of their runs; settings are computed once for runs that differ only in the seed."""
    first = Identity(configs[0])
    if _is_seed_of(configs[-1], configs[0]):
        names = [(first.with_seed(config.seed), first.group) for config in configs]
    else:
        names = [(each.run, each.group) for each in map(Identity, configs)]
    return {point: Planned(point, config, *of) for point, config, of in zip(points, configs, names, strict=True)}


def _lacking(configs: Mapping[Point, RunConfig]) -> dict[Point, Exception]:
    """One error for all runs of a task that lack files, so that all that is missing is named at once."""
    errors: dict[Point, Exception] = {}
    for task in dict.fromkeys(point.task for point in configs):
        lacking = [point for point in configs if point.task == task and _lack(configs[point])]
        if error := _lack(*(configs[point] for point in lacking)):
            errors |= dict.fromkeys(lacking, error)
    return errors


def _lack(*runs: RunConfig) -> UserError | None:
    try:
        check_files(*runs)
    except UserError as error:
        return error
    return None


def _mendable(error: Exception) -> Exception:
    """The error, if a user can mend it; else it is raised."""
    if console.explain(error) is None:
        raise error
    return error
