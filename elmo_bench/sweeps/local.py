"""Trains the runs of a plan as processes on this machine; one that fails does not stop the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from elmo_bench.records.record import Record
from elmo_bench.sweeps.clusters.local import Job, run_jobs
from elmo_bench.sweeps.plan import Plan, Planned, Point, records
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
    def recorded(self) -> list[Record]:
        """The records of the runs that have one and did not fail."""
        there = [each for each in self.plan.runs if each.run in self.records and each.point not in self.errors]
        return [self.records[each.run] for each in there]

    def raise_first(self) -> None:
        """Raises the first error, if there is one; all have been shown."""
        for error in (*self.plan.refused, *self.errors.values()):
            raise error

    def line(self) -> str:
        """How many points are recorded, failed and missing, and the command that goes on."""
        points = len(self.plan.runs) + len(self.plan.errors) - len(self.impossible)
        there, failed = len(self.recorded), len(self.errors)
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
    found = records(plan.request, plan.runs) if new else plan.records
    return SweepOutcome(plan, found, progress.errors, progress.impossible)


def _train(plan: Plan, new: Sequence[Planned], progress: _Progress) -> None:
    trainer = plan.config.trainer
    gpus = [] if trainer.accelerator == "cpu" else machine.gpus()
    at_once = plan.request.jobs or (1 if gpus else min(2, machine.cores()))
    jobs = [Job(each.title, [*TRAIN, "hydra.mode=RUN", *each.point.overrides]) for each in new]

    def ended(i: int, error: UserError | None) -> str:
        return progress.ended(new[i].point, jobs[i].title, error)

    run_jobs(jobs, min(at_once, len(jobs)), ended, gpus, trainer.devices)


class _Progress:
    """Counts the runs that have ended, and says their errors."""

    def __init__(self, plan: Plan):
        self.total, self.recorded = len(plan.runs) + len(plan.errors), len(plan.runs) - len(plan.new)
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


def _in_order(plan: Plan) -> list[Planned]:
    """The runs to train: of each task, one with ELMo first, as it prepares what others read (the biLM, its layers).

    Then the runs without ELMo, which do not wait for it.
    """
    first = {each.point.task: each for each in reversed(plan.new) if not each.config.baseline}

    def place(each: Planned) -> tuple[bool, bool]:
        return each is not first.get(each.point.task), not each.config.baseline

    return sorted(plan.new, key=place)
