"""Official metrics of a file of predictions: `elmo-bench score task=ner gold=FILE predictions=FILE`.

Prints one JSON object and nothing else. No model is needed, so no large library is imported.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from omegaconf import OmegaConf

from elmo_bench.commands.command import DATA, Argument, Command
from elmo_bench.configuration import pages
from elmo_bench.system import code
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage import files, json_text

COMMAND = Command(
    (
        Argument("task", "the benchmark, a file in conf/task/", value="TASK"),
        Argument("gold", "file with the correct answers", value="FILE"),
        Argument("predictions", "file with the answers to score, in the same format", value="FILE"),
        DATA,
    ),
    (("task=ner gold=test.iob2 predictions=answers.iob2", "prints precision, recall and F1 in percent"),),
    (
        "The files are in the format of the benchmark's official scorer, described in tasks/TASK/README.md, or in one "
        "that training reads. No model is needed.",
    ),
    page="predicting",
)


def score(task: str, gold: str, predictions: str, data: Mapping[str, Any] | None = None) -> dict[str, float]:
    """The metrics of the task, in percent.

    Args:
        task: its name.
        gold, predictions: paths.
        data: keys of `task.data` that say how files are read: columns, labels, word_column, ...

    Raises:
        UserError: a key that the task does not know,
            an unknown task, a missing or malformed file (with its line), answers as JSON lines.
    """
    scorer = find(task)
    for path in (gold, predictions):
        files.check(path)
    _check_format(predictions)
    if not data:
        return scorer(gold, predictions)
    if "data" not in inspect.signature(scorer).parameters:
        raise UserError(f"task.data.{next(iter(data))}: the files of {task} are read without keys")
    return scorer(gold, predictions, data=data)


def _check_format(predictions: str) -> None:
    """Raises `UserError` for the JSON lines of `predict`, each of which has its answer under the key "prediction"."""
    if files.ending(predictions) == ".parquet":
        return
    with files.open_text(predictions) as lines:
        first = next(lines, "")
    try:
        row = json_text.parse(first) if json_text.begins_object(first) else None
    except ValueError:
        return  # an object of several lines
    if isinstance(row, dict) and "prediction" in row:
        raise UserError("JSON lines of predict; its format=official writes the file that is scored", predictions, 1)


def find(task: str) -> Callable[..., dict[str, float]]:
    """The function that the task's configuration names as `score`."""
    page = pages.page(task)
    name = OmegaConf.select(pages.read(page), "task.score")
    if not isinstance(name, str):
        raise UserError("the configuration file has no `task.score`", page)
    module, _, function = name.rpartition(".")
    return getattr(importlib.import_module(code.located(module)), function)


def main() -> None:
    """The entry point."""
    print(json_text.dumps(score(**COMMAND.parse())))
