"""Keys and their values: each is declared once, in a `Keys`, and pydantic checks what stands in its place.

A message names the key and the value as they are typed, and says what the key may be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from types import UnionType
from typing import Annotated, Any, ClassVar, Literal, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, Strict, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from elmo_bench.system.errors import UserError, as_typed
from elmo_bench.system.terminal import console

COUNTED = {"counted": True}  # of a key that results depend on, outside the values of its block
LARGEST = 1e37  # of 32-bit floats, a tenth of the largest: room for the corrections of an optimizer
STRICT = ConfigDict(strict=True, allow_inf_nan=False, coerce_numbers_to_str=True, arbitrary_types_allowed=True)
Flag = Annotated[bool, Strict(False)]  # also 1 and 0
Text = Annotated[str, Strict(False)]  # a number is its digits
REQUIRED = "???"  # in the place of a value that a configuration file must give, as OmegaConf has it
KINDS = {"string_type": "text", "list_type": "list, as [a,b],"}
BOUNDS = {"ge": "of {} or more", "gt": "above {}", "lt": "below {}", "le": "at most {}"}


class Keys(BaseModel):
    """A block of typed keys."""

    model_config = STRICT | ConfigDict(extra="forbid", validate_by_name=True, validate_by_alias=True)
    hint: ClassVar[str] = ""  # to who types a key that the block lacks

    def plain(self) -> dict[str, Any]:
        """The values by the names of their keys."""
        return dict(zip(fields(type(self)), dict(self).values(), strict=True))

    def identifying(self, whole: bool = False) -> dict[str, Any]:
        """The values that a result depends on and, unless `whole`, that differ from their defaults."""
        return self.model_dump(by_alias=True, exclude_defaults=not whole)


B = TypeVar("B", bound=Keys)


def key(default: Any = ..., help: str | None = "", identity: bool | None = True, **bounds: Any) -> Any:
    """A key of a block.

    Args:
        default: its value if no configuration file sets one; `...` if one must.
        help: its meaning, for `--help` and the documentation; None for what is not typed.
        identity: False if no result depends on it; None if it is counted by hand (`identity/settings.py`).
        bounds: of a number: `ge`, `gt`, `lt`, `le`; `alias`: its name, where that cannot be an attribute.
    """
    marks = {"exclude": None if identity else True, "json_schema_extra": COUNTED if identity is None else None}
    return Field(default, description=help, **marks, **bounds)


def fields(block: Any) -> dict[str, FieldInfo]:
    """The fields of a block by the names of their keys."""
    return {field.alias or name: field for name, field in block.__pydantic_fields__.items()}


def inner(annotation: Any) -> type[Keys] | None:
    """The block that a key holds, which may be null."""
    kinds = get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)
    return next((kind for kind in kinds if hasattr(kind, "__pydantic_fields__")), None)


def defaults(block: type[Keys]) -> dict[str, Any]:
    """What is composed with the configuration files: the keys of a block and of those inside it."""
    found: dict[str, Any] = {}
    for name, field in fields(block).items():
        if (below := inner(field.annotation)) and (field.is_required() or field.default is not None):
            found[name] = defaults(below)
        elif field.description is not None:
            found[name] = REQUIRED if field.is_required() else field.default
    return found


def valid(block: type[B], plain: Any, prefix: str = "") -> B:
    """A block from plain containers. Raises `UserError` for a key that it lacks, or a value that is not allowed."""
    return check(block, plain, prefix)


def check(kind: Any, value: Any, name: str) -> Any:
    """The value of a key. Raises `UserError` if it is not of this type."""
    return _checked(_adapter(kind).validate_python, kind, value, name)


def read(kind: Any, text: str, name: str) -> Any:
    """The value that a text stands for. Raises `UserError` if it is not of this type."""
    return _checked(_adapter(kind).validate_strings, kind, text, name)


def _checked(validate: Callable[[Any], Any], kind: Any, value: Any, name: str) -> Any:
    try:
        return validate(value)
    except ValidationError as error:
        raise UserError(_told(error, kind, name)) from None


@cache
def _adapter(kind: Any) -> TypeAdapter:
    typed = hasattr(kind, "__pydantic_fields__")  # a block has a configuration of its own
    return TypeAdapter(kind) if typed else TypeAdapter(kind, config=STRICT)


def _told(error: ValidationError, kind: Any, prefix: str) -> str:
    """The first fault in one line."""
    fault = error.errors(include_url=False)[0]
    field, known, block = FieldInfo.from_annotation(kind), dict[str, FieldInfo](), Keys
    for part in fault["loc"]:
        if below := inner(field.annotation):
            block, known = below, fields(below)
            field = known.get(str(part), field)
        else:  # of a list, or of blocks by name
            parts: tuple[Any, ...] = get_args(field.annotation) or (Any,)
            field = FieldInfo.from_annotation(parts[-1])
    name = ".".join(filter(None, [prefix, *map(str, fault["loc"])]))
    if fault["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        typed = [name for name, field in known.items() if field.description is not None or not field.exclude]
        listed = console.choices(str(fault["loc"][-1]), typed)
        return f"{name}: there is no such key; {listed}{getattr(block, 'hint', '')}"
    if fault["type"] == "missing":
        return f"no value for {name}; give it as key=value"
    own = fault.get("ctx", {}).get("error") if fault["type"] == "value_error" else None
    if own and inner(field.annotation):
        return f"{name}: {own}"
    return f"{name}={as_typed(fault['input'])}: {own or needed(field, fault['input'], fault['type'])}"


def needed(field: FieldInfo, value: Any, fault: str = "") -> str:
    """What a key may be, in words."""
    if words := allowed(field.annotation):
        near, _, known = console.choices(str(value), [*map(as_typed, words)]).rpartition("choose from ")
        return f"choose from {known}{near and f'; {near.strip()}'}"
    if value is None:
        return "a value is needed, not null"
    kinds = [field.annotation, *get_args(field.annotation)]
    limits = bounds(field)
    if int in kinds:
        most = limits.get("le")
        kind = f"whole number from {limits.get('ge', 0)}{'' if most is None else f' to {most}'}"
    elif float in kinds:
        kind = " ".join(["number", " and ".join(BOUNDS[key].format(limits[key]) for key in limits)]).rstrip()
    else:
        kind = KINDS.get(fault, "block of keys")
    return f"a {kind} is needed"


def bounds(field: FieldInfo) -> dict[str, Any]:
    """The bounds of a number."""
    return {
        name: getattr(each, name)
        for name in BOUNDS
        for each in field.metadata
        if getattr(each, name, LARGEST) != LARGEST
    }


def allowed(annotation: Any) -> tuple[Any, ...]:
    """The only values of a key, if there are such."""
    if annotation is bool:
        return True, False
    if get_origin(annotation) is Literal:
        return get_args(annotation)
    if get_origin(annotation) is Annotated:
        return allowed(get_args(annotation)[0])
    if get_origin(annotation) not in (Union, UnionType):
        return ()
    kinds = [allowed(kind) for kind in get_args(annotation) if kind is not type(None)]
    return (None, *(value for kind in kinds for value in kind)) if all(kinds) else ()


def whole(value: Any, name: str, least: int, most: int = 2**31 - 1) -> None:
    """Raises `UserError` unless the value is a whole number from `least` to `most`."""
    check(Annotated[int, Field(ge=least, le=most)], value, name)


def one_of(value: Any, name: str, choices: tuple) -> None:
    """Raises `UserError` unless the value is one of `choices` (1 does not count as true)."""
    check(Literal[*choices], value, name)  # type: ignore[valid-type]


def number(value: Any, name: str, **bounds: float | None) -> None:
    """Raises `UserError` unless the value is a number within bounds (`ge`, `gt`, `lt`, `le`; None: no bound)."""
    check(Annotated[float, Field(**{"le": LARGEST} | bounds)], value, name)  # type: ignore[arg-type]


def finite(node: Any, name: str = "") -> None:
    """Raises `UserError` for a number, anywhere in plain containers, that is not finite or has no room in 32 bits."""
    for place, value in _leaves(node, name):
        most = LARGEST if isinstance(value, float) else 2**31
        if isinstance(value, int | float) and not -most <= value <= most:
            raise UserError(f"{place}={value}: a number that 32 bits can hold is needed")


def _leaves(node: Any, name: str) -> Iterator[tuple[str, Any]]:
    """The values in containers by their dotted keys."""
    if isinstance(node, dict):
        for part, value in node.items():
            yield from _leaves(value, f"{name}.{part}" if name else str(part))
    elif isinstance(node, list):
        for value in node:
            yield from _leaves(value, name)
    else:
        yield name, node
