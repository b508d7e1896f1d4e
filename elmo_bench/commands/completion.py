"""TAB in bash and zsh: `eval "$(elmo-bench -sc install=bash)"`, Hydra's own completion with our commands before it.

Hydra's script asks the program without the command, `elmo-bench -sc query=bash`, and gives the line in COMP_LINE.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Mapping
from contextlib import redirect_stdout
from glob import escape, glob
from typing import Any

from elmo_bench.commands.command import COMMANDS, FILES, blocks, command, placeholder, shown
from elmo_bench.configuration.keys import allowed, fields
from elmo_bench.system import places

FLAGS = ("-sc", "--shell_completion")
LINE = "COMP_LINE"
GROUPS = {"task": "task", "on": "cluster"}  # of the configuration files that an argument's values are


def main() -> None:
    """Completes a line, or prints the script that makes a shell ask for it."""
    what = sys.argv[-1]
    sys.argv = ["elmo-bench", "-sc", what]
    train = command("train").model_construct(typed=[])
    if not what.startswith("query"):
        train.run()
        return
    name, separator, rest = os.environ.get(LINE, "").partition(" ")[2].lstrip().partition(" ")
    if not separator:
        print(*COMMANDS)
    elif name in COMMANDS:
        asked = command(name)
        word = "" if rest.endswith(" ") else rest.rpartition(" ")[2]
        found = {*_of_keys(fields(asked), word)}
        if asked.overrides and "=" in word:
            of_runs = (
                (f"{start}.{key}", each) for start, block in blocks().items() for key, each in fields(block).items()
            )
            found |= {*_of_keys(dict(of_runs), word)}
        if asked.overrides and not word.startswith("-") and not (found and "=" in word):
            os.environ[LINE] = f"elmo-bench {rest}"
            with redirect_stdout(io.StringIO()) as keys:
                train.run()
            found |= {*keys.getvalue().split()}
        print(*sorted(found))


def _of_keys(keys: Mapping[str, Any], word: str) -> list[str]:
    """The keys that begin with a word, or those values of its key that begin as the word goes on."""
    name, equals, begun = word.partition("=")
    if not equals:
        return [f"{key}=" for key, field in keys.items() if key.startswith(word) and field.repr]
    if name not in keys:
        return []
    field, values = keys[name], list[str]()
    if placeholder(field) in FILES:
        there = os.path.expanduser(begun)
        values = [begun + path.removeprefix(there) + "/" * os.path.isdir(path) for path in glob(f"{escape(there)}*")]
    elif name in GROUPS:
        values = [*places.named(GROUPS[name]), *([field.default] if isinstance(field.default, str) else [])]
    else:
        values = [shown(value) for value in allowed(field.annotation)]
    return [f"{name}={value}" for value in values if value.startswith(begun)]
