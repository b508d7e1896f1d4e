"""The open blocks of a task's configuration: each names code by `_target_`, and its keys are arguments of it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from hydra._internal.utils import _locate
from hydra.utils import instantiate

from elmo_bench.configuration import checks
from elmo_bench.configuration.schema import TaskConfig
from elmo_bench.system.errors import UserError, as_typed
from elmo_bench.system.terminal.console import choices

if TYPE_CHECKING:  # `--help` does not import it
    import torch


class PassedArguments(NamedTuple):
    """The arguments that the framework passes, besides those in the configuration file."""

    positional: int = 0
    named: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()  # only where the code has such an argument


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

NEEDED = "reader", "head", "metric"
CHECKED_BY_USE = ("task.optimizer", "task.schedule", "task.average")  # of other libraries: see `rehearse`


def check_blocks(task: TaskConfig) -> None:
    """Checks the keys of every open block; nothing is built.

    Raises:
        UserError: a block names code that does not exist, has a key that is not an argument of it, lacks one, or gives
            a number that it cannot use.
    """
    for part, given in GIVEN.items():
        block = attrgetter(part)(task)
        if block is None and part not in NEEDED:
            continue
        if not isinstance(block, Mapping):
            raise UserError(f"task.{part}={as_typed(block)}: a block of keys is needed")
        _check(f"task.{part}", block, given)


def _check(place: str, block: Mapping[str, Any], given: PassedArguments | None) -> None:
    """Checks one block and those inside it; `given` is None if the other arguments are not known."""
    target = block.get("_target_")
    try:
        signature = inspect.signature(_locate(str(target)))  # hydra.utils.get_object would also log its errors
    except Exception as error:  # whatever an import raises
        raise UserError(f"{place}._target_={target}: cannot be imported ({' '.join(str(error).split())})") from error
    positional, named, optional = given or PassedArguments()
    named += tuple(name for name in optional if name in signature.parameters)
    known = [name for name in _names(signature)[positional:] if name not in named]
    keys = [key for key in block if not str(key).startswith("_")]
    takes_any = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in signature.parameters.values())
    for key in keys:
        if key not in known and not takes_any:
            there = choices(str(key), known) if known else "it takes no arguments"
            raise UserError(f"{place}.{key}: {target} has no such argument; {there}")
    if not place.startswith(CHECKED_BY_USE):
        for key in keys:
            if key in signature.parameters:
                _check_numbers(f"{place}.{key}", block[key], str(signature.parameters[key].annotation))
    try:
        if given and "_args_" not in block:
            signature.bind(*[None] * positional, **dict.fromkeys([*named, *keys]))
    except TypeError as error:
        raise UserError(f"{place}: {target}: {error}") from error
    for key, inner in _inner(block):
        _check(f"{place}.{key}", inner, None if inner.get("_partial_") else PassedArguments())


def _check_numbers(name: str, value: Any, annotation: str) -> None:
    """Checks the numbers of an argument that is annotated as a number, or as numbers.

    A whole number is 1 or more, any other 0 or more, and below 1 if it is a dropout.
    """
    whole, other = re.search(r"\bint\b", annotation), re.search(r"\bfloat\b", annotation)
    if not (whole or other) or re.search(r"\bstr\b|Callable", annotation):
        return
    if isinstance(value, Mapping | list) and not re.search(r"Sequence|Mapping|list|tuple|dict", annotation):
        raise UserError(f"{name}={as_typed(value)}: a single number is needed")
    outer = re.sub(r"\w+\[.*\]", "", annotation)  # what is allowed besides a list
    if isinstance(value, int | float) and not re.search(r"\b(int|float)\b", outer):
        form = f"{{3: {value}}}" if re.search("Mapping|dict", annotation) else f"[{value}]"
        raise UserError(f"{name}={value}: several numbers are needed, as {form}")
    for each in _leaves(value):
        if each is None and "None" in annotation:
            continue
        if other:
            checks.number(each, name, ge=0, **({"lt": 1} if "dropout" in name.rpartition(".")[2] else {}))
        else:
            checks.whole(each, name, 1)


def _leaves(value: Any) -> Iterator[Any]:
    """The values in lists and mappings, at any depth."""
    if isinstance(value, Mapping | list | tuple):
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from _leaves(inner)
    else:
        yield value


def _names(signature: inspect.Signature) -> list[str]:
    """The arguments that can be passed by name."""
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return [name for name, each in signature.parameters.items() if each.kind in named]


def _inner(block: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The blocks inside a block, with their keys."""
    for key, value in block.items():
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, dict) and "_target_" in each:
                yield key, each


# One step of the optimizer, schedule and weight averaging on a made-up weight, before anything is read: what they do
# not accept, or what would end in a number that is not finite, is said at once.


def rehearse(task: TaskConfig, device: str = "cpu") -> None:
    """Raises `UserError` for a value in these blocks of the task's configuration that cannot be used."""
    try:
        weight = _after_a_step(task, device)
    except Exception as error:  # whatever torch or Hydra raises
        raise UserError(f"task.optimizer or task.schedule: {_reason(error)}") from error
    if not bool(weight.isfinite().all()):
        raise UserError("task.optimizer: one step makes a weight that is not finite; lower task.optimizer.lr")
    try:
        _average(task, device)
    except Exception as error:
        raise UserError(f"task.average: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    """What a library says; where a value has the wrong type, the message may be Python's own."""
    cause = error.__cause__ or error
    return f"a value of another type than it needs ({cause})" if isinstance(cause, TypeError) else str(cause)


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


def _average(task: TaskConfig, device: str) -> None:
    average = None if task.average is None else instantiate(task.average, device=device)
    if hasattr(average, "should_update"):
        average.should_update(step_idx=1)  # type: ignore[union-attr]
