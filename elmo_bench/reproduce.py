"""The paper's Table 1 for a task: `python -m elmo_bench.reproduce task=ner scale=open seeds=3 data_root=FOLDER`.

Runs the sweep conf/sweep/table1.yaml: the pair of the scale, without ELMo and with it on the same pre-trained word
vectors, over seeds 1 to N (`task=all`: every task); prints your results beside those that the authors recorded and the
paper's, and writes a report of yours. A run that has a record is not run again. Any other override applies to all
runs. `recorded=true` only shows the authors' results.

`jobs=N` trains N runs at a time, each on its share of the cores; by default two, if there are two cores and no GPU.
"""

from __future__ import annotations

import sys

from elmo_bench import report
from elmo_bench.configuration import schema
from elmo_bench.configuration.composing import compose_all
from elmo_bench.experiment import asked, usage
from elmo_bench.experiment.asked import Asked
from elmo_bench.experiment.plan import plan
from elmo_bench.experiment.recorded import is_evidence, recorded
from elmo_bench.experiment.sweeps import points
from elmo_bench.experiment.together import carry_out
from elmo_bench.reporting import tables
from elmo_bench.reporting.beside import beside
from elmo_bench.reporting.statistics import ranges


def main() -> None:
    """The entry point."""
    wanted = asked.parse(sys.argv[1:], sweep="table1", seeds=1)
    if wanted.recorded:
        show_recorded(wanted)
        return
    outcome = carry_out(plan(wanted))
    if records := list(outcome.recorded.values()):
        report.refresh(outcome.plan.config.results_root)
        report.show(tables.sections(records))
        report.show([] if is_evidence(outcome.plan.config.results_root) else beside(records))
    if outcome.plan.composed:
        print(outcome.line(), flush=True)
    outcome.raise_first()


def show_recorded(wanted: Asked) -> None:
    """Prints the tables of the authors' runs; says in one line which of those asked for they have not recorded."""
    found = []
    for task in wanted.tasks:
        chosen = wanted.chosen(task)
        runs = points(wanted.sweep, chosen, range(1, (wanted.seeds or 1) + 1), wanted.instead)
        found.append(recorded(map(schema.typed, compose_all([*chosen, *point] for point in runs))))
    report.show(tables.sections([record for each in found for record in each.records]))
    missing = [f"{name}, seeds {ranges(seeds)}" for each in found for name, seeds in each.missing.items()]
    if missing:
        print(f"not recorded by the authors: {'; '.join(missing)} (without recorded=true they are trained)", flush=True)


if __name__ == "__main__":
    usage.REPRODUCE.run(main)
