"""The paper's Table 1 for a task: `python -m elmo_bench.reproduce task=ner scale=open seeds=3 data_root=FOLDER`.

Runs the sweep conf/sweep/table1.yaml, the arms that the task's page names, over seeds 1 to N (`task=all`: every task);
prints our results beside the paper's and writes results/README.md. Recorded runs are not run again. Any other override
applies to every run.

`jobs=N` trains N runs at a time, each on its share of the cores; by default two, if there are two cores and no GPU.
"""

from __future__ import annotations

import sys

from elmo_bench import report
from elmo_bench.experiment import asked, usage
from elmo_bench.experiment.plan import plan
from elmo_bench.experiment.together import carry_out
from elmo_bench.reporting import tables


def main() -> None:
    """The entry point."""
    outcome = carry_out(plan(asked.parse(sys.argv[1:], sweep="table1", seeds=1)))
    if records := list(outcome.recorded.values()):
        report.refresh(outcome.plan.config.results_root)
        report.show(tables.sections(records))
    if outcome.plan.composed:
        print(outcome.line(), flush=True)
    outcome.raise_first()


if __name__ == "__main__":
    usage.REPRODUCE.run(main)
