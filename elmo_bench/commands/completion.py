"""TAB in bash and zsh: `eval "$(elmo-bench -sc install=bash)"`, Hydra's own completion with our commands before it.

Hydra's script asks the program without the command, `elmo-bench -sc query=bash`, and gives the line in COMP_LINE.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Iterable

from elmo_bench.system.terminal.command import Command

FLAGS = ("-sc", "--shell_completion")
LINE = "COMP_LINE"


def main(commands: Iterable[str], module: Callable[[str], str]) -> None:
    """Completes a line, or prints the script that makes a shell ask for it."""
    what = sys.argv[-1]
    if what.startswith("query"):
        name, separator, rest = os.environ.get(LINE, "").partition(" ")[2].lstrip().partition(" ")
        if not separator:
            print(*commands)
            return
        if name not in commands:
            return
        command: Command = importlib.import_module(module(name)).COMMAND
        print(*(f"{argument.name}=" for argument in command.arguments))
        if not command.overrides:
            return
        os.environ[LINE] = f"elmo-bench {rest}"
    sys.argv = ["elmo-bench", "-sc", what]
    importlib.import_module(module("train")).main()
