"""The open blocks of a task's configuration: each names code by `_target_`, and its keys are the code's arguments."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from hydra._internal.utils import _locate
from hydra.utils import instantiate
from pydantic import NonNegativeFloat, PositiveInt

from elmo_bench.configuration.keys import Share, valid
from elmo_bench.configuration.schema import TaskConfig
from elmo_bench.system.console import choices
from elmo_bench.system.errors import UserError, as_typed

if TYPE_CHECKING:  # `--help` does not import it
    import torch


class PassedArguments(NamedTuple):
    """The arguments that the framework passes, in addition to those in the configuration file."""

    positional: int = 0
    named: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()  # passed only if the code has such an argument


GIVEN = {
    "reader": PassedArguments(),
    "words": PassedArguments(1),  # the vocabulary
    "chars": PassedArguments(1),  # the number of characters
    "head": PassedArguments(0, ("input_size", "elmo_size", "vocabularies"), ("own_size",)),
    "metric": PassedArguments(),
    "optimizer": PassedArguments(1),  # the parameters
    "schedule.scheduler": PassedArguments(1),  # the optimizer
    "average": PassedArguments(0, ("device",)),
}

NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
NEEDED = "reader", "head", "metric"
CHECKED_BY_USE = ("task.optimizer", "task.schedule", "task.average")  # of other libraries: see `rehearse`


def check_blocks(task: TaskConfig) -> None:
    """Checks the keys of every open block; nothing is built."""
    for part, given in GIVEN.items():
        block = attrgetter(part)(task)
        if block is None and part not in NEEDED:
            continue
        if not isinstance(block, Mapping):
            raise UserError(f"task.{part}={as_typed(block)}: a block of keys is needed")
        _check(f"task.{part}", block, given)


def _check(place: str, block: Mapping[str, Any], given: PassedArguments | None) -> None:
    """Checks one block and the blocks inside it; `given` is None if the framework's own arguments are not known."""
    target = block.get("_target_")
    try:
        signature = inspect.signature(_locate(str(target)))  # hydra.utils.get_object would also log its errors
    except Exception as error:  # an import may raise anything
        raise UserError(f"{place}._target_={target}: cannot be imported ({' '.join(str(error).split())})") from error
    taken = signature.parameters
    positional, named, optional = given or PassedArguments()
    named += tuple(name for name in optional if name in taken)
    keys = [key for key in block if not str(key).startswith("_")]
    whole = given is not None and "_args_" not in block
    try:
        signature.bind_partial(*[None] * positional, **dict.fromkeys(keys))
        if whole:
            signature.bind(*[None] * positional, **dict.fromkeys(named), **dict.fromkeys(keys))
    except TypeError as error:
        if not (wrong := re.search("argument '(.*)'", str(error))):
            raise UserError(f"{place}: {target}: {error}") from error
        known = [name for name, each in taken.items() if each.kind in NAMED and name not in named][positional:]
        there = choices(wrong[1], known) if known else "it takes no arguments"
        raise UserError(f"{place}.{wrong[1]}: {target} has no such argument; {there}") from error
    for key in keys:
        if key in taken and not place.startswith(CHECKED_BY_USE):
            _check_numbers(f"{place}.{key}", block[key], str(taken[key].annotation))
    for key, value in block.items():
        for inner in value if isinstance(value, list) else [value]:
            if isinstance(inner, dict) and "_target_" in inner:
                _check(f"{place}.{key}", inner, None if inner.get("_partial_") else PassedArguments())


def _check_numbers(name: str, value: Any, annotation: str) -> None:
    """Checks the numbers of an argument that is annotated as a number, or as numbers.

    A whole number is 1 or more, any other 0 or more, and below 1 if it is a dropout.
    """
    if not re.search(r"\b(int|float)\b", annotation) or re.search(r"\bstr\b|Callable", annotation):
        return
    dropout = "dropout" in name.rpartition(".")[2]
    one: Any = (Share if dropout else NonNegativeFloat) if re.search(r"\bfloat\b", annotation) else PositiveInt
    alone = re.sub(r"\w+\[.*\]", "", annotation)  # the types allowed besides a list or a mapping
    for word, kind in ("Mapping|dict", dict[Any, one]), ("Sequence|list|tuple", list[one]):
        if re.search(word, annotation) and not (isinstance(value, int | float) and re.search("int|float", alone)):
            one = kind
    valid(one | None if "None" in annotation else one, value, name)


# One step of the optimizer, schedule and weight averaging on an invented weight, before anything is read. It shows at
# once which values they do not accept, and which lead to a number that is not finite.


def rehearse(task: TaskConfig, device: str = "cpu") -> None:
    """Raises `UserError` for an unusable value in these blocks of the task's configuration."""
    try:
        weight = _after_a_step(task, device)
    except Exception as error:  # torch and Hydra may raise anything
        raise UserError(f"task.optimizer or task.schedule: {_reason(error)}") from error
    if not bool(weight.isfinite().all()):
        raise UserError("task.optimizer: one step makes a weight that is not finite; lower task.optimizer.lr")
    try:
        average = None if task.average is None else instantiate(task.average, device=device)
        if hasattr(average, "should_update"):
            average.should_update(step_idx=1)  # type: ignore[union-attr]
    except Exception as error:
        raise UserError(f"task.average: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    """The message of a library; for a value of the wrong type, it may be Python's own."""
    cause = error.__cause__ or error
    return f"a value of the wrong type ({cause})" if isinstance(cause, TypeError) else str(cause)


def _after_a_step(task: TaskConfig, device: str) -> torch.Tensor:
    import torch
    from torch import nn
    from torch.optim.lr_scheduler import ReduceLROnPlateau

    weight = nn.Parameter(torch.ones(2, device=device))
    weight.grad = torch.ones(2, device=device)
    optimizer = instantiate(task.optimizer)([weight])
    schedule = None if task.schedule.scheduler is None else instantiate(task.schedule.scheduler)(optimizer)
    optimizer.step(weight.sum)
    if schedule is not None:
        schedule.step(*([0.0] if isinstance(schedule, ReduceLROnPlateau) else []))
    return weight.detach()
