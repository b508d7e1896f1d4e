"""Keys and their values: each key is declared once, in a pydantic model, which checks its values.

The string below a key is its meaning, for `--help` and the documentation. A message names the key and the value as
typed, and says in pydantic's words what the value should be.
"""

from __future__ import annotations

import ast
import inspect
import os
import re
import textwrap
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeVar, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, Strict, TypeAdapter, ValidationError, create_model
from pydantic.fields import FieldInfo

from elmo_bench.system.console import choices
from elmo_bench.system.errors import UserError, as_typed

T = TypeVar("T")
LONGEST = 99  # characters of a value in a message
LARGEST = 1e37  # a tenth of the largest 32-bit float, which leaves room for the corrections of an optimizer
REQUIRED = "???"  # OmegaConf's mark for a value that a configuration file must give
FORMS = {  # messages for types that pydantic calls by their names in Python
    "model_type": "should be a block of keys", "dict_type": "should be a mapping, as {key: value}",
    "list_type": "should be a list, as [a,b]",
}  # fmt: skip
Flag = Annotated[bool, Strict(False)]  # also 1 and 0
Text = Annotated[str, Strict(False)]  # a number becomes its digits
Share = Annotated[float, Field(ge=0, lt=1)]
# Kinds of keys: no result depends on it; `records/settings.py` adds it to the identity; users do not type it.
Aside = Annotated[T, Field(exclude=True)]
Counted = Annotated[T, Field(exclude=True, json_schema_extra={"counted": True})]
Hidden = Annotated[T, Field(exclude=True, repr=False)]
STRICT = ConfigDict(strict=True, allow_inf_nan=False, coerce_numbers_to_str=True, arbitrary_types_allowed=True)


class Keys(BaseModel):
    """A block of typed keys."""

    model_config = STRICT | ConfigDict(extra="forbid", validate_by_name=True, validate_by_alias=True)
    hint: ClassVar[str] = ""  # the end of the message about an unknown key

    def plain(self) -> dict[str, Any]:
        """The values by the names of their keys."""
        return dict(zip(fields(type(self)), dict(self).values(), strict=True))

    def identifying(self) -> dict[str, Any]:
        """The values that a result depends on and that differ from their defaults."""
        return self.model_dump(by_alias=True, exclude_defaults=True)


def fields(block: Any) -> dict[str, FieldInfo]:
    """The keys of a block that are typed, or given by code, by their names."""
    return {field.alias or name: field for name, field in block.__pydantic_fields__.items()}


def meanings(block: type) -> dict[str, str]:
    """The meanings of the keys of a block: the strings below them in its source."""
    found = {}
    for cls in (cls for cls in reversed(block.mro()) if issubclass(cls, Keys) and cls is not Keys):
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
        for key, text in pairwise(tree.body):  # type: ignore[attr-defined]
            match key, text:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(meaning))):
                    found[name] = " ".join(meaning.split())
    return {each.alias or name: found[name] for name, each in block.__pydantic_fields__.items() if name in found}


def documented(block: type[Keys], prefix: str = "", nested: bool = True) -> Iterator[tuple[str, FieldInfo, str]]:
    """The keys of a block that have a meaning, and those of the blocks inside it: name, field and meaning."""
    found = meanings(block)
    for name, field in fields(block).items():
        below = inner(field.annotation) if get_origin(field.annotation) not in (dict, list) else None
        if nested and below:
            yield from documented(below, f"{prefix}{name}.")
        elif name in found:
            yield f"{prefix}{name}", field, found[name]


def shape(**keys: Any) -> Any:
    """A model of an object with at least these keys: the type of each, with a default if optional."""
    named: dict[str, Any] = {key: kind if isinstance(kind, tuple) else (kind, ...) for key, kind in keys.items()}
    return create_model("Shape", __config__=STRICT | ConfigDict(coerce_numbers_to_str=False), **named)


def parts(kind: Any) -> Iterator[Any]:
    """A type and the types that it consists of."""
    yield kind
    for part in () if get_origin(kind) is Literal else get_args(kind):
        yield from parts(part)


