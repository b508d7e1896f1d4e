"""A command's `key=value` arguments and its `--help`, printed without importing large libraries."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple, TypeVar

from pydantic import AfterValidator, Field

from elmo_bench.configuration.checks import Keys, allowed, fields, inner, read
from elmo_bench.system import places
from elmo_bench.system.errors import UserError, as_typed
from elmo_bench.system.storage import outputs
from elmo_bench.system.terminal import console

T = TypeVar("T")
HELP = ("--help", "-h")
OUTPUT = "output"  # the argument that names what a command writes
FILES = ("FILE", "FOLDER", "TEXT")  # how the placeholders of paths begin
WIDTH = 100  # of a help text, in characters


BELOW = "task.data."  # how the keys begin that say how files are read
REQUIRED = "???"  # the default of a required argument, as OmegaConf has it


@dataclass(frozen=True)
class Argument:
    """One `key=value` of a command.

    Args:
        name: the key.
        meaning: one line of help.
        default: the parsed value if the argument is not given; None: no value; REQUIRED: it must be given.
        value: placeholder for the value if there is no default to show, as in gold=FILE.
        kind: its type.
    """

    name: str
    meaning: str
    default: Any = REQUIRED
    value: str = "VALUE"
    kind: Any = str

    @property
    def names_files(self) -> bool:
        """Whether the value is the path of a file or a folder."""
        return self.value.startswith(FILES)

    @property
    def usage(self) -> str:
        """`gold=FILE`, or `state=warm` with the default."""
        return f"{self.name}={self.value if self.default in (REQUIRED, None) else shown(self.default)}"


DATA = Argument(
    "task.data.KEY", "how files are read, as in training: columns, labels, word_column, tag_names ...", None
)
DEBUG = Argument("debug", "show the traceback of an error", False, kind=bool)


class HelpSection(NamedTuple):
    """A part of a help text: a title, and lines of a term and what it means."""

    title: str
    lines: Sequence[tuple[str, str]]
    widest: int = 34  # if a term is longer, its meaning starts on the next line


@dataclass(frozen=True)
class Command:
    """A command, `elmo-bench NAME` or `python -m elmo_bench NAME`; the list of commands has its name and summary.

    Args:
        arguments: its own `key=value` arguments; `debug` is added.
        examples: arguments of example calls, each with an explanation or "".
        notes: paragraphs on input and output; those with line breaks are printed unchanged.
        again: how to go on after a signal.
        overrides: whether any key of the configuration may be given too; these are not parsed here.
        more: makes further sections; called only when the help is printed.
        page: of docs/, without .md: where to read on, in a checkout.
        calls: two ways to type it, the first for the examples.
    """

    arguments: Sequence[Argument] = ()
    examples: Sequence[tuple[str, str]] = ()
    notes: Sequence[str] = ()
    again: str = "nothing is half-written; run the command again"
    overrides: bool = False
    more: Callable[[], Sequence[HelpSection]] = lambda: ()
    page: str = ""
    calls: tuple[str, str] = ("elmo-bench {name} {given}", "python -m elmo_bench {name} {given}")

    def run(self, main: Callable[[], T], name: str = "", summary: str = "") -> T | None:
        """Prints the help if an argument is `--help`; else runs the entry point as `console.report` does."""
        if any(argument.partition("=")[0] in places.FLAGS for argument in sys.argv[1:]):
            console.report(lambda: places.take_own(sys.argv))
        if any(argument in HELP for argument in sys.argv[1:]):
            return console.report(lambda: print(self.help(name, summary)))
        return console.report(main, self.again)

    def parse(self, argv: Sequence[str] | None = None) -> dict[str, Any]:
        """The values of all arguments, or their defaults; without `debug`.

        An argument `output` is compared with all that name a file or a folder: it must be none of these.

        Raises:
            UserError: an argument without "=", an unknown or missing key, an invalid value, an output that is an input.
        """
        known = {argument.name: argument for argument in (*self.arguments, DEBUG)}
        values = {name: argument.default for name, argument in known.items()}
        typed: list[str] = []
        for given in sys.argv[1:] if argv is None else argv:
            key, equals, value = given.partition("=")
            if not equals:
                hint = f"give {key}=VALUE" if key in known else console.choices(key, [*known])
                raise UserError(f"{given}: arguments are written key=value; {hint}")
            if DATA.name in known and (name := key.removeprefix("+")).startswith(BELOW):
                typed.append(f"{name.removeprefix(BELOW)}={value}")
                continue
            if key not in known:
                raise UserError(f"{key}: there is no such argument; {console.choices(key, [*known])}")
            values[key] = read(known[key].kind, value, key)
        required = [argument.name for argument in self.arguments if argument.default == REQUIRED]
        if missing := [f"{name}=..." for name in required if values[name] in (REQUIRED, "")]:
            raise UserError(f"missing argument{'s' * (len(missing) > 1)} {', '.join(missing)}")
        del values[DEBUG.name]
        if DATA.name in known:
            del values[DATA.name]
            values["data"] = _plain(typed)
        if output := values.get(OUTPUT):
            outputs.apart(output, [values[a.name] for a in self.arguments if a.names_files and a.name != OUTPUT])
        return values

    def split(self, argv: Sequence[str], *names: str) -> tuple[dict[str, Any], list[str]]:
        """The values of some arguments, with or without a plus, or their defaults; and the others, all overrides.

        Raises:
            UserError: an invalid value.
        """
        own = {a.name.removeprefix("+"): a for a in self.arguments if a.name.removeprefix("+") in names}
        values = {name: None if a.default == REQUIRED else a.default for name, a in own.items()}
        others = []
        for argument in argv:
            key, equals, value = argument.partition("=")
            if (name := key.removeprefix("+")) in own and equals:
                values[name] = read(own[name].kind, value, name)
            else:
                others.append(argument)
        return values, others

    def help(self, name: str = "", summary: str = "") -> str:
        """The text of `--help`."""
        arguments = [*self.arguments, DEBUG]
        examples = [(self.calls[0].format(name=name, given=line).rstrip(), what) for line, what in self.examples]
        listed = HelpSection(
            "Arguments", [(a.usage, a.meaning + " (required)" * (a.default == REQUIRED)) for a in arguments]
        )
        sections = [listed, HelpSection("Examples", examples, 0), *self.more()]
        notes = [note if "\n" in note else textwrap.fill(note, WIDTH) for note in self.notes]
        parts = [f"{summary[:1].upper()}{summary[1:]}.", self.usage(name), *notes]
        read_on = [f"Read on: docs/{self.page}.md"] if self.page and places.CHECKOUT else []
        return "\n\n".join([*parts, *(printed(section) for section in sections if section.lines), *read_on])

    def usage(self, name: str) -> str:
        """The first lines: the syntax of the command."""
        required = [a.usage for a in self.arguments if a.default == REQUIRED]
        optional = ["[KEY=VALUE ...]"] if self.overrides or len(required) < len(self.arguments) else []
        given = " ".join([*required, *optional])
        return "Usage: {}\n   or: {}".format(*(call.format(name=name, given=given).rstrip() for call in self.calls))


def _plain(typed: Sequence[str]) -> dict[str, Any]:
    """The values of keys, written as for Hydra. Raises `UserError` for what cannot be read."""
    from omegaconf import OmegaConf
    from yaml import YAMLError

    try:
        return OmegaConf.to_container(OmegaConf.from_dotlist(list(typed)))  # type: ignore[return-value]
    except (YAMLError, ValueError) as error:
        raise UserError(f"{BELOW}{' '.join(typed)}: cannot be read ({error})") from None


# Parsers of values.


def whole(least: int = 0, most: int | None = None) -> Any:
    """A whole number within limits."""
    return Annotated[int, Field(ge=least, le=most)]


def several(known: Collection[str]) -> Any:
    """Some of a few words, with commas between them; they come in the order in which they are known."""

    def parse(text: str) -> list[str]:
        for name in (names := text.split(",")):
            if name not in known:
                raise ValueError(f"there is no part {name}; {console.choices(name, [*known])}")
        return [name for name in known if name in names]

    return Annotated[str, AfterValidator(parse)]


# Help for settings that dataclasses declare.


def described(block: type[Keys], prefix: str = "") -> list[Argument]:
    """The keys of a block as arguments, those of inner blocks as `outer.inner`; keys without a meaning are left out."""
    arguments: list[Argument] = []
    for name, field in fields(block).items():
        if below := inner(field.annotation):
            arguments += described(below, f"{prefix}{name}.")
        elif field.description:
            values = allowed(field.annotation)
            words = {*values} - {None, True, False}
            listed = f" ({', '.join(map(shown, values))})" if words else ""
            default = REQUIRED if field.is_required() else field.default
            shape = "null" if default is None else "VALUE"
            arguments.append(Argument(f"{prefix}{name}", field.description + listed, default, shape, field.annotation))
    return arguments


def settings(title: str, arguments: Sequence[Argument]) -> HelpSection:
    """A section of the help that lists keys of the configuration."""
    return HelpSection(title, [(a.usage, a.meaning) for a in arguments])


def files(groups: Sequence[str]) -> HelpSection:
    """A section of the help that lists the configuration files of each group."""
    listed = [(f"{group}=", ", ".join(places.named(group))) for group in groups]
    return HelpSection("Configuration files", [line for line in listed if line[1]])


def shown(value: Any) -> str:
    """A value as it is written on the command line."""
    return ",".join(map(shown, value)) if isinstance(value, (list, tuple)) else as_typed(value)


# Layout.


def printed(section: HelpSection) -> str:
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
