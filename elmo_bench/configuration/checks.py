"""Checks of configuration values; messages show a value as it is written in the configuration."""

from __future__ import annotations

from typing import Any

from elmo_bench.system.errors import UserError, as_typed

LARGEST = 1e37  # of 32-bit floats, a tenth of the largest: room for the corrections of an optimizer


def whole(value: Any, name: str, least: int, most: int = 2**31 - 1) -> None:
    """Raises `UserError` unless the value is a whole number from `least` to `most`."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise UserError(f"{name}={as_typed(value)}: a whole number from {least} to {most} is needed")


def one_of(value: Any, name: str, choices: tuple) -> None:
    """Raises `UserError` unless the value is one of `choices` (1 does not count as true)."""
    if not any(value == choice and type(value) is type(choice) for choice in choices):
        raise UserError(f"{name}={as_typed(value)}: choose from {', '.join(map(as_typed, choices))}")


def number(
    value: Any,
    name: str,
    least: float | None = None,
    below: float | None = None,
    above: float | None = None,
    most: float | None = None,
) -> None:
    """Raises `UserError` unless the value is a number within these bounds (None: no bound)."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise UserError(f"{name}={as_typed(value)}: a number is needed")
    low = (least is not None and value < least) or (above is not None and value <= above)
    high = (most is not None and value > most) or (below is not None and value >= below)
    if not abs(value) <= LARGEST or low or high:
        bounds = [] if least is None else [f"of {least} or more"]
        bounds += [] if above is None else [f"above {above}"]
        bounds += [] if below is None else [f"below {below}"]
        bounds += [] if most is None else [f"at most {most}"]
        wanted = f"a number {' and '.join(bounds)}" if bounds else "a number that 32 bits can hold"
        raise UserError(f"{name}={as_typed(value)}: {wanted} is needed")


def finite(value: Any, name: str) -> None:
    """Raises `UserError` for a number, anywhere in plain containers, that is not finite or has no room in 32 bits."""
    if isinstance(value, dict):
        for key, inner in value.items():
            finite(inner, f"{name}.{key}")
    elif isinstance(value, list | tuple):
        for inner in value:
            finite(inner, name)
    elif isinstance(value, float):
        number(value, name)
    elif isinstance(value, int):
        whole(int(value), name, -(2**31))
