"""Importing the code that configuration files name.

`tasks.ner.reader.NerReader` there means the tasks of this project, whatever else is called `tasks`. In a checkout
they are the top-level package. In a wheel, which installs only elmo_bench at the top level, and beside a user's own
`tasks.py`, the same package is `elmo_bench.tasks`. A user's folder (`places.own`) adds its code: `FOLDER/tasks/` to
the tasks, and all other modules under their own names.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from elmo_bench.system import places

TASKS = "tasks"
INSIDE = f"elmo_bench.{TASKS}"
INTERFACE: dict[str, str] = {}  # the places of the Python interface's names, filled in by the package


def located(name: str) -> str:
    """The dotted name by which code is imported here, such as elmo_bench.tasks.ner.head.NerHead."""
    home = _home(places.own())
    return name if home == TASKS or not name.startswith(f"{TASKS}.") else f"elmo_bench.{name}"


def importable(node: Any) -> Any:
    """Plain containers in which every `_target_` and `maker` is the name by which it is imported here."""
    if isinstance(node, dict):
        return {
            key: located(value) if key in ("_target_", "maker") and isinstance(value, str) else importable(value)
            for key, value in node.items()
        }
    return [importable(each) for each in node] if isinstance(node, list) else node


@cache
def _home(own: Path | None) -> str:
    """The name of the package of tasks; from now on the user's folder is on the path."""
    if TASKS in sys.modules:  # the result of `import tasks`
        found = getattr(sys.modules[TASKS], "__path__", None)
    else:
        found = (spec := find_spec(TASKS)) and spec.submodule_search_locations
    if (places.PACKAGE / TASKS).is_dir():
        name = INSIDE
    elif any(os.path.isdir(place) and os.path.samefile(place, places.BROUGHT / TASKS) for place in found or ()):
        name = TASKS
    else:
        sys.modules["elmo_bench"].__path__.append(str(places.BROUGHT))
        name = INSIDE
    folders = [] if own is None else [own]
    if own is not None and own.name == "conf":  # as in a checkout, with the code beside it
        folders.append(own.parent)
    for folder in folders:
        if (folder / TASKS).is_dir():
            import_module(name).__path__.append(str(folder / TASKS))
        sys.path.append(str(folder))
    return name
