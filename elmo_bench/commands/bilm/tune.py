"""A biLM tuned on a task's text: `python -m elmo_bench tune task=snli scale=open`, or `make tune TASK=snli`."""

from __future__ import annotations

import sys

from elmo_bench.commands import usage
from elmo_bench.commands.command import Argument, Command, files
from elmo_bench.configuration import pages, schema
from elmo_bench.configuration.schema import RunConfig
from elmo_bench.system.errors import UserError

COMMAND = Command(
    (
        Argument("task", "whose text: a file in conf/task/, or all", "ner"),
        usage.SCALE,
        Argument("bilm.parent", "the biLM to tune, a file in conf/bilm/; by default the scale's own", None, "NAME"),
        Argument(
            "bilm.tuning.lr", "peak learning rate; by default that of the scale's file in conf/tuning/", None, "X"
        ),
        Argument("bilm.tuning.every", "seconds between checkpoints", 300),
        Argument("force", "tune again although it has been done", False, kind=bool),
        *usage.ROOTS,
    ),
    (
        ("task=snli", "the biLM of the mini scale on SNLI's sentences"),
        ("task=all scale=open data_root=FOLDER", "Table 7: perplexities of all six tasks before and after"),
    ),
    (
        "Prints the full-softmax perplexity of dev before and after one pass over the training sentences, and writes "
        "it to a record, results/own/analysis/SCALE/tuning/ID.json, for the report. Sentences of dev and "
        "test are left out of the text. Runs know the tuned biLM as bilm=tuned, the other commands by its "
        "folder. A parent without a softmax, such as the official files, first gets a new one, with the biLM frozen; "
        "`before` is the perplexity with it.",
        usage.OVERRIDES,
    ),
    again="running the command again resumes from the last checkpoint",
    overrides=True,
    more=lambda: [files(["task", "scale", "bilm", "tuning"])],
    page="bilms",
)


def chosen(arguments: list[str]) -> list[RunConfig]:
    """The configuration of each task that the arguments name; of `task=all`, of every task that offers the scale.

    Raises:
        UserError: the errors of the configuration, or `bilm=` for `bilm.parent=`.
    """
    if named := next((one for one in arguments if one.startswith("bilm=") and one != "bilm=tuned"), None):
        raise UserError(f"{named}: give bilm.parent={named.partition('=')[2]}, the biLM to tune")
    overrides = ["bilm=tuned", *arguments]
    if "task=all" not in arguments:
        return [schema.typed(pages.compose(overrides))]
    others = [override for override in overrides if override != "task=all"]
    runs = [schema.typed(pages.compose([*others, f"task={task}"])) for task in pages.tasks()]
    return [run for run in runs if run.scale.name in run.task.scales]


def main() -> None:
    """The entry point."""
    from elmo_bench.commands.analysis.usage import show
    from elmo_bench.identity.makers import maker
    from elmo_bench.identity.missing import check_text
    from elmo_bench.tuning import TunedBilm, table

    runs = chosen(sys.argv[1:])
    for run in runs:
        check_text(run)
    for run in runs:
        if data := maker(run.scale, run.places):
            data.make()
        TunedBilm(run.bilm, run.places).make(run.force)
    show(table.write(runs), runs[0].results_root)
