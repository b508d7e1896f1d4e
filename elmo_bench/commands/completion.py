"""TAB in bash and zsh: `eval "$(elmo-bench -sc install=bash)"`, Hydra's own completion with our commands before it.

Hydra's script asks the program without the command, `elmo-bench -sc query=bash`, and gives the line in COMP_LINE.
"""

from __future__ import annotations

import importlib
import io
import os
import sys
from collections.abc import Callable, Iterable
from contextlib import redirect_stdout
from glob import escape, glob
from itertools import chain

from elmo_bench.commands import usage
from elmo_bench.commands.command import REQUIRED, Argument, Command, shown
from elmo_bench.configuration.checks import allowed
from elmo_bench.system import places

FLAGS = ("-sc", "--shell_completion")
LINE = "COMP_LINE"
GROUPS = {"task": "task", "on": "cluster"}  # of the configuration files that are an argument's values


def main(commands: Iterable[str], module: Callable[[str], str]) -> None:
    """Completes a line, or prints the script that makes a shell ask for it."""
    what = sys.argv[-1]
    sys.argv = ["elmo-bench", "-sc", what]
    if not what.startswith("query"):
        importlib.import_module(module("train")).main()
        return
    name, separator, rest = os.environ.get(LINE, "").partition(" ")[2].lstrip().partition(" ")
    if not separator:
        print(*commands)
    elif name in commands:
        command: Command = importlib.import_module(module(name)).COMMAND
        word = "" if rest.endswith(" ") else rest.rpartition(" ")[2]
        found = {*_of_arguments(command.arguments, word)}
        if command.overrides and "=" in word:
            found |= {*_of_arguments(chain.from_iterable(usage.keys().values()), word)}
        if command.overrides and not word.startswith("-") and not (found and "=" in word):
            os.environ[LINE] = f"elmo-bench {rest}"
            with redirect_stdout(io.StringIO()) as keys:
                importlib.import_module(module("train")).main()
            found |= {*keys.getvalue().split()}
        print(*sorted(found))


def _of_arguments(arguments: Iterable[Argument], word: str) -> list[str]:
    """The arguments that begin with a word, or those values of its argument that begin as the word goes on."""
    key, equals, begun = word.partition("=")
    if not equals:
        return [f"{each.name}=" for each in arguments if each.name.startswith(word)]
    values = [value for each in arguments if each.name == key for value in _values(each, begun)]
    return [f"{key}={value}" for value in values if value.startswith(begun)]


def _values(argument: Argument, begun: str) -> list[str]:
    if argument.names_files:
        there = os.path.expanduser(begun)
        return [begun + path.removeprefix(there) + "/" * os.path.isdir(path) for path in glob(f"{escape(there)}*")]
    if argument.name in GROUPS:
        default = [] if argument.default in (None, REQUIRED) else [argument.default]
        return [*places.named(GROUPS[argument.name]), *default]
    return [shown(value) for value in allowed(argument.kind)]
