"""A biLM tuned on a task's text: `python -m elmo_bench.tune task=snli scale=open`, or `make tune TASK=snli`."""

from __future__ import annotations

import sys

from elmo_bench.configuration import pages, schema
from elmo_bench.configuration.schema import RunConfig
from elmo_bench.experiment.usage import TUNE as COMMAND


def chosen(arguments: list[str]) -> list[RunConfig]:
    """The configuration of each task that the arguments name; of `task=all`, of every task that offers the scale.

    Raises:
        UserError: the errors of the configuration.
    """
    overrides = ["bilm=tuned", *arguments]
    if "task=all" not in arguments:
        return [schema.typed(pages.compose(overrides))]
    others = [override for override in overrides if override != "task=all"]
    runs = [schema.typed(pages.compose([*others, f"task={task}"])) for task in pages.tasks()]
    return [run for run in runs if run.scale.name in run.task.scales]


def main() -> None:
    """The entry point."""
    from rich.console import Console

    from elmo_bench.experiment.makers import maker
    from elmo_bench.experiment.missing import check_text
    from elmo_bench.tuning import TunedBilm, table

    runs = chosen(sys.argv[1:])
    for run in runs:
        check_text(run)
    for run in runs:
        if data := maker(run.scale, run.places):
            data.make()
        TunedBilm(run.bilm, run.places).make(run.force)
    path = table.write(runs)
    table.show(path, Console())


if __name__ == "__main__":
    COMMAND.run(main)
