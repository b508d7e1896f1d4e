"""The runs of a sweep, composed before anything is trained: which are recorded, which are not, which cannot be run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from elmo_bench.configuration import pages, schema
from elmo_bench.configuration.schema import RunConfig
from elmo_bench.identity.arms import variant
from elmo_bench.identity.identity import Identity
from elmo_bench.identity.missing import check_files
from elmo_bench.records import store
from elmo_bench.records.record import Record
from elmo_bench.records.run_names import label, run_name
from elmo_bench.records.times import in_time, typical
from elmo_bench.sweeps.pages import points
from elmo_bench.sweeps.request import SweepRequest
from elmo_bench.system import places
from elmo_bench.system.errors import UserError
from elmo_bench.system.terminal import console


class Point(NamedTuple):
    """One run of a sweep.

    Attributes:
        task: its name.
        setting: the values of the sweep's keys, without the seed, as "key=value".
        seed: of the run.
        overrides: all of them, as `train` takes them.
    """

    task: str
    setting: tuple[str, ...]
    seed: int
    overrides: tuple[str, ...]


class Composed(NamedTuple):
    """The configuration of a run, and the name of its record and of the group of its seeds."""

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
        request: the sweep.
        points: in the sweep's order.
        composed: those of them that can be run.
        errors: why the others cannot.
        records: by the name of the run, of all runs of these tasks at this scale.
        refused: the errors of tasks whose points cannot be listed.
    """

    request: SweepRequest
    points: list[Point]
    composed: Mapping[Point, Composed]
    errors: Mapping[Point, Exception]
    records: Mapping[str, Record]
    refused: list[Exception]

    @property
    def config(self) -> RunConfig:
        """The configuration of the first run that can be composed, for what all of them share."""
        return next(iter(self.composed.values())).config

    @property
    def recorded(self) -> dict[Point, Record]:
        """The points with a record."""
        return {point: self.records[each.run] for point, each in self.composed.items() if each.run in self.records}

    @property
    def new(self) -> list[Point]:
        """The points to train."""
        return [point for point, each in self.composed.items() if each.run not in self.records or each.config.force]

    def cost(self, new: Sequence[Point]) -> str:
        """How many runs are to be trained and, from recorded runs of their tasks and arms, how long they compute.

        Raises:
            UserError: a reference run that cannot be read.
        """
        counted = Counter((point.task, "baseline" if self.composed[point].config.baseline else "elmo") for point in new)
        total, unknown = 0.0, 0
        tasks = dict.fromkeys(task for task, _ in counted)
        authors = [record for task in tasks for record in store.read_all(places.RECORDED, self.request.scale, task)]
        known = store.whole([*self.records.values()]), authors
        for (task, arm), number in counted.items():
            alike = ([record for record in there if (record.task, record.arm) == (task, arm)] for there in known)
            found = next(filter(None, alike), [])
            total, unknown = (total + number * typical(found), unknown) if found else (total, unknown + number)
        message = f"{len(new)} run{'s' * (len(new) > 1)} to train"
        if unknown == len(new):
            return f"{message}; none like them is recorded, so that their time is not known"
        but = f", without {unknown} of which none like them is recorded" if unknown else ""
        return f"{message}: about {in_time(total)} of computing (medians of recorded runs{but})"


def plan(request: SweepRequest) -> Plan:
    """Composes every run.

    Raises:
        UserError: no point can be listed, or a record of these tasks cannot be read.
    """
    listed: list[Point] = []
    refused: list[Exception] = []
    for task in request.tasks:
        try:
            listed += _points(request, task)
        except Exception as error:
            refused.append(_mendable(error))
    if not listed:
        raise _shown(refused)
    composed, errors = _composed(listed)
    listed = _distinct(listed, composed)
    composed = {point: composed[point] for point in listed if point in composed}
    return Plan(request, listed, composed, errors, records(request, composed.values()), refused)


