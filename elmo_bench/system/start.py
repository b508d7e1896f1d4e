"""`python -P start.py -m MODULE ...` is `python -m MODULE ...` that imports nothing from the current folder.

In a folder with a `random.py`, plain `python -m` imports that one in the place of Python's own. `elmo_bench` and
`tasks` are those of this copy of the project, even if another one is installed, as where .venv is a link.
"""

from __future__ import annotations

import os
import runpy
import sys
from importlib.machinery import ModuleSpec, PathFinder
from typing import Any

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))


class Own:
    """Finds the packages of this copy of the project; Python asks it first."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        return PathFinder.find_spec(name, [ROOT]) if name in ("elmo_bench", "tasks") else None


def settle() -> None:
    """Takes the current folder off the path of this process, and puts this copy before what is installed."""
    if sys.argv[0] == "-m" and not sys.flags.safe_path:
        del sys.path[0]
    others = [place for place in sys.path if place != ROOT]
    installed = (number for number, place in enumerate(others) if place.endswith("-packages"))
    others.insert(next(installed, len(others)), ROOT)
    sys.path[:] = others
    sys.meta_path.insert(0, Own)


if __name__ == "__main__":
    settle()
    place = sys.argv.index("-m") + 1  # options of Python before it, such as -u, come too late
    module, sys.argv[:] = sys.argv[place], ["-m", *sys.argv[place + 1 :]]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
