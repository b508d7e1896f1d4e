"""The base of all commands: arguments as typed keys, and `--help`, printed without importing large libraries."""

from __future__ import annotations

import inspect
import io
import os
import pkgutil
import sys
import textwrap
from collections.abc import Collection, Mapping, Sequence
from contextlib import redirect_stdout
from glob import escape, glob
from typing import Annotated, Any, ClassVar, NamedTuple, Self

from pydantic import AfterValidator

from elmo_bench import __version__
from elmo_bench.configuration.keys import Flag, Hidden, Keys, allowed, documented, fields, parts, valid
from elmo_bench.system import console, places
from elmo_bench.system.errors import UserError, as_typed, notice
from elmo_bench.system.storage import outputs

HEADINGS = {  # the commands of each heading of the help, with their classes
    "run": {
        "reproduce": "run:Reproduce", "sweep": "run:Sweep", "queue": "run:Queue", "train": "train:Train",
        "prepare": "train:Prepare", "data": "train:Data",
    },
    "compare": {
        "report": "compare:Report", "export": "compare:Export", "publish": "compare:Publish", "score": "compare:Score",
    },
    "biLM": {
        "pretrain": "bilm:Pretrain", "vocabulary": "bilm:Vocabulary", "tune": "bilm:Tune",
        "perplexity": "bilm:Perplexity",
    },
    "analysis": {
        "analysis.neighbours": "analysis:Neighbours", "analysis.wsd": "analysis:Wsd", "analysis.pos": "analysis:Pos",
        "analysis.overlap": "analysis:Overlap",
    },
    "use": {
        "predict": "use:Predict", "demo": "use:Demo", "embed": "use:Embed", "compare": "use:Compare",
        "export_head": "use:ExportHead",
    },
    "machine": {"bench": "bilm:Bench"},
}  # fmt: skip
COMMANDS = {name: place for commands in HEADINGS.values() for name, place in commands.items()}
RESUMES = "running the command again resumes from the last completed epoch"
GROUPS = ("task", "scale", "bilm", "vectors", "trainer", "logger", "callbacks", "launcher", "sweeper", "sweep",
          "experiment", "debug")  # fmt: skip
HELP = ("--help", "-h")
COMPLETION = ("-sc", "--shell_completion")
COMPLETED_LINE = "COMP_LINE"
VALUES = {"task": "task", "on": "cluster"}  # arguments whose values are configuration files, with their groups
USAGE = "Usage: elmo-bench COMMAND [KEY=VALUE ...]"
WIDTH = 100  # of a help text, in characters
FILES = ("FILE", "FOLDER", "TEXT")  # placeholders of paths
DATA = "task.data."  # the prefix of keys for reading files
File = Annotated[str, "FILE"]
Folder = Annotated[str, "FOLDER"]
Texts = Annotated[str, "TEXT"]
Name = Annotated[str, "NAME"]
Examples = dict[str, str]


class HelpSection(NamedTuple):
    """A part of a help text: a title, and lines of a term and its meaning."""

    title: str
    lines: Sequence[tuple[str, str]]
    widest: int = 34  # if a term is longer, its meaning starts on the next line


