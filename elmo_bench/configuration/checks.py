"""Checks of configuration values; messages show a value as it is written in the configuration."""

from __future__ import annotations

from typing import Any

from elmo_bench.system.errors import UserError


def whole(value: Any, name: str, least: int, most: int = 2**31 - 1) -> None:
    """Raises `UserError` unless the value is a whole number from `least` to `most`."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise UserError(f"{name}={show(value)}: a whole number from {least} to {most} is needed")


def one_of(value: Any, name: str, choices: tuple) -> None:
    """Raises `UserError` unless the value is one of `choices` (1 does not count as true)."""
    if not any(value == choice and type(value) is type(choice) for choice in choices):
        raise UserError(f"{name}={show(value)}: choose from {', '.join(map(show, choices))}")


def number(value: Any, name: str, least: float | None = None, below: float | None = None) -> None:
    """Raises `UserError` unless the value is a number, at least `least` and smaller than `below` (None: no bound)."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise UserError(f"{name}={show(value)}: a number is needed")
    if (least is not None and not value >= least) or (below is not None and not value < below):
        bounds = [] if least is None else [f"{least} or more"]
        bounds += [] if below is None else [f"below {below}"]
        raise UserError(f"{name}={show(value)}: a number of {' and '.join(bounds)} is needed")


def show(value: Any) -> str:
    """The value as it is written in a configuration."""
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)
