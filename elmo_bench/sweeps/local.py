"""Trains the runs of a plan as processes on this machine; one that fails does not stop the others."""

from __future__ import annotations

from collections.abc import Sequence

from elmo_bench.records.record import Record
from elmo_bench.sweeps.clusters.local import Job, run_jobs
from elmo_bench.sweeps.plan import Plan, Planned, Point, records
from elmo_bench.system import children, machine
from elmo_bench.system.errors import UserError
from elmo_bench.system.terminal import console

TRAIN = children.python("elmo_bench", "train")
PREPARE = children.python("elmo_bench", "prepare")


class SweepOutcome:
    """What becomes of a plan.

    Attributes:
        records: as in the plan; at the end, with those of new runs.
        errors: why points failed.
        impossible: why points cannot be, which is no failure (`SweepTable.impossible`).
    """

    def __init__(self, plan: Plan):
        self.plan, self.records = plan, plan.records
        self.errors, self.impossible = dict(plan.errors), dict[Point, Exception]()
        self._there = len(plan.runs) - len(plan.new)  # recorded so far
        self._said: set[str] = set()

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
        there = len(self.recorded)
        missing = self._points - there - len(self.errors)
        goes_on = f"; to go on: {self.plan.request.command()}" if there < self._points or self.plan.refused else ""
        return f"{self.plan.request.sweep}: {self.counts(there)}{f', {missing} missing' * bool(missing)}{goes_on}"

    @property
    def _points(self) -> int:
        return len(self.plan.runs) + len(self.plan.errors) - len(self.impossible)

    def counts(self, recorded: int) -> str:
        """How many runs are recorded, and how many have failed."""
        failed = f", {len(self.errors)} failed" if self.errors else ""
        return f"{recorded} of {self._points} runs are recorded{failed}"

    def train(self, new: Sequence[Planned]) -> None:
        """Trains these runs, and says how far all are whenever one has ended."""
        trainer = self.plan.config.trainer
        gpus = [] if trainer.accelerator == "cpu" or trainer.gpu is not None else machine.gpus()
        at_once = self.plan.request.jobs or (1 if gpus else min(2, machine.cores()))
        jobs = [Job(each.title, [*TRAIN, "hydra.mode=RUN", *each.point.overrides]) for each in new]

        def ended(i: int, error: UserError | None) -> str:
            sign = self.plan.request.table.impossible
            if error is None:
                self._there += 1
            elif sign and sign in str(error):
                self.impossible[new[i].point] = error
            else:
                self.errors[new[i].point] = self.say(error, jobs[i].title)
            return self.counts(self._there)

        run_jobs(jobs, min(at_once, len(jobs)), ended, gpus, trainer.devices)

    def say(self, error: Exception, title: str = "") -> Exception:
        """Shows an error with the name of its run, unless an equal one has been shown; returns it as it is shown."""
        text = console.explain(error) or ""
        shown = UserError(f"{text} ({title})") if title and not text.startswith(title) else error
        if text not in self._said:
            self._said.add(text)
            console.show(shown)
        return shown


def run_missing(plan: Plan) -> SweepOutcome:
    """Trains what has no record, if that is asked for. Every error is shown when it occurs, and only once.

    Raises:
        UserError: a record that cannot be read.
        KeyboardInterrupt: a signal. The runs that it interrupted go on from their last epoch when they are run again.
    """
    outcome = SweepOutcome(plan)
    for error in (*plan.refused, *plan.errors.values()):
        outcome.say(error)
    new = _in_order(plan) if plan.request.run else []
    if plan.request.run and (there := len(plan.runs) - len(plan.new)):
        print(f"{outcome.counts(there)} and not run again (force=true does)", flush=True)
    if new:
        print(plan.cost(new), flush=True)
        outcome.train(new)
        outcome.records = records(plan.request, plan.runs)
    return outcome


def _in_order(plan: Plan) -> list[Planned]:
    """The runs to train: of each task, one with ELMo first, as it prepares what others read (the biLM, its layers).

    Then the runs without ELMo, which do not wait for it.
    """
    first = {each.point.task: each for each in reversed(plan.new) if not each.config.baseline}
    return sorted(plan.new, key=lambda each: (each is not first.get(each.point.task), not each.config.baseline))
