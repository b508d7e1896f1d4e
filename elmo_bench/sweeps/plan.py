"""The runs of a sweep, composed before anything is trained: which are recorded, which are not, which cannot be run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from omegaconf import OmegaConf

from elmo_bench.configuration.composing import compose, run_config, validated
from elmo_bench.configuration.schema import RunConfig
from elmo_bench.identity.missing import check_files, missing_files
from elmo_bench.identity.settings import Identity
from elmo_bench.records import store
from elmo_bench.records.record import Record, label, run_name
from elmo_bench.records.times import expected, in_time, making, on_one_processor, start
from elmo_bench.sweeps.request import SweepRequest, points, seed_of
from elmo_bench.system import places
from elmo_bench.system.errors import UserError
from elmo_bench.system.machine import processor
from elmo_bench.system.storage.hashing import fingerprint
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


class PlannedRun(NamedTuple):
    """A point that can be run: its configuration, and the names of its record and of its group."""

    point: Point
    config: RunConfig
    run: str
    group: str

    @property
    def title(self) -> str:
        """The run in words."""
        arm = label(self.config.elmo.where, self.config.variant)
        return run_name(self.config.task.name, self.config.scale.name, arm, self.config.seed)


@dataclass
class Plan:
    """All runs that are asked for, and what becomes of them.

    Attributes:
        runs: in the sweep's order, each once: without ELMo, the points of all biLMs are one run. Those with less than a
            batch of training data are left out, once that is known.
        errors: why the other points cannot be run.
        records: by the name of the run, of all runs at this scale: the table has rows of other tasks, too.
        refused: the errors of tasks whose points cannot be listed.
        failed, impossible: why runs failed when they were trained, or cannot exist (`SweepTable.impossible`).
    """

    request: SweepRequest
    runs: list[PlannedRun]
    errors: dict[Point, Exception]
    records: dict[str, Record]
    refused: list[Exception]
    failed: dict[Point, Exception] = field(default_factory=dict)
    impossible: dict[Point, Exception] = field(default_factory=dict)
    shown: set[str] = field(default_factory=set)  # the errors
    expected: dict[str, float] = field(default_factory=dict)  # by run, the seconds of computing, where that is known

    @property
    def config(self) -> RunConfig:
        """The configuration of the first run, for what all of them share."""
        return self.runs[0].config

    @property
    def asked(self) -> dict[str, set[str]]:
        """By task the groups of its runs; without a task that has errors, unless files tell its runs from others."""
        wrong = set() if self.request.has_files else {point.task for point in self.errors}
        groups = defaultdict(set)
        for each in self.runs:
            if each.point.task not in wrong:
                groups[each.point.task].add(each.group)
        return groups

    @property
    def new(self) -> list[PlannedRun]:
        """The runs to train."""
        finished = {run for run, record in self.records.items() if record.path and store.is_finished(record.path)}
        return [each for each in self.runs if each.run not in finished or each.config.force]

    @property
    def recorded(self) -> list[Record]:
        """The records of the runs that have one and did not fail."""
        there = [each for each in self.runs if each.run in self.records and each.point not in self.failed]
        return [self.records[each.run] for each in there]

    def show(self, error: Exception, title: str = "") -> Exception:
        """Shows an error with the name of its run, unless an equal one has been shown; returns it as it is shown."""
        text = console.explain(error) or ""
        shown = UserError(f"{text} ({title})") if title and not text.startswith(title) else error
        if text not in self.shown:
            self.shown.add(text)
            console.show(shown)
        return shown

    def raise_first(self) -> None:
        """Raises the first error, if there is one; all have been shown."""
        for error in (*self.refused, *self.errors.values(), *self.failed.values()):
            raise error

    def counts(self, recorded: int) -> str:
        """How many runs are recorded, and how many have failed."""
        failed = len(self.errors) + len(self.failed)
        every = len(self.runs) + len(self.errors) - len(self.impossible)
        return f"{recorded} of {every} runs are recorded" + (f", {failed} failed" if failed else "")

    def line(self) -> str:
        """How many points are recorded, failed and missing, and the command that goes on."""
        recorded = len(self.recorded)
        missing = len(self.runs) - len(self.impossible) - recorded - len(self.failed)
        unfinished = missing or self.failed or self.errors or self.refused
        goes_on = f"; to go on: {self.request.command()}" if unfinished else ""
        return f"{self.request.sweep}: {self.counts(recorded)}{f', {missing} missing' * bool(missing)}{goes_on}"

    def cost(self, new: Sequence[PlannedRun]) -> str:
        """How long these runs compute, from recorded ones of their tasks and arms: one's own, else the reference runs.

        What is known of each is kept as `expected`.
        """
        known = store.full_runs([*self.records.values()]), [*store.read_all(places.RECORDED, self.request.scale)]
        recorded, here, self.expected = [*known[0], *known[1]], processor(), {}
        for each in new:
            kind = each.config.task.name, each.config.arm
            alike = ([record for record in there if (record.task, record.arm) == kind] for there in known)
            if found := next(filter(None, alike), []):
                timed = [record for record in found if record.machine.get("cpu") == here]
                timed = timed or on_one_processor(found)[1][0]
                self.expected[each.run] = expected(each.config, timed) + (start(timed) or start(recorded))
        unknown = len(new) - len(self.expected)
        message = f"{len(new)} run{'s' * (len(new) > 1)} to train"
        if not self.expected:
            return f"{message}; none like them is recorded, so that their time is not known"
        there = {name for record in known[0] for name in (record.task, "")}
        once = making(recorded, {"", *(each.config.task.name for each in new)} - there)
        but = f", without {unknown} of which none like them is recorded" if unknown else ""
        prepared = any(record.preparing for record in recorded)
        what = "of computing, preparation included" if prepared else "of training alone"
        total = in_time(sum(self.expected.values()) + once)
        return f"{message}: about {total} {what} (medians of recorded runs{but})"


def plan(request: SweepRequest) -> Plan:
    """Composes every run; errors of some of them are shown."""
    request.check()
    listed: list[Point] = []
    refused: list[Exception] = []
    seeds = None if request.seeds is None else range(1, request.seeds + 1)
    for task in request.tasks:
        of_task = [f"task={task}", f"scale={request.scale}"]
        chosen = [*of_task, *(one for one in request.overrides if one not in request.instead)]
        try:
            for values in points(request.sweep, chosen, seeds, request.instead):
                setting = tuple(value.lstrip("+") for value in values if not value.startswith("seed="))
                overrides = (f"+sweep={request.sweep}", *chosen, *values)
                listed.append(Point(task, setting, seed_of(values), overrides))
        except Exception as error:
            refused.append(_correctable(error))
    if not listed:
        for error in {console.explain(error): error for error in reversed(refused)}.values():  # each once
            console.show(error)
        raise refused[0]
    runs, errors = _planned(listed)
    known = read_records(request, runs)
    found = Plan(request, _large_enough(runs, known), errors, known, refused)
    for error in (*refused, *errors.values()):
        found.show(error)
    return found


def read_records(request: SweepRequest, runs: Iterable[PlannedRun]) -> dict[str, Record]:
    """All records at the scale, by the name of the run."""
    roots = {each.config.results_root for each in runs}
    return {record.run: record for root in roots for record in store.read_all(root, request.scale)}


def _planned(listed: Sequence[Point]) -> tuple[list[PlannedRun], dict[Point, Exception]]:
    """The runs that can be composed and lack no file; of the other points, the errors.

    All runs of a task that lack files have one error, which names everything that is missing.
    """
    settings = defaultdict(list)  # the points of each, which differ in their seed
    for point in listed:
        settings[point.task, point.setting].append(point)
    planned: dict[Point, PlannedRun] = {}
    errors: dict[Point, Exception] = {}
    lacking: dict[str, dict[Point, RunConfig]] = defaultdict(dict)
    for alike in settings.values():
        try:
            configs = _configs(alike)
            if missing_files(configs[0]):
                lacking[alike[0].task] |= zip(alike, configs, strict=True)
            else:
                planned |= zip(alike, _named(alike, configs), strict=True)
        except Exception as error:
            errors |= dict.fromkeys(alike, _correctable(error))
    for configs in lacking.values():
        try:
            check_files(*configs.values())
        except UserError as error:
            errors |= dict.fromkeys(configs, error)
    runs: dict[str, PlannedRun] = {}
    for point in listed:
        if point in planned:
            runs.setdefault(planned[point].run, planned[point])
    return [*runs.values()], errors


def _configs(points: Sequence[Point]) -> list[RunConfig]:
    """The configurations of points that differ in their seed alone: the first is composed.

    Where a configuration file or an override has `${seed}` somewhere, all are.
    """
    first = compose(points[0].overrides)
    if "${seed}" in str(OmegaConf.to_container(first, resolve=False)):
        return [run_config(point.overrides) for point in points]
    run = validated(first)
    return [run.model_copy(update={"seed": point.seed}) for point in points]


def _named(points: Sequence[Point], configs: Sequence[RunConfig]) -> list[PlannedRun]:
    """The points with the names of their runs; settings are computed once for runs that differ only in the seed."""
    first, found = Identity(configs[0]), []
    for point, config in zip(points, configs, strict=True):
        alike = config == configs[0].model_copy(update={"seed": config.seed})
        identity = first if alike else Identity(config)
        run = fingerprint(identity.settings | {"seed": config.seed})
        found.append(PlannedRun(point, config, run, identity.group))
    return found


def _large_enough(runs: Sequence[PlannedRun], known: dict[str, Record]) -> list[PlannedRun]:
    """Leaves out runs whose fraction of the data is less than a batch, as a recorded run on all data shows."""
    rest = [(each.point.task, *(one for one in each.point.setting if not one.startswith("fraction="))) for each in runs]
    on_all = {
        key: known[each.run]
        for each, key in zip(runs, rest, strict=True)
        if each.config.fraction == 1 and each.run in known
    }
    return [
        each
        for each, key in zip(runs, rest, strict=True)
        if each.run in known or key not in on_all or on_all[key].fills_batch(each.config.fraction)
    ]


def _correctable(error: Exception) -> Exception:
    """The error, if a user can correct it; else it is raised."""
    if console.explain(error) is None:
        raise error
    return error
