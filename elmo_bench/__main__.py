"""The console command `elmo-bench COMMAND KEY=VALUE ...`, the same as `python -m elmo_bench.COMMAND KEY=VALUE ...`."""

from __future__ import annotations

import runpy
import sys

from elmo_bench import __version__
from elmo_bench.experiment import usage
from elmo_bench.system import console
from elmo_bench.system.command import HELP, Section, printed
from elmo_bench.system.errors import UserError

COMMANDS = {
    "reproduce": "the paper's Table 1 for a task: the baseline and +ELMo over several seeds",
    "sweep": "a table or figure of the paper as one sweep, ours beside theirs",
    "queue": "the sweeps on a cluster: recorded, running, waiting and failed runs",
    "train": "one run, or with -m a sweep of runs",
    "prepare": "make what a run reads: generated data, biLM, vectors, stored layers",
    "ensemble": "the recorded runs of an arm, one for each seed, as one model",
    "report": "write the tables and figures of your recorded runs",
    "publish": "make a W&B run of every record, and a workspace and a report of them",
    "predict": "apply a trained model to new text",
    "export_head": "make a run's model the one that predict task=NAME uses",
    "score": "the official metrics of a file of predictions, as one JSON object",
    "data": "fetch the data sets of a scale, and write the files that the tasks read",
    "pretrain": "train a biLM on plain text",
    "vocabulary": "write the words of a text by frequency, for the softmax of a biLM",
    "tune": "tune a biLM on the training text of a task, without its labels",
    "perplexity": "the perplexity of a biLM on a text, by the full softmax",
    "compare": "how far a word's vectors in two sentences stand apart, layer by layer",
    "embed": "write the biLM's layers for each line of a text file",
    "bench": "measure the biLM's speed against this machine's best matrix product",
    "gpu": "run the tests that need a GPU, and measure it",
    "mini": "write the generated data set of the mini scale",
    "analysis.senses": "how well each layer of a biLM tells the senses of a word apart",
    "analysis.coverage": "how often the intervals of gains cover the truth, in simulation",
    "analysis.neighbours": "Table 4: the nearest neighbours of a word in its sentence, by layer",
    "analysis.wsd": "Table 5: word senses by the nearest sense mean, by layer",
    "analysis.pos": "Table 6: parts of speech by a linear classifier, by layer",
}
USAGE = "Usage: elmo-bench COMMAND [KEY=VALUE ...]"


def overview() -> str:
    """All commands, one line each."""
    listed = Section("Commands", list(COMMANDS.items()))
    about = "elmo-bench COMMAND --help describes a command; elmo-bench --version prints the version."
    return "\n\n".join([USAGE, printed(listed), about])


def command() -> None:
    """Runs the command that the first argument names, as `python -m` would."""
    name, *rest = sys.argv[1:] or ["--help"]
    if name in (*HELP, "help"):
        print(overview())
    elif name == "--version":
        print(f"elmo_bench {__version__}")
    elif name not in COMMANDS:
        raise UserError(f"{name}: there is no such command; {console.choices(name, list(COMMANDS))}")
    elif name in usage.COMMANDS and any(argument in HELP for argument in rest):
        usage.COMMANDS[name].run(lambda: None)  # prints the help without importing Hydra
    else:
        sys.argv = [f"elmo-bench {name}", *rest]
        runpy.run_module(f"elmo_bench.{name}", run_name="__main__", alter_sys=True)


def main() -> None:
    """The entry point."""
    if sys.argv[1:2] and sys.argv[1] in COMMANDS:
        command()  # reports its own errors
    else:
        console.report(command)


if __name__ == "__main__":
    main()
