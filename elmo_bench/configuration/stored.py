"""The allowed content of a stored configuration: plain values, and code that files in conf/ name.

A checkpoint, a head or a record may be a stranger's. Hydra calls whatever `_target_` names, and OmegaConf evaluates
`${}`, which may produce another `_target_`. Text with `${` is refused, so Hydra gets exactly the values checked here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from os import PathLike
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from elmo_bench.system import places
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage import yaml_text
from elmo_bench.system.storage.files import read_text

NAMING = "_target_", "maker"  # keys whose value becomes a class
SIZE, DEPTH = 10_000, 30  # limits on values and levels; a run's configuration has some hundred values on seven levels
OURS = r"(elmo_bench|tasks)\.[\w.]+"
# Allowed code that no file names, by the key of its block: layers of this package, which may be typed on the command
# line, and optimizers and the like, which are never built for a prediction.
LAYERS = r"elmo_bench\.nn\.\w+\.[A-Z]\w+"
TRAINING = {
    "optimizer": r"torch\.optim\.[A-Z]\w+",
    "scheduler": r"torch\.optim\.lr_scheduler\.[A-Z]\w+",
    "average": r"pytorch_lightning\.callbacks\.\w*WeightAveraging",
}
OWN = "give task=NAME beside checkpoint= if it is code of your own, outside tasks/, that a file of that task names"
PLAIN = (str, int, float, bool, dict, list, type(None))
Keys = tuple[Any, ...]  # from the top down to a value; elements of a list have the keys of the list


def check(config: Any, path: str | PathLike[str], task: str | None = None) -> None:
    """Raises `UserError` if a stored configuration contains anything but plain values, or names other code.

    Args:
        config: nested containers.
        path: the file, for messages.
        task: the task that the user has typed: its configuration files may name code outside this project.
    """
    for number, (level, keys, value) in enumerate(_values(config)):
        *blocks, key = keys or ("",)
        block, wrong = key if key == "maker" or not blocks else blocks[-1], None
        if number > SIZE or level > DEPTH:
            wrong = f"more than {SIZE} values, or more than {DEPTH} levels of them"
        elif not isinstance(key, str | int) or type(value) not in PLAIN:
            wrong = f"{type(value).__name__} under {type(key).__name__}; a file stores plain values under names"
        elif any(isinstance(text, str) and "${" in text for text in (key, value)):
            wrong = "${ would be evaluated, but a file may store only data"
        elif key in NAMING and value is not None and not _known(block, value, task):
            wrong = f"{value}: no file in conf/ names this code there, so it is not run; {OWN}"
        if wrong:
            raise UserError(f"{'.'.join(map(str, keys))}: {wrong}", path)


def _values(node: Any, keys: Keys = (), level: int = 0) -> Iterator[tuple[int, Keys, Any]]:
    """Every value with its level and keys."""
    yield level, keys, node
    parts = node.items() if isinstance(node, dict) else ((None, part) for part in node) if type(node) is list else ()
    for key, inner in parts:
        yield from _values(inner, keys if key is None else (*keys, key), level + 1)


def _known(block: Any, name: Any, task: str | None) -> bool:
    """Whether code may be named for a block with this key."""
    if not isinstance(name, str) or re.fullmatch(TRAINING.get(block, LAYERS), name):
        return isinstance(name, str)
    ours = re.fullmatch(OURS, name) is not None
    return (ours or task is not None) and (block, name) in _on_pages(tuple(places.conf()), None if ours else task)


@cache
def _on_pages(conf: tuple[Path, ...], task: str | None) -> frozenset[tuple[str, str]]:
    """The names of code in all configuration files, or in those of a task, each with the key of its block."""
    wanted = ["**/*.yaml"] if task is None else [f"task/{task}.yaml", f"task/{task}/*.yaml"]
    pages = {page: read_text(page) for folder in conf for pattern in wanted for page in folder.glob(pattern)}
    naming = [page for page, text in pages.items() if any(key in text for key in NAMING)]
    return frozenset(
        named for page in naming for named in _named(OmegaConf.to_container(yaml_text.read(page)), page.parent.name)
    )


def _named(page: Any, block: str) -> Iterator[tuple[str, str]]:
    for _, keys, value in _values(page):
        if keys and keys[-1] in NAMING:
            yield keys[-1] if keys[-1] == "maker" else [block, *keys][-2], str(value)
