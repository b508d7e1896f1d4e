"""Trains the runs of a plan as processes on this machine; one that fails does not stop the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from elmo_bench.configuration.schema import RunConfig
from elmo_bench.records.record import Record
from elmo_bench.sweeps.clusters.local import Job, run_jobs
from elmo_bench.sweeps.plan import Plan, Point, records
from elmo_bench.system import children, machine
from elmo_bench.system.errors import UserError
from elmo_bench.system.terminal import console

TRAIN = children.python("elmo_bench", "train")
PREPARE = children.python("elmo_bench", "prepare")


class SweepOutcome(NamedTuple):
    """What has become of a plan.

    Attributes:
        plan: the plan.
        records: as in the plan, with those of new runs.
        errors: why points failed.
        impossible: why points cannot be, which is no failure (`Table.impossible`).
    """

    plan: Plan
    records: Mapping[str, Record]
    errors: Mapping[Point, Exception]
    impossible: Mapping[Point, Exception]

    @property
    def recorded(self) -> dict[Point, Record]:
        """The record of each point that has one and did not fail."""
        found = {point: self.records.get(each.run) for point, each in self.plan.composed.items()}
        return {point: record for point, record in found.items() if record and point not in self.errors}

    def raise_first(self) -> None:
        """Raises the first error, if there is one; all have been shown."""
        for error in (*self.plan.refused, *self.errors.values()):
            raise error

    def line(self) -> str:
        """How many points are recorded, failed and missing, and the command that goes on."""
        points, there, failed = len(self.plan.points) - len(self.impossible), len(self.recorded), len(self.errors)
        counts = ((failed, "failed"), (points - there - failed, "missing"))
        said = [f"{there} of {points} runs are recorded", *(f"{number} {what}" for number, what in counts if number)]
        goes_on = f"; to go on: {self.plan.request.command()}" if there < points or self.plan.refused else ""
        return f"{self.plan.request.sweep}: {', '.join(said)}{goes_on}"


def run_missing(plan: Plan) -> SweepOutcome:
    """Trains what has no record, if that is asked for. Every error is shown when it occurs, and only once.

    Raises:
        UserError: a record that cannot be read.
        KeyboardInterrupt: a signal. The runs that it interrupted go on from their last epoch when they are run again.
    """
    progress = _Progress(plan)
    for error in (*plan.refused, *plan.errors.values()):
        progress.say(error)
    new = _in_order(plan) if plan.request.run else []
    if progress.recorded and plan.request.run:
        print(f"{progress.line()} and not run again (force=true does)", flush=True)
    if new:
        print(plan.cost(new), flush=True)
        _train(plan, new, progress)
    found = records(plan.request, plan.composed.values()) if new else plan.records
    return SweepOutcome(plan, found, progress.errors, progress.impossible)


def _train(plan: Plan, new: Sequence[Point], progress: _Progress) -> None:
    at_once = plan.request.jobs or fitting(plan.config)
    jobs = [Job(plan.composed[point].title, [*TRAIN, "hydra.mode=RUN", *point.overrides]) for point in new]
    trainer = plan.config.trainer
    gpus = [] if trainer.accelerator == "cpu" else machine.gpus()
    at_once = min(at_once, len(jobs))
    run_jobs(jobs, at_once, lambda i, error: progress.ended(new[i], jobs[i].title, error), gpus, trainer.devices)


class _Progress:
    """Counts the runs that have ended, and says their errors."""

    def __init__(self, plan: Plan):
        self.total, self.recorded = len(plan.points), len(plan.recorded.keys() - {*plan.new})
        self.sign = plan.request.table.impossible
        self.errors, self.impossible = dict(plan.errors), dict[Point, Exception]()
        self.said: set[str] = set()

    def say(self, error: Exception, title: str = "") -> Exception:
        """Shows an error with the name of its run, unless an equal one has been shown; returns it as it is shown."""
        text = console.explain(error) or ""
        shown = UserError(f"{text} ({title})") if title and not text.startswith(title) else error
        if text not in self.said:
            self.said.add(text)
            console.show(shown)
        return shown

    def ended(self, point: Point, title: str, error: UserError | None) -> str:
        """Takes the end of a run; returns how far all of them are."""
        if error is None:
            self.recorded += 1
        elif self.sign and self.sign in str(error):
            self.impossible[point] = error
        else:
            self.errors[point] = self.say(error, title)
        return self.line()

    def line(self) -> str:
        """How many runs are recorded, and how many have failed."""
        failed = f", {len(self.errors)} failed" if self.errors else ""
        return f"{self.recorded} of {self.total - len(self.impossible)} runs are recorded{failed}"


def _in_order(plan: Plan) -> list[Point]:
    """The points to train: of each task, one with ELMo first, as it prepares what others read (the biLM, its layers).

    Then the runs without ELMo, which do not wait for it.
    """
    first = {point.task: point for point in reversed(plan.new) if not plan.composed[point].config.baseline}

    def place(point: Point) -> tuple[bool, bool]:
        return point != first.get(point.task), not plan.composed[point].config.baseline

    return sorted(plan.new, key=place)


def fitting(run: RunConfig) -> int:
    """How many runs to train at a time: two if there are two cores and no GPU, else one."""
    if run.trainer.accelerator != "cpu" and machine.gpus():
        return 1
    return min(2, machine.cores())
