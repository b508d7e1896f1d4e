"""A table or figure of the paper as one sweep: `python -m elmo_bench.sweep +sweep=table2 task=snli scale=open seeds=3`.

Trains the runs of a page of conf/sweep/ that have no record yet, each in a process of its own; prints the table that
they make, beside the paper's, and writes it below results/tables/. Typing it again runs only what is missing. With
`on=slurm` the runs are jobs of a cluster, and the command returns at once.
"""

from __future__ import annotations

import sys

from elmo_bench import report
from elmo_bench.experiment import asked, queued, usage
from elmo_bench.experiment.plan import plan
from elmo_bench.experiment.together import carry_out
from elmo_bench.reporting import table_files


def main() -> None:
    """The entry point."""
    planned = plan(asked.parse(sys.argv[1:]))
    if planned.asked.on != "local" and planned.asked.run:
        queued.submit(planned)
        return
    outcome = carry_out(planned)
    if outcome.plan.composed:  # else nothing could be run, and why has been said
        table = table_files.write(outcome)
        report.show(table.sections)
        print(f"written: {table.path}, {table.path.with_suffix('.json').name}")
        print(outcome.line(), flush=True)
    outcome.raise_first()


if __name__ == "__main__":
    usage.SWEEP.run(main)
