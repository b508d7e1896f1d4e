"""What a command takes as `key=value`, and what its `--help` prints. Nothing heavy is imported before that."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import Enum
from pathlib import Path
from types import UnionType
from typing import Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

from elmo_bench.system import console
from elmo_bench.system.errors import UserError

T = TypeVar("T")
HELP = ("--help", "-h")
WIDTH = 100  # of a help text, in characters


class _Required:
    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED = _Required()  # the default of an argument that has none


@dataclass(frozen=True)
class Argument:
    """One `key=value` of a command.

    Args:
        name: the key.
        meaning: one line of help.
        default: of the parsed value; None: may be left out, REQUIRED: may not.
        value: what stands for the value where there is no default to show, as in gold=FILE.
        parse: makes the value from its text; raises `ValueError` saying what it should be.
    """

    name: str
    meaning: str
    default: Any = REQUIRED
    value: str = "VALUE"
    parse: Callable[[str], Any] = str

    @property
    def usage(self) -> str:
        """`gold=FILE`, or `state=warm` with the default."""
        return f"{self.name}={self.value if self.default in (REQUIRED, None) else shown(self.default)}"

    def read(self, text: str) -> Any:
        """The value. Raises `UserError` where the text is none."""
        try:
            return self.parse(text)
        except ValueError as error:
            raise UserError(f"{self.name}={text}: {error}") from None


DEBUG = Argument("debug", "show the traceback of an error", False, parse=lambda text: flag(text))


class Section(NamedTuple):
    """A part of a help text: a title, and lines of a term and what it means."""

    title: str
    lines: Sequence[tuple[str, str]]
    widest: int = 34  # a term of more characters has its meaning on the lines below


@dataclass(frozen=True)
class Command:
    """A command, `python -m elmo_bench.NAME` or `elmo-bench NAME`.

    Args:
        name: the module below `elmo_bench`.
        summary: one line.
        arguments: its own `key=value`; `debug` is added.
        examples: lines of arguments, each with what it does or "".
        notes: paragraphs on input and output; those with line breaks are printed as they stand.
        overrides: whether any key of the configuration may be given, too: those are not parsed here.
        more: makes further sections; called only when the help is printed.
    """

    name: str
    summary: str
    arguments: Sequence[Argument] = ()
    examples: Sequence[tuple[str, str]] = ()
    notes: Sequence[str] = ()
    overrides: bool = False
    more: Callable[[], Sequence[Section]] = lambda: ()

    def run(self, main: Callable[[], T]) -> T | None:
        """Prints the help if it is asked for; else runs the entry point as `console.report` does."""
        if any(argument in HELP for argument in sys.argv[1:]):
            return console.report(lambda: print(self.help()))
        return console.report(main)

    def parse(self, argv: Sequence[str] | None = None) -> dict[str, Any]:
        """The values of all arguments, defaults where they are not given; without `debug`.

        Raises:
            UserError: an argument without "=", an unknown or missing key, a value that cannot be meant.
        """
        required = [argument.name for argument in self.arguments if argument.default is REQUIRED]
        optional = [argument.name for argument in self.arguments if argument.default is not REQUIRED]
        given = console.arguments(sys.argv[1:] if argv is None else argv, required, optional)
        DEBUG.read(given.get("debug", "false"))
        return {a.name: a.read(given[a.name]) if a.name in given else a.default for a in self.arguments}

    def help(self) -> str:
        """The text of `--help`."""
        arguments = [*self.arguments, DEBUG]
        examples = [(f"elmo-bench {self.name} {line}".rstrip(), what) for line, what in self.examples]
        sections = [settings("Arguments", arguments), *self.more(), Section("Examples", examples, 0)]
        notes = [note if "\n" in note else textwrap.fill(note, WIDTH) for note in self.notes]
        parts = [f"{self.summary[:1].upper()}{self.summary[1:]}.", self.usage(), *notes]
        return "\n\n".join([*parts, *(printed(section) for section in sections if section.lines)])

    def usage(self) -> str:
        """The first lines: how the command is typed."""
        required = [a.usage for a in self.arguments if a.default is REQUIRED]
        optional = ["[KEY=VALUE ...]"] if self.overrides or len(required) < len(self.arguments) else []
        line = " ".join([self.name, *required, *optional])
        return f"Usage: elmo-bench {line}\n   or: python -m elmo_bench.{line}"


# Parsers of values.


def whole(least: int = 0, most: int | None = None) -> Callable[[str], int]:
    """Parses a whole number within limits."""

    def parse(text: str) -> int:
        if not text.isdecimal() or int(text) < least or (most is not None and int(text) > most):
            raise ValueError(f"a whole number from {least}" + ("" if most is None else f" to {most}"))
        return int(text)

    return parse


def choice(*known: str) -> Callable[[str], str]:
    """Parses one of a few words."""

    def parse(text: str) -> str:
        if text not in known:
            raise ValueError(f"there is {', '.join(known)}")
        return text

    return parse


def flag(text: str) -> bool:
    """Parses true or false."""
    return choice("true", "false")(text) == "true"


# Help for settings that dataclasses declare.


def described(schema: type, prefix: str = "") -> list[Argument]:
    """The arguments of a dataclass, those of nested ones as `outer.inner`, for `Command.arguments` or a section.

    A field's metadata "help" is its meaning, to which the values of an enum or a Literal are added.
    """
    hints, found = get_type_hints(schema), []
    for field in fields(schema):
        hint = hints[field.name]
        name = prefix + field.metadata.get("name", field.name)
        if isinstance(hint, type) and is_dataclass(hint):
            found += described(hint, f"{name}.")
            continue
        meaning = "; ".join(filter(None, [field.metadata.get("help", ""), _values(hint)]))
        found.append(Argument(name, meaning, _default(field), field.metadata.get("value", "VALUE")))
    return found


def settings(title: str, arguments: Sequence[Argument]) -> Section:
    """A section of the help that lists arguments."""
    return Section(title, [(a.usage, _meaning(a)) for a in arguments])


def pages(folder: Path, groups: Sequence[str]) -> Section:
    """A section of the help that lists the pages of each group of configuration pages."""
    rows = []
    for group in groups:
        names = {path.stem if path.is_file() else path.name for path in (folder / group).glob("[!_.]*")}
        rows.append((f"{group}=", ", ".join(sorted(names))))
    return Section("Pages of configuration", [row for row in rows if row[1]])


def _default(field: Any) -> Any:
    if field.default_factory is not MISSING:
        return field.default_factory()
    return REQUIRED if field.default is MISSING or field.default == "???" else field.default


def _values(hint: Any) -> str:
    """The values that a type allows, "" where they cannot be counted."""
    parts = get_args(hint) if get_origin(hint) in (Union, UnionType) else [hint]
    names: list[str] = []
    for part in parts:
        if get_origin(part) is Literal:
            names += [shown(value) for value in get_args(part)]
        elif isinstance(part, type) and issubclass(part, Enum):
            names += [shown(value) for value in part]
    return ", ".join(names)


def shown(value: Any) -> str:
    """A value as it is typed."""
    if isinstance(value, Enum):
        return str(value.value)
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, (list, tuple)):
        return ",".join(map(shown, value))
    return str(value)


# Layout.


def _meaning(argument: Argument) -> str:
    return argument.meaning + (" (required)" if argument.default is REQUIRED else "")


def printed(section: Section) -> str:
    """A section as text, in two columns."""
    width = max((len(term) for term, _ in section.lines if len(term) <= section.widest), default=0)
    lines = [f"{section.title}:"]
    for term, meaning in section.lines:
        first = f"  {term:<{width}}  "
        rest = " " * (width + 4)
        if len(term) > width and meaning:
            lines.append(first.rstrip())
            first = rest
        lines.append(textwrap.fill(meaning, WIDTH, initial_indent=first, subsequent_indent=rest) or first.rstrip())
    return "\n".join(lines)
