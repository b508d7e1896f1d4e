"""The paper's Table 1 for a task: `python -m elmo_bench reproduce task=ner scale=open seeds=3 data_root=FOLDER`.

It is the sweep conf/sweep/table1.yaml: the baseline and +ELMo on the scale's word vectors, over the seeds.
"""

from __future__ import annotations

import sys

from elmo_bench.commands import usage
from elmo_bench.commands.compare import report
from elmo_bench.records import store
from elmo_bench.records.query import is_main
from elmo_bench.reporting.tables import tables
from elmo_bench.sweeps import request
from elmo_bench.sweeps.request import SweepRequest
from elmo_bench.system import places
from elmo_bench.system.errors import UserError
from elmo_bench.system.terminal.command import Argument, Command, flag, whole

COMMAND = Command(
    (
        Argument("task", "a benchmark, a file in conf/task/, several as ner,srl, or all", "ner"),
        usage.SCALE,
        Argument("seeds", "train each arm with the seeds from 1 to this number", 1, parse=whole(1, 1000)),
        usage.JOBS,
        Argument("recorded", "show the reference runs, and train nothing", False, parse=flag),
        usage.RUN,
        usage.FORCE,
        *usage.ROOTS,
    ),
    (
        ("task=ner", "at the mini scale, offline"),
        ("task=ner recorded=true", "the reference runs, at once"),
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
    given, overrides = COMMAND.split(sys.argv[1:], "task", "scale", "seeds", "jobs", "run", "recorded")
    wanted = request.of(given, overrides, "table1")
    if wanted.recorded:
        show_recorded(wanted)
        return
    from elmo_bench.reporting.pages.report import refresh
    from elmo_bench.sweeps.local import run_missing
    from elmo_bench.sweeps.plan import plan

    outcome = run_missing(plan(wanted))
    if records := outcome.recorded:
        refresh(outcome.plan.config.results_root)
        report.show(tables.sections(records))
        report.show([] if places.is_evidence(outcome.plan.config.results_root) else tables.beside(records))
    if outcome.plan.runs:
        print(outcome.line(), flush=True)
    outcome.raise_first()


def show_recorded(wanted: SweepRequest) -> None:
    """Prints the tables of the reference runs of the paper's comparison, all seeds of them.

    Raises:
        UserError: settings are changed, or there is no such run.
    """
    if wanted.changes:
        raise UserError(f"recorded=true shows the arms of the scale without changes: leave out {wanted.changes[0]}")
    found = [each for task in wanted.tasks for each in store.read_all(places.RECORDED, wanted.scale, task)]
    shown = [record for record in found if is_main(record)]
    if not shown:
        raise UserError("there is no such reference run (without recorded=true it is trained)")
    report.show(tables.sections(shown))
