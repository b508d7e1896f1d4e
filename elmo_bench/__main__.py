"""The console command `elmo-bench COMMAND KEY=VALUE ...`, the same as `python -m elmo_bench COMMAND KEY=VALUE ...`.

A command is a class in the module of its heading, `elmo_bench/commands/HEADING.py`: its keys are the arguments, its
docstring the help.
"""

from __future__ import annotations

import inspect
import sys

from elmo_bench import __version__
from elmo_bench.commands import completion
from elmo_bench.commands.command import COMMANDS, HEADINGS, HELP, HelpSection, command, printed
from elmo_bench.system import places
from elmo_bench.system.errors import UserError, notice
from elmo_bench.system.terminal import console, streams

TITLES = {"bilm": "biLM"}
USAGE = "Usage: elmo-bench COMMAND [KEY=VALUE ...]"


def summary(name: str) -> str:
    """What a command does, in a line."""
    return (inspect.getdoc(command(name)) or "").partition("\n")[0].rstrip(".")


def overview() -> str:
    """All commands under their headings, one line each."""
    widest = max(map(len, COMMANDS))
    listed = [
        printed(HelpSection(TITLES.get(heading, heading), [(f"{name:{widest}}", summary(name)) for name in names]))
        for heading, names in HEADINGS.items()
    ]
    about = "elmo-bench COMMAND --help describes a command; elmo-bench --version prints the version."
    return "\n\n".join([USAGE, *listed, about])


def main() -> None:
    """Runs the command that the first argument names."""
    streams.ready()
    if (other := places.other_checkout()) is not None:
        notice(
            f"this is the code of {places.PACKAGE.parent}, not of {other}; 'make' there sets up an environment for it"
        )
    name, *rest = sys.argv[1:] or ["--help"]
    if len(sys.argv) > 2 and sys.argv[-2] in completion.FLAGS:
        console.report(completion.main)
        return
    if name not in COMMANDS:
        console.report(lambda: _other(name))
        return
    sys.argv = [f"elmo-bench {name}", *rest]
    command(name).main(name)


def _other(name: str) -> None:
    if name in (*HELP, "help"):
        print(overview())
    elif name == "--version":
        print(f"elmo_bench {__version__}")
    else:
        raise UserError(f"{name}: there is no such command; {console.choices(name, list(COMMANDS))}")


if __name__ == "__main__":
    main()
