"""Official metrics of a file of predictions: `elmo-bench score task=ner gold=FILE predictions=FILE`.

Prints one JSON object and nothing else. No model is needed, so no large library is imported.
"""

from __future__ import annotations

import importlib
import inspect
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from elmo_bench.configuration import pages
from elmo_bench.system import code
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage import files, json_text
from elmo_bench.system.terminal.command import DATA, Argument, Command

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
        "that training reads; predictions may also be the JSON lines of predict. No model is needed.",
    ),
    page="predicting",
)


def score(task: str, gold: str, predictions: str, data: Mapping[str, Any] | None = None) -> dict[str, float]:
    """The metrics of the task, in percent.

    Args:
        task: its name.
        gold, predictions: paths; the predictions may be the JSON lines that `predict` writes.
        data: keys of `task.data` that say how files are read: columns, labels, word_column, ...

    Raises:
        UserError: a key that the task does not know,
            an unknown task, a missing or malformed file (with its line).
    """
    scorer = find(task)
    for path in (gold, predictions):
        files.check(path)
    known = "data" in inspect.signature(scorer).parameters
    if data and not known:
        raise UserError(f"task.data.{next(iter(data))}: the files of {task} are read without keys")
    scored = partial(scorer, gold, **({"data": data} if known else {}))
    if not (lines := _answers(predictions)):
        return scored(predictions)
    with tempfile.TemporaryDirectory() as folder:
        official = Path(folder, Path(predictions).name).with_suffix("")
        official.write_text(_official(task, lines, predictions), encoding="utf-8")
        try:
            return scored(str(official))
        except UserError as error:
            raise UserError(error.message, predictions) from None


def _answers(path: str) -> list[dict[str, Any]]:
    """The JSON objects that `predict` has written, each with its answer under "prediction"; none in another file."""
    if files.ending(path) != ".jsonl":
        return []
    from elmo_bench.trained.prediction import read_lines

    rows = [row for _, row in read_lines(path)]
    return rows if rows and isinstance(rows[0], dict) and "prediction" in rows[0] else []


def _official(task: str, lines: list[dict[str, Any]], path: str) -> str:
    """The same answers as the reader of the task writes them for the official scorer."""
    from hydra.utils import instantiate

    block: Any = OmegaConf.to_container(pages.read(pages.page(task)), resolve=False)
    reader = instantiate(block["task"]["reader"] | {"data": {}})
    rows, answers = [], []
    for number, line in enumerate(lines, start=1):
        answer = line.get("prediction")
        if not isinstance(answer, dict):
            raise UserError('no object under "prediction"', path, number)
        rows.append(line | answer)
        answers.append(next((answer[key] for key in ("tags", "label") if key in answer), answer))
    try:
        return reader.official(answers, rows)
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(f"these are no answers of {task} ({type(error).__name__}: {error})", path) from None


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
