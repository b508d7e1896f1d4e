"""One step of a task's optimizer, schedule and weight averaging on a made-up weight, before anything is read.

What they do not accept, or what would end in a number that is not finite, is thus said at once.
"""

from __future__ import annotations

import torch
from hydra.utils import instantiate
from torch import nn
from torch.optim.lr_scheduler import ReduceLROnPlateau

from elmo_bench.configuration.schema import TaskConfig
from elmo_bench.system.errors import UserError


def rehearse(task: TaskConfig, device: str = "cpu") -> None:
    """Raises `UserError` for a value in these blocks of the task's configuration that cannot be used."""
    try:
        weight = _after_a_step(task, device)
    except Exception as error:  # whatever torch or Hydra raises
        raise UserError(f"task.optimizer or task.schedule: {_told(error)}") from error
    if not bool(torch.isfinite(weight).all()):
        raise UserError("task.optimizer: one step makes a weight that is not finite; lower task.optimizer.lr")
    try:
        _average(task, device)
    except Exception as error:
        raise UserError(f"task.average: {_told(error)}") from error


def _told(error: Exception) -> str:
    """What a library says; of a text where it computes with a number, only Python says something."""
    cause = error.__cause__ or error
    return f"a value of another type than it needs ({cause})" if isinstance(cause, TypeError) else str(cause)


def _after_a_step(task: TaskConfig, device: str) -> torch.Tensor:
    weight = nn.Parameter(torch.ones(2, device=device))
    weight.grad = torch.ones(2, device=device)
    optimizer = instantiate(task.optimizer)([weight])
    schedule = None if task.schedule.scheduler is None else instantiate(task.schedule.scheduler)(optimizer)
    optimizer.step(weight.sum)
    if schedule is not None:
        schedule.step(*([0.0] if isinstance(schedule, ReduceLROnPlateau) else []))
    return weight.detach()


def _average(task: TaskConfig, device: str) -> None:
    average = None if task.average is None else instantiate(task.average, device=device)
    if hasattr(average, "should_update"):
        average.should_update(step_idx=1)  # type: ignore[union-attr]
