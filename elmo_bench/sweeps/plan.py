"""The runs of a sweep, composed before anything is trained: recorded, missing and impossible runs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from omegaconf import OmegaConf

from elmo_bench.configuration.composing import compose, run_config, validated
from elmo_bench.configuration.schema import RunConfig
from elmo_bench.records import store
from elmo_bench.records.missing import check_files, missing_files
from elmo_bench.records.record import Record, label, run_name
from elmo_bench.records.settings import Identity
from elmo_bench.records.times import expected, in_time, making, on_one_processor, start
from elmo_bench.sweeps.request import SweepRequest, points
from elmo_bench.system import console, places
from elmo_bench.system.errors import UserError
from elmo_bench.system.machine import processor
from elmo_bench.system.storage.hashing import fingerprint


@dataclass(eq=False)
class Point:
    """One run of a sweep.

    Attributes:
        setting: the values of the sweep's keys, without the seed, as "key=value".
        overrides: all overrides of the run, as `train` takes them.
        config, run, group: its configuration, and the names of its record and of its group, if it can be run.
    """

    task: str
    setting: tuple[str, ...]
    seed: int
    overrides: tuple[str, ...]
    config: RunConfig = field(init=False)
    run: str = field(init=False)
    group: str = field(init=False)

    @property
    def title(self) -> str:
        """The run in words."""
        arm = label(self.config.elmo.where, self.config.variant)
        return run_name(self.config.task.name, self.config.scale.name, arm, self.config.seed)


@dataclass
class Plan:
    """All requested runs, and their outcomes.

    Attributes:
        runs: in the sweep's order, each once: without ELMo, the points of all biLMs are one run. Runs with less than a
            batch of training data are left out, once that is known.
        errors: the errors of the points that cannot be run.
        records: by the name of the run, of all runs at this scale, because the table has rows of other tasks, too.
        refused: the errors of tasks whose points cannot be listed.
        failed, impossible: the errors of runs that failed, or cannot exist (`SweepTable.impossible`).
    """

    request: SweepRequest
    runs: list[Point]
    errors: dict[Point, Exception]
    records: dict[str, Record]
    refused: list[Exception]
    failed: dict[Point, Exception] = field(default_factory=dict)
    impossible: dict[Point, Exception] = field(default_factory=dict)
    shown: set[str] = field(default_factory=set)  # the errors
    expected: dict[str, float] = field(default_factory=dict)  # by run, the seconds of computing, if known

    @property
    def asked(self) -> dict[str, set[str]]:
        """By task the groups of its runs; without tasks that have errors, unless files distinguish their runs."""
        wrong = set() if self.request.has_files else {point.task for point in self.errors}
        groups = defaultdict(set)
        for each in self.runs:
            if each.task not in wrong:
                groups[each.task].add(each.group)
        return groups

    @property
    def new(self) -> list[Point]:
        """The runs to train."""
        finished = {run for run, record in self.records.items() if record.path and store.is_finished(record.path)}
        return [each for each in self.runs if each.run not in finished or each.config.force]

    @property
    def recorded(self) -> list[Record]:
        """The records of the runs that have one and did not fail."""
        return [self.records[each.run] for each in self.runs if each.run in self.records and each not in self.failed]

    def show(self, error: Exception, title: str = "") -> Exception:
        """Shows an error with the name of its run, unless an equal one has been shown; returns the shown error."""
        text = console.explain(error) or ""
        shown = UserError(f"{text} ({title})") if title and not text.startswith(title) else error
        if text not in self.shown:
            self.shown.add(text)
            console.show(shown)
        return shown

    def counts(self, recorded: int) -> str:
        """The numbers of recorded and failed runs."""
        failed = len(self.errors) + len(self.failed)
        every = len(self.runs) + len(self.errors) - len(self.impossible)
        return f"{recorded} of {every} runs are recorded" + (f", {failed} failed" if failed else "")

    def end(self, line: str = "") -> None:
        """Prints a last line, if there are runs, and raises the first error; all have been shown.

        By default it says how many points are recorded, failed and missing, and which command continues.
        """
        recorded, errors = len(self.recorded), [*self.refused, *self.errors.values(), *self.failed.values()]
        missing = len(self.runs) - len(self.impossible) - recorded - len(self.failed)
        goes_on = f"; to continue: {self.request.command()}" if missing or errors else ""
        counts = f"{self.counts(recorded)}{f', {missing} missing' * bool(missing)}"
        if self.runs:
            print(line or f"{self.request.sweep}: {counts}{goes_on}", flush=True)
        for error in errors:
            raise error

    def cost(self, new: Sequence[Point]) -> str:
        """The expected computing time of these runs, from recorded runs of their tasks and arms.

        The user's own runs count if there are any, otherwise the reference runs. Known times are kept in `expected`.
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
            return f"{message}; no such run is recorded, so their time is not known"
        there = {name for record in known[0] for name in (record.task, "")}
        once = making(recorded, {"", *(each.config.task.name for each in new)} - there)
        but = f", without {unknown} that have no recorded equivalent" if unknown else ""
        prepared = any(record.preparing for record in recorded)
        what = "of computing, preparation included" if prepared else "of training alone"
        total = in_time(sum(self.expected.values()) + once)
        return f"{message}: about {total} {what} (medians of recorded runs{but})"


