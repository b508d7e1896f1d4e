"""The paper's Table 6: `elmo-bench analysis.pos scale=open data_root=FOLDER`, or `make table N=6`."""

from __future__ import annotations

import sys

from elmo_bench.commands.analysis.usage import show, table

COMMAND = table("PosConfig")


def main() -> None:
    """The entry point."""
    from elmo_bench.analysis.pos import measure
    from elmo_bench.analysis.settings import PosConfig
    from elmo_bench.analysis.study import Study

    study = Study.of("pos", PosConfig, sys.argv[1:])
    show(study.recorded() or study.write(measure(study)), study.run.results_root)
