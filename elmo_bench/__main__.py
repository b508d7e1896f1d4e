"""The console command `elmo-bench COMMAND KEY=VALUE ...`, the same as `python -m elmo_bench COMMAND KEY=VALUE ...`.

A command is a module in the package of its heading, `elmo_bench/commands/HEADING/NAME.py`, with its arguments
(`COMMAND`) and its entry point (`main`).
"""

from __future__ import annotations

import importlib
import sys

from elmo_bench import __version__
from elmo_bench.commands import completion
from elmo_bench.commands.command import HELP, HelpSection, printed
from elmo_bench.system.errors import UserError
from elmo_bench.system.terminal import console, streams

HEADINGS = {
    "run": {
        "reproduce": "the paper's Table 1 for a task: the baseline and +ELMo over several seeds",
        "sweep": "a table or figure of the paper as one sweep, ours beside theirs",
        "queue": "the sweeps on a cluster: recorded, running, waiting and failed runs",
        "train": "one run, or with -m a sweep of runs",
        "prepare": "make what a run reads: generated data, biLM, vectors, stored layers",
        "data": "fetch the data sets of a scale, and write the files that the tasks read",
    },
    "compare": {
        "report": "write the tables and figures of your recorded runs",
        "export": "the records as CSV and parquet, and every table as LaTeX and Markdown",
        "publish": "make a W&B run of every record, and a workspace and a report of them",
        "score": "the official metrics of a file of predictions, as one JSON object",
    },
    "bilm": {
        "pretrain": "train a biLM on plain text",
        "vocabulary": "write the words of a text by frequency, for the softmax of a biLM",
        "tune": "tune a biLM on the training text of a task, without its labels",
        "perplexity": "the perplexity of a biLM on a text, by the full softmax",
    },
    "analysis": {
        "analysis.neighbours": "Table 4: the nearest neighbours of a word in its sentence, by layer",
        "analysis.wsd": "Table 5: word senses by the nearest sense mean, by layer",
        "analysis.pos": "Table 6: parts of speech by a linear classifier, by layer",
        "analysis.overlap": "how much of dev and test stands in a text: what a biLM has read of them",
    },
    "use": {
        "predict": "apply a trained model to new text",
        "demo": "a page on which you try the trained models and the biLM's vectors",
        "embed": "write the biLM's layers for each line of a text file",
        "compare": "how far a word's vectors in two sentences stand apart, layer by layer",
        "export_head": "make a run's model the one that predict task=NAME uses",
    },
    "machine": {
        "bench": "measure the biLM's speed against this machine's best matrix product",
    },
}
TITLES = {"bilm": "biLM"}
COMMANDS = {name: heading for heading, commands in HEADINGS.items() for name in commands}
USAGE = "Usage: elmo-bench COMMAND [KEY=VALUE ...]"


def overview() -> str:
    """All commands under their headings, one line each."""
    widest = max(map(len, COMMANDS))
    listed = [
        printed(
            HelpSection(TITLES.get(heading, heading), [(f"{name:{widest}}", line) for name, line in commands.items()])
        )
        for heading, commands in HEADINGS.items()
    ]
    about = "elmo-bench COMMAND --help describes a command; elmo-bench --version prints the version."
    return "\n\n".join([USAGE, *listed, about])


def module(name: str) -> str:
    """The module of a command: "analysis.pos" -> "elmo_bench.commands.analysis.pos"."""
    return f"elmo_bench.commands.{COMMANDS[name]}.{name.rpartition('.')[2]}"


def main() -> None:
    """Runs the command that the first argument names."""
    streams.ready()
    name, *rest = sys.argv[1:] or ["--help"]
    if len(sys.argv) > 2 and sys.argv[-2] in completion.FLAGS:
        console.report(lambda: completion.main(COMMANDS, module))
        return
    if name not in COMMANDS:
        console.report(lambda: _other(name))
        return
    sys.argv = [f"elmo-bench {name}", *rest]
    command = importlib.import_module(module(name))
    command.COMMAND.run(command.main, name, HEADINGS[COMMANDS[name]][name])


def _other(name: str) -> None:
    if name in (*HELP, "help"):
        print(overview())
    elif name == "--version":
        print(f"elmo_bench {__version__}")
    else:
        raise UserError(f"{name}: there is no such command; {console.choices(name, list(COMMANDS))}")


if __name__ == "__main__":
    main()
