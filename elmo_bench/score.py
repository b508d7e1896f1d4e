"""Official metrics of a file of predictions: `python -m elmo_bench.score task=ner gold=FILE predictions=FILE`.

Prints one JSON object and nothing else. No model is involved, so nothing heavy is imported.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path

from omegaconf import OmegaConf

from elmo_bench.configuration import pages
from elmo_bench.system import console
from elmo_bench.system.errors import UserError


def score(task: str, gold: str, predictions: str) -> dict[str, float]:
    """The metrics of the task, in percent.

    Raises:
        UserError: an unknown task, a missing or malformed file (with its line).
    """
    scorer = find(task)
    for path in (gold, predictions):
        if not Path(path).is_file():
            raise UserError("no such file", path)
    return scorer(gold, predictions)


def find(task: str) -> Callable[[str, str], dict[str, float]]:
    """The function that the task's page names as `score`."""
    page = pages.page(task)
    name = OmegaConf.select(OmegaConf.load(page), "task.score")
    if not isinstance(name, str):
        raise UserError("the page names no `task.score`", page)
    module, _, function = name.rpartition(".")
    return getattr(importlib.import_module(module), function)


def main() -> None:
    """The entry point."""
    given = console.arguments(sys.argv[1:], ("task", "gold", "predictions"))
    print(json.dumps(score(given["task"], given["gold"], given["predictions"])))


if __name__ == "__main__":
    console.report(main)