def inner(kind: Any) -> type[Keys] | None:
    """The block in the type of a key."""
    return next((part for part in parts(kind) if hasattr(part, "__pydantic_fields__")), None)


def allowed(kind: Any) -> list[Any]:
    """All values of a type with only a few values; otherwise none."""
    words = {part: (True, False) if part is bool else get_args(part) for part in parts(kind)}
    return [value for part in words if part is bool or get_origin(part) is Literal for value in words[part]]


def defaults(block: type[Keys]) -> dict[str, Any]:
    """The default values of a block and of its inner blocks, which Hydra completes from the configuration files."""
    found: dict[str, Any] = {}
    for name, field in fields(block).items():
        if isinstance(below := field.annotation, type) and issubclass(below, Keys):
            found[name] = defaults(below)
        elif field.repr:
            found[name] = REQUIRED if field.is_required() else field.default
    return found


def valid(kind: Any, value: Any, name: str = "", text: bool = False, path: Any = None) -> Any:
    """A checked value of a type, such as a block from plain containers.

    Args:
        kind: a block, or any type that pydantic knows.
        value: the value in the file.
        name: its key.
        text: whether all values are texts, as typed on the command line.
        path: the file.
    """
    try:
        if not isinstance(kind, type) or not issubclass(kind, BaseModel):
            return _adapter(kind).validate_python(value)
        return kind.model_validate_strings(value) if text else kind.model_validate(value)
    except ValidationError as error:
        raise UserError(fault(error, kind, name), path) from None


_adapter = cache(partial(TypeAdapter, config=STRICT))


def fault(error: ValidationError, kind: Any, name: str = "") -> str:
    """The first fault in one line: the key, its typed value, and the allowed values."""
    first = min(error.errors(include_url=False), key=lambda each: each["type"] != "extra_forbidden")
    place, value, message = (
        first["loc"],
        first["input"],
        first["msg"].removeprefix("Input ").removeprefix("Value error, "),
    )
    name = ".".join(filter(None, [name, *map(str, place)]))
    if first["type"] == "missing":
        return f"no value for {name}"
    if first["type"] == "extra_forbidden":
        block: Any = inner(kind)
        for part in place[:-1]:
            block = inner(fields(block)[part].annotation) if part in fields(block) else block
        known = [key for key, field in fields(block).items() if field.repr]
        return f"{name}: there is no such key; {choices(str(place[-1]), known)}{block.hint}"
    message = FORMS.get(first["type"], message)
    if first["type"] == "literal_error":
        message = message.replace("True", "true").replace("False", "false")
        if near := get_close_matches(str(value), re.findall(r"[\w.-]+", message.replace("should be", "")), 1):
            message += f"; did you mean {near[0]}?"
    typed = "" if isinstance(value, dict | BaseModel) or not name else f"={as_typed(value)}"[:LONGEST]
    return f"{name}{typed}: {message}".removeprefix(": ")


def finite(node: Any, name: str = "") -> None:
    """Raises `UserError` for a number, anywhere in plain containers, that is not finite or too large for 32 bits."""
    if isinstance(node, dict | list):
        for part, value in node.items() if isinstance(node, dict) else ((None, value) for value in node):
            finite(value, ".".join(map(str, filter(None, [name, part]))))
    elif isinstance(node, int | float) and not -(most := LARGEST if isinstance(node, float) else 2**31) <= node <= most:
        raise UserError(f"{name}={node}: a number that 32 bits can hold is needed")


def flat(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings by dotted key."""
    by_key: dict[str, Any] = {}
    for key, value in settings.items():
        if isinstance(value, Mapping) and value:
            by_key |= flat(value, f"{prefix}{key}.")
        else:
            by_key[f"{prefix}{key}"] = value
    return by_key


def relative(node: Any) -> Any:
    """Containers with absolute paths cut to their last part: a record names no folder of this machine."""
    if isinstance(node, dict):
        return {key: relative(value) for key, value in node.items()}
    if isinstance(node, list):
        return [relative(value) for value in node]
    return f"<elsewhere>/{Path(node).name}" if isinstance(node, str) and os.path.isabs(node) else node
