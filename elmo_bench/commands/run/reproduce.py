"""The paper's Table 1 for a task: `python -m elmo_bench reproduce task=ner scale=open seeds=3 data_root=FOLDER`.

It is the sweep conf/sweep/table1.yaml: the baseline and +ELMo on the scale's word vectors, over the seeds; with
controls=true conf/sweep/context.yaml, which also has ELMo without context and an untrained biLM.
"""

from __future__ import annotations

import sys

from elmo_bench.commands import usage
from elmo_bench.commands.command import Argument, Command, whole
from elmo_bench.commands.compare import report
from elmo_bench.records import store
from elmo_bench.records.query import is_context_control, is_main
from elmo_bench.records.record import Record
from elmo_bench.reporting.tables import tables
from elmo_bench.sweeps import request
from elmo_bench.sweeps.local import SweepOutcome
from elmo_bench.sweeps.request import SweepRequest
from elmo_bench.system import places
from elmo_bench.system.errors import UserError

COMMAND = Command(
    (
        Argument("task", "a benchmark, a file in conf/task/, several as ner,srl, or all", "ner"),
        usage.SCALE,
        Argument("seeds", "train each arm with the seeds from 1 to this number", 1, kind=whole(1, 1000)),
        Argument("controls", "also train ELMo without context (elmo.layers=0) and bilm=untrained", False, kind=bool),
        usage.JOBS,
        Argument("recorded", "show the reference runs, and train nothing", False, kind=bool),
        usage.RUN,
        usage.FORCE,
        *usage.ROOTS,
    ),
    (
        ("task=ner", "at the mini scale, offline"),
        ("task=ner recorded=true", "the reference runs, at once"),
        ("task=ner controls=true", "which part of the gain is context"),
        ("task=all scale=open seeds=3 data_root=FOLDER", "every task on open data"),
    ),
    (
        "Prints your results beside the reference runs and the paper, and writes a report of your runs, "
        "results/own/README.md. A run that has a record there is not run again.",
        usage.OVERRIDES,
    ),
    again=usage.REMEDY,
    overrides=True,
    more=usage.all_keys,
    page="getting-started",
)


def main() -> None:
    """The entry point."""
    given, overrides = COMMAND.split(sys.argv[1:], "task", "scale", "seeds", "controls", "jobs", "run", "recorded")
    wanted = request.of(given, overrides, "context" if given["controls"] else "table1")
    if wanted.recorded:
        show_recorded(wanted)
        return
    from elmo_bench.reporting.pages.report import refresh
    from elmo_bench.sweeps.local import run_missing
    from elmo_bench.sweeps.plan import plan

    outcome = run_missing(plan(wanted))
    if outcome.recorded:
        refresh(root := outcome.plan.config.results_root)
        report.show(tables.beside(_with_controls(outcome)))
        print(f"dev scores, layer weights, all intervals: {root}/README.md and report.html")
    if outcome.plan.runs:
        print(outcome.line(), flush=True)
    outcome.raise_first()


def _with_controls(outcome: SweepOutcome) -> list[Record]:
    """The records of the runs that were asked for, and those of their controls that are there."""
    request, asked = outcome.plan.request, {record.run for record in outcome.recorded}
    tasks = [] if request.changes else request.tasks
    there = store.whole([*outcome.records.values()])
    return [each for each in there if each.run in asked or (each.task in tasks and is_context_control(each))]


def show_recorded(wanted: SweepRequest) -> None:
    """Prints the tables of the reference runs of the paper's comparison, all seeds of them.

    Raises:
        UserError: settings are changed, or there is no such run.
    """
    if wanted.changes:
        raise UserError(f"recorded=true shows the arms of the scale without changes: leave out {wanted.changes[0]}")
    found = [each for task in wanted.tasks for each in store.read_all(places.RECORDED, wanted.scale, task)]
    shown = [record for record in found if is_main(record) or is_context_control(record)]
    if not shown:
        raise UserError("there is no such reference run (without recorded=true it is trained)")
    report.show(tables.sections(shown))