def _distinct(listed: Sequence[Point], composed: Mapping[Point, Composed]) -> list[Point]:
    """The points without those that are the run of an earlier one, as without ELMo all biLMs are."""
    names = {point: composed[point].run if point in composed else str(point) for point in listed}
    first = {name: point for point, name in reversed(names.items())}
    return [point for point in listed if first[names[point]] == point]


def records(request: SweepRequest, composed: Iterable[Composed]) -> dict[str, Record]:
    """All records of the tasks at the scale, by the name of the run. Raises `UserError` for one that cannot be read."""
    roots = {each.config.results_root for each in composed}
    found = [store.read_all(root, request.scale, task) for root in roots for task in request.tasks]
    return {record.run: record for task in found for record in task}


def _shown(errors: Sequence[Exception]) -> Exception:
    """The first error, after each has been shown once."""
    for error in {console.explain(error): error for error in reversed(errors)}.values():
        console.show(error)
    return errors[0]


def _points(request: SweepRequest, task: str) -> list[Point]:
    seeds = None if request.seeds is None else range(1, request.seeds + 1)
    return [
        _point(request, task, values) for values in points(request.sweep, request.chosen(task), seeds, request.instead)
    ]


def _point(request: SweepRequest, task: str, values: Sequence[str]) -> Point:
    seeds = [int(value.partition("=")[2]) for value in values if value.startswith("seed=")]
    setting = tuple(value.lstrip("+") for value in values if not value.startswith("seed="))
    return Point(task, setting, seeds[0] if seeds else 1, (f"+sweep={request.sweep}", *request.chosen(task), *values))


def _composed(listed: Sequence[Point]) -> tuple[dict[Point, Composed], dict[Point, Exception]]:
    """The runs that can be composed and lack no file; of the others, the errors."""
    configs: dict[Point, RunConfig] = {}
    composed: dict[Point, Composed] = {}
    errors: dict[Point, Exception] = {}
    seeds: dict[tuple, list[Point]] = {}  # of each setting
    for point in listed:
        seeds.setdefault((point.task, point.setting), []).append(point)
    for alike in seeds.values():
        try:
            configs |= _configs(alike)
        except Exception as error:
            errors |= dict.fromkeys(alike, _mendable(error))
    lacking = _lacking({first: configs[first] for first, *_ in seeds.values() if first in configs})
    for first, *others in seeds.values():
        if first in lacking:
            errors |= dict.fromkeys([first, *others], lacking[first])
        elif first in configs:
            try:
                composed |= _identified(configs, [first, *others])
            except Exception as error:
                errors |= dict.fromkeys([first, *others], _mendable(error))
    return {point: composed[point] for point in listed if point in composed}, errors


def _configs(points: Sequence[Point]) -> dict[Point, RunConfig]:
    """The configurations of points that differ in their seed alone: the first and the last are composed.

    Where these two differ in more than the seed, as a configuration file has `${seed}` somewhere, all are.
    """
    first, last = (schema.typed(pages.compose(point.overrides)) for point in (points[0], points[-1]))
    if _is_seed_of(last, first):
        return {point: replace(first, seed=point.seed) for point in points}
    return {point: schema.typed(pages.compose(point.overrides)) for point in points}


def _is_seed_of(other: RunConfig, first: RunConfig) -> bool:
    """Whether two runs differ in their seed alone."""
    return replace(first, seed=other.seed) == other


def _identified(configs: Mapping[Point, RunConfig], points: Sequence[Point]) -> dict[Point, Composed]:
    """The names of the runs of these points; the settings of the first serve all that are other seeds of it."""
    first = Identity(configs[points[0]])
    if _is_seed_of(configs[points[-1]], configs[points[0]]):
        return {point: Composed(configs[point], first.with_seed(point.seed), first.group) for point in points}
    found = {point: Identity(configs[point]) for point in points}
    return {point: Composed(configs[point], each.run, each.group) for point, each in found.items()}


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