class Command(Keys):
    """A command: its keys are its arguments, and its docstring is its help: a summary, and paragraphs on its files.

    Attributes:
        page: a page of docs/, without .md, for further reading in a checkout.
        examples: arguments of example calls, each with an explanation or "".
        again: how to continue after a signal.
        overrides: whether any key of the configuration may be given, too; these are not parsed here.
        calls: two ways to type it, the first for the examples.
        typed: further typed arguments.
    """

    page: ClassVar[str] = ""
    examples: ClassVar[Examples] = {}
    again: ClassVar[str] = "nothing is half-written; run the command again"
    overrides: ClassVar[bool] = False
    calls: ClassVar[tuple[str, str]] = ("elmo-bench {name} {given}", "python -m elmo_bench {name} {given}")
    debug: Flag = False
    """show the traceback of an error"""
    typed: Hidden[list[str]] = []

    def run(self) -> None:
        """Does the work of the command."""
        raise NotImplementedError

    @classmethod
    def sections(cls) -> Sequence[HelpSection]:
        """Further parts of the help; made only when it is printed."""
        if not cls.overrides:
            return ()
        title = "Keys of {}, with the defaults that configuration files change"
        further = [HelpSection(title.format(name), described(block, f"{name}.")) for name, block in blocks().items()]
        return [files(GROUPS), run_keys(), *further]

    @classmethod
    def main(cls, name: str = "") -> None:
        """Prints the help if an argument is `--help`; otherwise runs the command through `console.report`."""
        if any(argument.partition("=")[0] in places.FLAGS for argument in sys.argv[1:]):
            console.report(lambda: places.take_own(sys.argv))
        if any(argument in HELP for argument in sys.argv[1:]):
            return console.report(lambda: print(cls.help(name)))
        return console.report(lambda: cls.parse(sys.argv[1:]).run(), cls.again)

    @classmethod
    def parse(cls, argv: Sequence[str]) -> Self:
        """The command with its arguments. An `output` must not be a file or folder that another argument names."""
        values, typed, data = dict[str, str](), list[str](), list[str]()
        own = {name.removeprefix("+"): name for name, field in fields(cls).items() if field.repr}
        if cls.overrides and own.keys() == {"debug"}:
            return cls(typed=[*argv])
        for argument in argv:
            key, equals, value = argument.partition("=")
            key = key.removeprefix("+")
            if cls.overrides and (not equals or key not in own or key == "debug"):
                typed.append(argument)
            elif not equals:
                hint = f"give {key}=VALUE" if key in own else console.choices(key, [*own])
                raise UserError(f"{argument}: arguments are written key=value; {hint}")
            elif key.startswith(DATA) and "data" in cls.model_fields:
                data.append(argument.lstrip("+").removeprefix(DATA))
            elif value:
                values[own.get(key, key)] = value
        lacking = [f"{name}=..." for name, field in fields(cls).items() if field.is_required() and name not in values]
        if lacking and not cls.overrides:
            raise UserError(f"missing argument{'s' * (len(lacking) > 1)} {', '.join(lacking)}")
        command = valid(cls, values, text=True)
        command.typed.extend(typed)
        if data:
            getattr(command, "data").update(_plain(data))  # noqa: B009
        if output := values.get("output"):
            paths = [name for name, field in fields(cls).items() if placeholder(field) in FILES]
            outputs.apart(output, [command.plain()[name] for name in paths if name != "output"])
        return command

    @classmethod
    def help(cls, name: str = "") -> str:
        """The text of `--help`."""
        summary, _, notes = (inspect.getdoc(cls) or "").partition("\n\n")
        examples = [(cls.calls[0].format(name=name, given=line).rstrip(), what) for line, what in cls.examples.items()]
        arguments = sorted(described(cls), key=lambda line: line[0].startswith("debug="))
        sections = [HelpSection("Arguments", arguments), HelpSection("Examples", examples, 0), *cls.sections()]
        paragraphs = [textwrap.fill(" ".join(note.split()), WIDTH) for note in notes.split("\n\n") if note]
        read_on = [f"Read on: docs/{cls.page}.md"] if cls.page and places.CHECKOUT else []
        required = [term for term, meaning in arguments if meaning.endswith("(required)")]
        given = " ".join([*required, "[KEY=VALUE ...]"])
        usage = "Usage: {}\n   or: {}".format(*(call.format(name=name, given=given) for call in cls.calls))
        return "\n\n".join([summary, usage, *paragraphs, *(printed(each) for each in sections if each.lines), *read_on])


def summary(name: str) -> str:
    """The summary of a command, in a line."""
    return (inspect.getdoc(command(name)) or "").partition("\n")[0].rstrip(".")


def overview() -> str:
    """All commands under their headings, one line each."""
    widest = max(map(len, COMMANDS))
    listed = [
        printed(HelpSection(heading, [(f"{name:{widest}}", summary(name)) for name in names]))
        for heading, names in HEADINGS.items()
    ]
    about = "elmo-bench COMMAND --help describes a command; elmo-bench --version prints the version."
    return "\n\n".join([USAGE, *listed, about])


def command(name: str) -> type[Command]:
    """The class of a command."""
    return pkgutil.resolve_name(f"elmo_bench.commands.{COMMANDS[name]}")


def _plain(typed: Sequence[str]) -> Mapping[str, Any]:
    """The values of keys in Hydra's syntax. Raises `UserError` if they cannot be read."""
    from omegaconf import OmegaConf
    from yaml import YAMLError

    try:
        return OmegaConf.to_container(OmegaConf.from_dotlist(list(typed)))  # type: ignore[return-value]
    except (YAMLError, ValueError) as error:
        raise UserError(f"{DATA}{' '.join(typed)}: cannot be read ({error})") from None


def several(known: Collection[str]) -> AfterValidator:
    """Some of a few known words, separated by commas, in the order in which they are known."""

    def parse(text: str) -> list[str]:
        for name in (names := text.split(",")):
            if name not in known:
                raise ValueError(f"there is no part {name}; {console.choices(name, [*known])}")
        return [name for name in known if name in names]

    return AfterValidator(parse)


# Help for keys.


def placeholder(field: Any) -> str:
    """The placeholder for the value of a key: the word in its type, such as FILE."""
    words = [*field.metadata, *(word for part in parts(field.annotation) for word in getattr(part, "__metadata__", ()))]
    return next((word for word in words if isinstance(word, str)), "VALUE")


