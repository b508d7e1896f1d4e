"""What the entry points share: places, configuration, `key=value` arguments, and errors in one line.

Nothing heavy is imported here: `score`, and a run that is already recorded, answer in about a second.
"""

from __future__ import annotations

import os
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TypeVar

from omegaconf import DictConfig, OmegaConf

from elmo_bench.errors import UserError

PACKAGE = Path(__file__).resolve().parent
# Beside the package in a checkout (an editable install too); inside it in a wheel.
CONF = next((conf for conf in (PACKAGE.parent / "conf", PACKAGE / "conf") if conf.is_dir()), PACKAGE.parent / "conf")
# Models, caches and results lie in the checkout; an installed wheel keeps them where it is called.
ROOT = PACKAGE.parent if CONF.parent == PACKAGE.parent else Path.cwd()

T = TypeVar("T")


def report(main: Callable[[], T]) -> T:
    """Runs an entry point; what a user can mend ends in one line on stderr and exit status 2.

    `HYDRA_FULL_ERROR=1` or an argument `debug=true` shows the traceback. An error of the code itself always shows it.
    """
    before = os.environ.get("HYDRA_FULL_ERROR")
    full = before not in (None, "", "0") or "debug=true" in sys.argv
    os.environ["HYDRA_FULL_ERROR"] = "1"  # makes Hydra hand its errors on instead of printing them itself
    try:
        return main()
    except KeyboardInterrupt:
        print("interrupted; a training goes on from its last whole epoch when it is started again", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:  # the reader of our output has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except Exception as error:
        message = explain(error)
        if message is None:
            raise
        if full:
            traceback.print_exc()
        show(error)
        sys.exit(2)
    finally:
        os.environ.pop("HYDRA_FULL_ERROR")
        if before is not None:
            os.environ["HYDRA_FULL_ERROR"] = before


def show(error: BaseException) -> None:
    """Prints an error's line on stderr, once however often it is shown."""
    origin = next(_causes(error, UserError), error)
    if not getattr(origin, "shown", False):
        print(f"error: {explain(error)}", file=sys.stderr, flush=True)
        origin.shown = True  # type: ignore[attr-defined]


def explain(error: BaseException) -> str | None:
    """One line for an error that the user can mend; None for any other."""
    if cause := next(_causes(error, UserError), None):
        return str(cause)
    if error.__class__.__module__.split(".")[0] in ("hydra", "omegaconf"):
        return _explain_configuration(error)
    return None


def _causes(error: BaseException | None, kind: type[BaseException]) -> Iterator[BaseException]:
    while error is not None:
        if isinstance(error, kind):
            yield error
        error = error.__cause__


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())


def _explain_configuration(error: BaseException) -> str:
    """Hydra's and OmegaConf's errors, with the alternatives at hand."""
    text = str(error)
    if error.__class__.__name__ == "InstantiationException":
        return f"{_line(error)} (debug=true shows where)"
    options = getattr(error, "options", None)  # of a MissingConfigException
    if options is not None and (missing := re.search(r"[Cc]ould not find '([^']+)'", text)):
        group, _, name = missing[1].rpartition("/")
        return f"{group}={name}: there is no such {group or 'configuration'}; {_choices(name, options)}"
    if wrong := re.search(r"Could not override '([^']+)'", text):
        return unknown_key(wrong[1])
    if wrong := re.search(r"Key '([^']+)' is not in struct\s+full_key: (\S+)", text):
        return unknown_key(wrong[2])
    if wrong := re.search(r"Could not override '?([^'\s]+)'?\.?\s*No match in the defaults list", text):
        return f"{wrong[1]}: there is no such group of configuration pages"
    return _line(error)


def unknown_key(key: str) -> str:
    """The message for a configuration key that does not exist, with those that stand beside it."""
    known: list[str] = []
    parent, _, name = key.rpartition(".")
    try:
        node = compose(_groups(sys.argv[1:]))
        node = OmegaConf.select(node, parent) if parent else node
        known = [str(k) for k in node] if isinstance(node, DictConfig) else []
    except Exception:  # the message must not fail for want of the list
        known = []
    return f"{key}: there is no such key; " + (_choices(name, known) if known else "see conf/train.yaml and --cfg job")


def _groups(arguments: Sequence[str]) -> list[str]:
    """The arguments that choose a page: they say which keys there are."""
    groups = {path.name for path in CONF.iterdir() if path.is_dir()}
    return [a for a in arguments if a.partition("=")[0] in groups and "," not in a]


def _choices(name: str, known: Sequence[str]) -> str:
    near = get_close_matches(name, known, 1)
    return (f"did you mean {near[0]}? " if near else "") + "there is " + ", ".join(known)


def register_resolvers() -> None:
    """`${root:models}` is the folder `models` of the checkout."""
    OmegaConf.register_new_resolver("root", lambda name="": str(ROOT / name), replace=True)


register_resolvers()  # at import, so that the processes of a launcher have them too


def compose(overrides: Sequence[str] = (), name: str = "train"):
    """The configuration that `python -m elmo_bench.<name> OVERRIDES` would get.

    Raises:
        The same errors as the command; `report` turns them into a line.
    """
    from hydra import compose as hydra_compose
    from hydra import initialize_config_dir
    from hydra.core.global_hydra import GlobalHydra

    running, GlobalHydra.instance().hydra = GlobalHydra.instance().hydra, None  # within a command, set its own aside
    try:
        with initialize_config_dir(str(CONF), version_base="1.3"):
            return hydra_compose(name, list(overrides))
    finally:
        GlobalHydra.instance().hydra = running


def arguments(argv: Sequence[str], required: Sequence[str], optional: Sequence[str] = ()) -> dict[str, str]:
    """`key=value` arguments of a command that needs no configuration.

    Raises:
        UserError: an argument without "=", an unknown or missing key.
    """
    values: dict[str, str] = {}
    known = [*required, *optional, "debug"]
    for argument in argv:
        key, equals, value = argument.partition("=")
        if not equals:
            raise UserError(f"{argument}: arguments are written key=value; {_choices(key, known)}")
        if key not in known:
            raise UserError(f"{key}: there is no such argument; {_choices(key, known)}")
        values[key] = value
    if missing := [key for key in required if not values.get(key)]:
        raise UserError(f"missing argument{'s' * (len(missing) > 1)} {', '.join(f'{key}=...' for key in missing)}")
    return values


def page(task: str) -> Path:
    """The task's page of configuration. Raises `UserError` where there is no such task."""
    known = tasks()
    if task not in known:
        raise UserError(f"task={task}: there is no such task; {_choices(task, known)}")
    return CONF / "task" / f"{task}.yaml"


def tasks() -> list[str]:
    """The names of the tasks: those with a page."""
    return sorted(path.stem for path in (CONF / "task").glob("*.yaml"))
