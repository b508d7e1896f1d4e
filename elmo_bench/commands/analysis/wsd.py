"""The paper's Table 5: `elmo-bench analysis.wsd scale=open data_root=FOLDER`, or `make table N=5`."""

from __future__ import annotations

import sys

from elmo_bench.commands.analysis.usage import show, table

COMMAND = table("WsdConfig")


def main() -> None:
    """The entry point."""
    from elmo_bench.analysis.settings import WsdConfig
    from elmo_bench.analysis.study import Study
    from elmo_bench.analysis.wsd import measure

    study = Study.of("wsd", WsdConfig, sys.argv[1:])
    show(study.recorded() or study.write(measure(study)), study.run.results_root)
