"""What single configuration files say, without composing any."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from elmo_bench.system import places
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage import yaml_text
from elmo_bench.system.terminal.console import choices

ARMS = ("baseline", "elmo")  # the two columns of the paper's Table 1


def page(task: str) -> Path:
    """The path of a task's configuration file. Raises `UserError` if there is no such task."""
    known = tasks()
    if task not in known:
        raise UserError(f"task={task}: there is no such task; {choices(task, known)}")
    return places.page("task", task)


def tasks() -> list[str]:
    """The names of the tasks: those with a configuration file."""
    return places.named("task")


def version(task: str) -> int:
    """The version of a task's computation, by its file; 1 for a task without one (of a record from elsewhere)."""
    return written("task", task, "version", 1)


def scales(task: str) -> list[str]:
    """The scales that a task offers, by its configuration file."""
    return list(OmegaConf.select(read(page(task)), "task.scales", default=[]))


def title(task: str) -> str:
    """The name of a task in tables, by its configuration file."""
    return written("task", task, "title") or task


def written(group: str, name: str, key: str, default: Any = None) -> Any:
    """What the file of a task or a scale says, such as `note` of a scale; `default` without the key or the file."""
    path = places.page(group, name)
    return OmegaConf.select(read(path), f"{group}.{key}", default=default) if path.is_file() else default


def read(path: Path) -> Any:
    """What a file says, not to be changed. It is parsed once, as a report asks for the same file often."""
    return _parsed(path, path.stat().st_mtime_ns)


_parsed = cache(lambda path, changed: yaml_text.read(path))
