"""JSON as the standard allows it, within the limits of `limits`, with strings that UTF-8 can represent.

Python's own reader also accepts NaN, repeated keys (it keeps the last) and lone surrogates, and its writer writes NaN.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from hashlib import sha256
from pathlib import Path
from typing import Any

from elmo_bench.system.errors import StrPath, UserError
from elmo_bench.system.storage import limits
from elmo_bench.system.storage.files import read_text

CHECKSUM = "checksum"  # the last key of a sealed JSON object
FILES = "files"  # the key of the sha256 of each file of a card, by name
_OBJECT, _ARRAY = re.compile(r"\s*\{\s*[\"}]"), re.compile(r"\s*\[\s*(\{|$)")
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def read(path: StrPath) -> Any:
    """The value in a file, plain, .gz or .xz."""
    text = read_text(path)
    try:
        return parse(text)
    except ValueError as error:
        raise UserError(str(error), path, getattr(error.__cause__, "lineno", None)) from None


def begins_object(line: str) -> bool:
    """Whether the first line of a file begins an object or JSON lines."""
    return _OBJECT.match(line) is not None


def begins_array(line: str) -> bool:
    """Whether the first line of a file begins an array of JSON objects."""
    return _ARRAY.match(line) is not None


def dumps(value: Any, **style: Any) -> str:
    """The JSON text of a value, with the arguments `style` for `json.dumps`; NaN and infinity are errors."""
    try:
        return json.dumps(value, allow_nan=False, **style)
    except ValueError as error:
        raise UserError(f"a number is not finite, so nothing is written ({error})") from error


def parse(text: str) -> Any:
    """The value of a JSON text.

    Raises:
        ValueError: not JSON, with the reason in one line; its cause is a `json.JSONDecodeError` if the place is known.
    """
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON ({error.msg}: column {error.colno})") from error
    except RecursionError:
        raise ValueError(f"not readable JSON (nested more than {limits.NESTING} deep)") from None
    except ValueError as error:
        raise ValueError(f"not readable JSON ({error})") from None
    level = [value]
    for _ in range(limits.NESTING + 1):
        containers = [node for node in level if isinstance(node, dict | list)]
        if not containers:
            break
        level = [part for node in containers for part in (node.values() if isinstance(node, dict) else node)]
    else:
        raise ValueError(f"not readable JSON (nested more than {limits.NESTING} deep)")
    try:
        if _SURROGATE.search(text):
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        half = f"\\u{ord(error.object[error.start]):04x}"
        raise ValueError(f"not readable JSON ({half} without the other half of its pair)") from None
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        (key, _), *_ = Counter(key for key, _ in pairs).most_common(1)
        raise ValueError(f"the key {key!r} occurs twice in an object")
    return made


def _whole(digits: str) -> int:
    if len(digits.lstrip("-")) > limits.DIGITS:
        raise ValueError(f"a whole number of {len(digits)} digits; the maximum is {limits.DIGITS}")
    return int(digits)


def _finite(digits: str) -> float:
    if not math.isfinite(number := float(digits)):
        raise ValueError(f"{digits[:40]} is too large, or no JSON number")
    return number


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_int=_whole, parse_float=_finite, parse_constant=_finite)


# JSON files with the checksum of their own text.


def sealed(text: str) -> str:
    """The text of a JSON object, one key per line, with an additional key: the sha256 of the text without it."""
    _, _, indented = text.partition("\n")
    indent = indented[: len(indented) - len(indented.lstrip(" "))]
    return text.removesuffix("\n}\n") + f',\n{indent}"{CHECKSUM}": "{sha256(text.encode()).hexdigest()}"\n}}\n'


def read_sealed(path: Path, what: str, remedy: str, always: bool = False) -> dict[str, Any]:
    """A JSON object without its checksum, which is compared if present; required if it has the sha256 of files.

    Args:
        path: the file.
        what: the name of its kind, for messages: a record, a card.
        remedy: the end of the message if it is damaged.
        always: whether an object without a checksum is refused, too.
    """
    try:
        if not path.is_file():
            raise OSError("no such file")
        text = path.read_bytes().decode()
        content = parse(text)
    except (OSError, ValueError) as error:
        raise UserError(f"not a readable {what} ({error}); {remedy}", path) from None
    if not isinstance(content, dict):
        raise UserError(f"not a {what}; {remedy}", path)
    recorded, without = content.pop(CHECKSUM, None), re.sub(rf',\n *"{CHECKSUM}": "\w*"\n}}\n\Z', "\n}\n", text)
    if recorded is None and always:
        raise UserError(f"not a {what}: it has no {CHECKSUM}; {remedy}", path)
    if (recorded is not None or FILES in content) and recorded != sha256(without.encode()).hexdigest():
        raise UserError(f"damaged or changed since it was written: not the {what} of its checksum; {remedy}", path)
    return content