def described(block: type[Keys], prefix: str = "", nested: bool = True) -> list[tuple[str, str]]:
    """The keys of a block with their meanings, as `state=warm` with the default, and those of inner blocks."""
    lines, own = [], issubclass(block, Command)
    for name, field, meaning in documented(block, prefix, nested):
        values = allowed(field.annotation)
        listed = f" ({', '.join(map(shown, values))})" if {*values} - {True, False} else ""
        empty = placeholder(field) if own or field.is_required() else "null"
        unset = field.is_required() or field.default_factory or field.default in (None, [], {})
        default = empty if unset else shown(field.default)
        lines.append((f"{name}={default}", meaning + listed + " (required)" * (own and field.is_required())))
    return lines


def blocks() -> dict[str, type[Keys]]:
    """The typed blocks of a run's configuration, by the prefix of their keys."""
    from elmo_bench.configuration import schema

    return {
        "elmo": schema.ElmoConfig,
        "bilm": schema.BilmConfig,
        "task": schema.TaskConfig,
        "vectors": schema.VectorsConfig,
        "vectors.sets.NAME": schema.VectorSetConfig,
        "scale": schema.ScaleConfig,
        "trainer": schema.TrainerConfig,
        "logger": schema.LoggerConfig,
    }


def run_keys() -> HelpSection:
    """The keys of a run outside its blocks."""
    from elmo_bench.configuration.schema import RunConfig

    return HelpSection("Keys of the run", described(RunConfig, nested=False))


def files(groups: Sequence[str]) -> HelpSection:
    """A section of the help that lists the configuration files of each group."""
    listed = [(f"{group}=", ", ".join(places.named(group))) for group in groups]
    return HelpSection("Configuration files", [line for line in listed if line[1]])


def shown(value: Any) -> str:
    """A value as typed on the command line."""
    return ",".join(map(shown, value)) if isinstance(value, (list, tuple)) else as_typed(value)


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


# TAB in bash and zsh: `eval "$(elmo-bench -sc install=bash)"`, Hydra's own completion with our commands before it.


def complete() -> None:
    """Completes a line, or prints the shell's completion script.

    Hydra's script calls the program without the command, `elmo-bench -sc query=bash`, with the line in the variable
    COMP_LINE.
    """
    what = sys.argv[-1]
    sys.argv = ["elmo-bench", "-sc", what]
    train = command("train").model_construct(typed=[])
    if not what.startswith("query"):
        train.run()
        return
    name, separator, rest = os.environ.get(COMPLETED_LINE, "").partition(" ")[2].lstrip().partition(" ")
    if not separator:
        print(*COMMANDS)
    elif name in COMMANDS:
        asked = command(name)
        word = "" if rest.endswith(" ") else rest.rpartition(" ")[2]
        found = {*_completions(fields(asked), word)}
        if asked.overrides and "=" in word:
            of_runs = (
                (f"{start}.{key}", each) for start, block in blocks().items() for key, each in fields(block).items()
            )
            found |= {*_completions(dict(of_runs), word)}
        if asked.overrides and not word.startswith("-") and not (found and "=" in word):
            os.environ[COMPLETED_LINE] = f"elmo-bench {rest}"
            with redirect_stdout(io.StringIO()) as keys:
                train.run()
            found |= {*keys.getvalue().split()}
        print(*sorted(found))


def _completions(keys: Mapping[str, Any], word: str) -> list[str]:
    """The keys that begin with a word, or the values of its key that match the rest of the word."""
    name, equals, begun = word.partition("=")
    if not equals:
        return [f"{key}=" for key, field in keys.items() if key.startswith(word) and field.repr]
    if name not in keys:
        return []
    field, values = keys[name], list[str]()
    if placeholder(field) in FILES:
        there = os.path.expanduser(begun)
        values = [begun + path.removeprefix(there) + "/" * os.path.isdir(path) for path in glob(f"{escape(there)}*")]
    elif name in VALUES:
        values = [*places.named(VALUES[name]), *([field.default] if isinstance(field.default, str) else [])]
    else:
        values = [shown(value) for value in allowed(field.annotation)]
    return [f"{name}={value}" for value in values if value.startswith(begun)]


# The program.


def main() -> None:
    """Runs the command named by the first argument."""
    console.ready()
    if (other := places.other_checkout()) is not None:
        notice(
            f"this is the code of {places.PACKAGE.parent}, not of {other}; 'make' there sets up an environment for it"
        )
    name, *rest = sys.argv[1:] or ["--help"]
    if len(sys.argv) > 2 and sys.argv[-2] in COMPLETION:
        console.report(complete)
        return
    if name not in COMMANDS:
        console.report(lambda: _other(name))
        return
    sys.argv = [f"elmo-bench {name}", *rest]
    command(name).main(name)


def _other(name: str) -> None:
    if name in (*HELP, "help"):
        print(overview())
    elif name == "--version":
        print(f"elmo_bench {__version__}")
    else:
        raise UserError(f"{name}: there is no such command; {console.choices(name, list(COMMANDS))}")
