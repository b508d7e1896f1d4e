"""Makes what a run reads before it trains: `python -m elmo_bench prepare task=snli scale=mini`.

That is the generated data, the biLM and word vectors that are trained here, and the stored layers of a frozen biLM. A
run makes them itself where they are missing; a sweep on a cluster makes them once, in a job of its own.
"""

from __future__ import annotations

import sys

from elmo_bench.commands import usage
from elmo_bench.commands.command import Command
from elmo_bench.configuration import pages, schema
from elmo_bench.identity import makers
from elmo_bench.identity.missing import check_files
from elmo_bench.running.blocks import check_blocks

COMMAND = Command(
    (usage.TASK, usage.SCALE, usage.ARM, *usage.ROOTS),
    (("task=snli scale=open data_root=FOLDER", "the layers of all sentences of SNLI"),),
    ("A run makes these itself where they are missing.", usage.OVERRIDES),
    overrides=True,
    more=usage.all_keys,
    page="runs",
)


def main() -> None:
    """The entry point."""
    run = schema.typed(pages.compose(sys.argv[1:]))
    check_files(run)
    check_blocks(run.task)
    from elmo_bench.running.fit import check_machine
    from elmo_bench.running.run import prepare

    check_machine(run.trainer)
    vectors = makers.make(run)
    prepare(run, vectors)
    print(f"{run.task.name}/{run.scale.name}: all that its runs read is there", flush=True)
