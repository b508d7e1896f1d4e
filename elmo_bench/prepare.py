"""Makes what a run reads before it trains: `python -m elmo_bench.prepare task=snli scale=mini`.

That is the generated data, the biLM and word vectors that are trained here, and the stored layers of a frozen biLM. A
run makes them itself where they are missing; a sweep on a cluster makes them once, in a job of its own.
"""

from __future__ import annotations

import sys

from elmo_bench.configuration import pages, schema
from elmo_bench.experiment import usage
from elmo_bench.experiment.blocks import check_blocks
from elmo_bench.experiment.makers import Makers
from elmo_bench.experiment.missing import check_files


def main() -> None:
    """The entry point."""
    run = schema.typed(pages.compose(sys.argv[1:]))
    check_files(run)
    check_blocks(run.task)
    vectors = Makers.of(run).make()
    from elmo_bench.experiment.run import prepare

    prepare(run, vectors)
    print(f"{run.task.name}/{run.scale.name}: all that its runs read is there", flush=True)


if __name__ == "__main__":
    usage.PREPARE.run(main)
