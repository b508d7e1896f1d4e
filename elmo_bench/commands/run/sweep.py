"""A table or figure of the paper as one sweep: `elmo-bench sweep +sweep=table2 task=snli scale=open seeds=3`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from elmo_bench.commands import usage
from elmo_bench.commands.command import Argument, Command, whole
from elmo_bench.commands.compare import report
from elmo_bench.reporting.tables import paper
from elmo_bench.sweeps import request
from elmo_bench.sweeps.local import run_missing
from elmo_bench.sweeps.plan import plan
from elmo_bench.system import places

COMMAND = Command(
    (
        Argument("+sweep", "a file in conf/sweep/", value="NAME"),
        Argument("task", "a benchmark, several as ner,srl, or all; by default the one of the sweep", None, "NAME"),
        usage.SCALE,
        Argument("seeds", "the seeds from 1 to this number; by default those of its file", None, "N", whole(1, 1000)),
        usage.JOBS,
        Argument(
            "on", "local: processes here; slurm: jobs of a cluster, with keys cluster.KEY of conf/cluster/", "local"
        ),
        usage.RUN,
        usage.FORCE,
        *usage.ROOTS,
    ),
    (
        ("+sweep=table2 task=snli", "which layers, how regularised: dev scores on generated data"),
        ("+sweep=table1 task=all scale=open seeds=3 data_root=FOLDER", "Table 1 on open data"),
        ("+sweep=table2 task=snli on=slurm cluster.run.partition=gpu", "as jobs of a cluster; returns at once"),
        ("+sweep=figure2 task=all run=false", "the table of the recorded runs; nothing is trained"),
    ),
    (
        "Trains the runs that have no record, each in a process of its own, and prints the table that they make beside "
        "the paper's. A run that fails does not stop the others. The last line says how many are recorded, failed and "
        "missing; the same command again runs only what is missing.",
        "The table is written to tables/SWEEP.SCALE.md in the folder of results, with the rows of all tasks that have "
        "such runs.",
        usage.OVERRIDES,
    ),
    again="the same command again runs what is missing",
    overrides=True,
    more=usage.all_keys,
    page="sweeps",
)


def wanted(argv: Sequence[str]) -> request.SweepRequest:
    """What the arguments ask for. Raises `UserError` as `request.of` does."""
    return request.of(*COMMAND.split(argv, "sweep", "task", "scale", "seeds", "jobs", "on", "run"))


def main() -> None:
    """The entry point."""
    planned = plan(wanted(sys.argv[1:]))
    if planned.request.on != "local" and planned.request.run:
        from elmo_bench.sweeps import queued

        queued.submit(planned)
        return
    outcome = run_missing(planned)
    if outcome.plan.runs:  # else nothing could be run, and why has been said
        sections, path = paper.write(outcome)
        report.show(sections)
        ours = places.is_evidence(outcome.plan.config.results_root)
        print(f"written: {path}{', a table of the reference runs, which git tracks' * ours}")
        print(outcome.line(), flush=True)
    outcome.raise_first()
