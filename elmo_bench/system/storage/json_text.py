"""JSON: what the standard allows, within the limits of `limits`, and strings that UTF-8 can write.

Python's own reader also takes NaN, repeated keys (of which it keeps the last) and halves of surrogate pairs, and its
writer writes NaN.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from os import PathLike
from typing import Any

from elmo_bench.system.errors import UserError
from elmo_bench.system.storage import limits
from elmo_bench.system.storage.files import read_text

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def read(path: str | PathLike[str]) -> Any:
    """The value in a file, plain, .gz or .xz. Raises `UserError` naming file and line."""
    text = read_text(path)
    try:
        return parse(text)
    except ValueError as error:
        raise UserError(str(error), path, getattr(error.__cause__, "lineno", None)) from None


def dumps(value: Any, **style: Any) -> str:
    """The JSON text of a value, in the `style` that `json.dumps` takes. Raises `UserError` for NaN and infinity."""
    try:
        return json.dumps(value, allow_nan=False, **style)
    except ValueError as error:
        raise UserError(f"a number is not finite, so nothing is written ({error})") from error


def parse(text: str) -> Any:
    """The value of a JSON text.

    Raises:
        ValueError: not JSON, and why, in one line; its cause is a `json.JSONDecodeError` where that names a place.
    """
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON ({error.msg}: column {error.colno})") from error
    except RecursionError:
        raise ValueError(f"not readable JSON (nested more than {limits.NESTING} deep)") from None
    except ValueError as error:
        raise ValueError(f"not readable JSON ({error})") from None
    _check_nesting(value)
    if _SURROGATE.search(text):
        _check_characters(value)
    return value


def _check_nesting(value: Any) -> None:
    level = [value]
    for _ in range(limits.NESTING + 1):
        containers = [node for node in level if isinstance(node, dict | list)]
        if not containers:
            return
        level = [part for node in containers for part in _parts(node)]
    raise ValueError(f"not readable JSON (nested more than {limits.NESTING} deep)")


def _parts(node: dict[str, Any] | list[Any]) -> Any:
    return node.values() if isinstance(node, dict) else node


def _check_characters(value: Any) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        half = f"\\u{ord(error.object[error.start]):04x}"
        raise ValueError(f"not readable JSON ({half} without the other half of its pair)") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        (key, _), *_ = Counter(key for key, _ in pairs).most_common(1)
        raise ValueError(f"the key {key!r} occurs twice in an object")
    return made


def _whole(digits: str) -> int:
    if len(digits.lstrip("-")) > limits.DIGITS:
        raise ValueError(f"a whole number of {len(digits)} digits; {limits.DIGITS} are the most")
    return int(digits)


def _fraction(digits: str) -> float:
    if not math.isfinite(number := float(digits)):
        raise ValueError("a number that is too large")
    return number


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is no JSON number")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=_whole, parse_float=_fraction, parse_constant=_no_number
)