def plan(request: SweepRequest) -> Plan:
    """Composes every run; errors of some runs are shown."""
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
                typed = (int(value.removeprefix("seed=")) for value in reversed(values) if value.startswith("seed="))
                listed.append(Point(task, setting, next(typed, 1), (f"+sweep={request.sweep}", *chosen, *values)))
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


def read_records(request: SweepRequest, runs: Iterable[Point]) -> dict[str, Record]:
    """The records of the scale below the runs' folders of results, by the names of their runs."""
    roots = {each.config.results_root for each in runs}
    return {record.run: record for root in roots for record in store.read_all(root, request.scale)}


def _planned(listed: Sequence[Point]) -> tuple[list[Point], dict[Point, Exception]]:
    """The runs that can be composed and lack no file; of the other points, the errors.

    All runs of a task that lack files share one error, which names all missing files.
    """
    settings = defaultdict(list)  # the points of each setting, which differ in their seed
    for point in listed:
        settings[point.task, point.setting].append(point)
    errors: dict[Point, Exception] = {}
    lacking: dict[str, list[Point]] = defaultdict(list)
    for alike in settings.values():
        try:
            _compose(alike)
            if missing_files(alike[0].config):
                lacking[alike[0].task] += alike
                continue
            first = Identity(alike[0].config)  # shared by all points that differ only in the seed
            for point in alike:
                same = point.config == alike[0].config.model_copy(update={"seed": point.config.seed})
                identity = first if same else Identity(point.config)
                point.run = fingerprint(identity.settings | {"seed": point.config.seed})
                point.group = identity.group
        except Exception as error:
            errors |= dict.fromkeys(alike, _correctable(error))
    for lack in lacking.values():
        try:
            check_files(*(point.config for point in lack))
        except UserError as error:
            errors |= dict.fromkeys(lack, error)
    runs: dict[str, Point] = {}
    for point in listed:
        if point not in errors:
            runs.setdefault(point.run, point)
    return [*runs.values()], errors


def _compose(alike: Sequence[Point]) -> None:
    """Makes the configurations of points that differ in their seed alone: the first is composed.

    If a configuration file or an override contains `${seed}`, all are composed.
    """
    first = compose(alike[0].overrides)
    each_differs = "${seed}" in str(OmegaConf.to_container(first, resolve=False))
    run = validated(first)
    for point in alike:
        point.config = run_config(point.overrides) if each_differs else run.model_copy(update={"seed": point.seed})


def _large_enough(runs: Sequence[Point], known: dict[str, Record]) -> list[Point]:
    """Leaves out runs whose fraction of the data is less than a batch, as a recorded run on all data shows."""
    rest = [(each.task, *(one for one in each.setting if not one.startswith("fraction="))) for each in runs]
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
    """The error, if a user can correct it; otherwise it is raised."""
    if console.explain(error) is None:
        raise error
    return error
